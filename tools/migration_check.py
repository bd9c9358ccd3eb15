"""Refuse migrations that disturb a running instance: ``python -m tools.migration_check``, a part of `make test`.

During an upgrade, processes of the earlier version continue while the new migrations run. So a migration must not
remove or rename what they use, add a required column that they do not fill in, or lock a table for long (expand /
contract). Checks the SQL for PostgreSQL of every migration after those in `LAST`, which are older than this rule.
Needs DATABASE_URL.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
LAST = {"annotation": 24, "evaluations": 7, "judges": 8}
# By application and migration: codes of faults, each with the reason why it is harmless there.
EXCEPTIONS: dict[str, dict[str, str]] = {}
ADVICE = """Processes of the earlier version continue while these migrations run. Split the change: add what is new
with a database default, and remove what is old in the next release. Create an index on a large table with
AddIndexConcurrently. If a fault is harmless, add it to EXCEPTIONS in tools/migration_check.py with the reason."""


def find_faults(since: dict[str, int]) -> Iterator[str]:
    """Yield a line for each fault of a migration whose number is greater than that of its application in ``since``."""
    from django.apps import apps  # noqa: PLC0415 - after the setup
    from django.db import connection  # noqa: PLC0415
    from django.db.migrations.loader import MigrationLoader  # noqa: PLC0415
    from django_migration_linter.sql_analyser import PostgresqlAnalyser, analyse_sql_statements  # noqa: PLC0415

    ours = {each.label for each in apps.get_app_configs() if Path(each.path).parent == BASE_DIR}
    loader = MigrationLoader(connection, replace_migrations=False)
    for (app, name), migration in sorted(loader.disk_migrations.items()):
        if app not in ours or migration.replaces or int(name[:4]) <= since.get(app, 0):
            continue
        statements = loader.collect_sql([(migration, False)])
        errors, _, warnings = analyse_sql_statements(PostgresqlAnalyser, statements)
        for fault in [*errors, *warnings]:
            if fault.code not in EXCEPTIONS.get(f"{app} {name}", {}):
                yield f"{app} {name}: {fault.message} ({fault.code})"
    connection.close()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.migration_check", description=__doc__)
    parser.add_argument(
        "--since",
        nargs=2,
        action="append",
        default=[],
        metavar=("APPLICATION", "NUMBER"),
        help="check earlier ones too",
    )
    options = parser.parse_args(arguments)
    since = LAST | {app: int(number) for app, number in options.since}
    if unknown := set(since) - set(LAST):
        parser.error(f"unknown application {', '.join(sorted(unknown))}; known are: {', '.join(LAST)}")
    if not os.environ.get("DATABASE_URL", "").startswith("postgres"):
        parser.error("DATABASE_URL must name a PostgreSQL server, for example postgres://postgres@127.0.0.1/test")
    import django  # noqa: PLC0415 - after the arguments

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    faults = list(find_faults(since))
    for line in faults:
        print(line)  # noqa: T201
    if faults:
        print(ADVICE)  # noqa: T201
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
