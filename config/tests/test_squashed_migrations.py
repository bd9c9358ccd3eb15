"""A new database gets the schema that a database of an earlier version has after its update."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connection

from annotation.tests.replaced_migrations import ReplacedLoader
from config.tests.instance import Instance

UPDATE = "import django; django.setup(); from annotation.tests.replaced_migrations import migrate; migrate()"
# `BEFORE UPDATE OF` lists the columns in the order of the table, which differs where columns were added.
COLUMNS = re.compile(r"(?<=UPDATE OF )[^.]*?(?= ON )")


def describe(cursor: sqlite3.Cursor) -> set[tuple[object, ...]]:
    """Return columns, foreign keys, indexes, constraints and triggers, without the order of columns in a table."""
    found: set[tuple[object, ...]] = set()
    master = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
    for kind, name, table, sql in cursor.execute(master).fetchall():
        if kind != "table":
            found.add((kind, name, table, COLUMNS.sub(lambda match: str(sorted(match[0].split(", "))), sql)))
            continue
        found |= {(name, "column", *row[1:]) for row in cursor.execute(f"PRAGMA table_info({name})").fetchall()}
        found |= {(name, "key", *row[2:]) for row in cursor.execute(f"PRAGMA foreign_key_list({name})").fetchall()}
        constraints = re.findall(r'CONSTRAINT "?(\w+)"? (.*?)(?=, CONSTRAINT|\)$)', sql)
        found |= {(name, "constraint", each, re.sub(r"\s", "", rule)) for each, rule in constraints}
    return found


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "sqlite", reason="compares two files of SQLite")
def test_squashed_migrations_make_the_schema_of_those_that_they_replace(tmp_path: Path) -> None:
    instance = Instance(tmp_path, further={"DJANGO_SETTINGS_MODULE": "config.settings"})
    instance.run("-c", UPDATE)
    with closing(sqlite3.connect(tmp_path / "var" / "webverdict.sqlite3")) as updated, connection.cursor() as cursor:
        assert describe(updated.cursor()) == describe(cursor.connection.cursor())


def test_every_replaced_migration_is_there() -> None:
    assert {app for app, _ in ReplacedLoader(None).graph.leaf_nodes()} >= {"annotation", "judges", "evaluations"}
