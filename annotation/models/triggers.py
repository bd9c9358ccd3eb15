"""Triggers for rules that constraints cannot express, for PostgreSQL and SQLite.

Rows are append-only, open slots are counted, and a failure names an existing step if the trajectory has steps. A
migration that rebuilds one of these tables on SQLite drops its triggers, so it must end with `install`. A test compares
the triggers of a migrated database with this list.
"""

from __future__ import annotations

from typing import Any

APPEND_ONLY = {
    "annotation_event": "",
    "annotation_label": "",
    "annotation_humanattempt": "",
    "annotation_keypointfinding": "",
    "annotation_adjudicationfinding": "",
    "annotation_spotcheckdraw": "",
    "annotation_spotcheck": "",
    "annotation_sampleplan": "",
    "annotation_planneditem": "",
    "annotation_samplestop": "",
    "annotation_flag": "",
    "annotation_reopening": "",
    "annotation_redaction": "",
    "annotation_adjudication": "OLD.decided_at IS NOT NULL",  # open ones may still be decided or deleted
    "annotation_informedrevision": "OLD.decided_at IS NOT NULL",
}

# By table: the column that may be set once, and the columns that may change with it.
FILLED_ONCE: dict[str, tuple[str, ...]] = {}

SLOTS = {
    "slot_taken": (
        "INSERT",
        "UPDATE annotation_trajectory SET open_slots = open_slots - 1 WHERE id = NEW.trajectory_id",
    ),
    "slot_returned": (
        "DELETE",
        "UPDATE annotation_trajectory SET open_slots = open_slots + 1 WHERE id = OLD.trajectory_id",
    ),
}

# By table, the trajectory of a new row. An answer has no steps, so its failures need none.
EXPLAINED = {
    "annotation_label": "(SELECT trajectory_id FROM annotation_assignment WHERE id = NEW.assignment_id)",
    "annotation_adjudication": "NEW.trajectory_id",
}
UNEXPLAINED = (
    "NEW.verdict = 0 AND NEW.failure_step IS NULL AND EXISTS (SELECT 1 FROM annotation_step WHERE trajectory_id = {of})"
    " OR NEW.failure_step IS NOT NULL AND NOT EXISTS"
    ' (SELECT 1 FROM annotation_step WHERE trajectory_id = {of} AND "index" = NEW.failure_step)'
)
MESSAGE = "a failure names the step where it failed, one that there is"


def names() -> list[str]:
    return sorted([*_append_only(), *_explained(), *SLOTS])


def _append_only() -> dict[str, str]:
    """Return the tables of the append-only triggers by the triggers' names."""
    named = {f"{table}_append_only_{verb}": table for table in APPEND_ONLY for verb in ("update", "delete")}
    return named | {f"{table}_append_only_fill": table for table in FILLED_ONCE}


def _explained() -> dict[str, str]:
    """Return the tables of the triggers that require the step of a failure, by the triggers' names."""
    return {f"{table}_names_its_step_{verb}": table for table in EXPLAINED for verb in ("insert", "update")}


def install(apps: Any, schema_editor: Any) -> None:
    """Create the triggers of all existing tables again; each migration that adds a trigger calls this."""
    remove(apps, schema_editor)
    make = _postgresql if schema_editor.connection.vendor == "postgresql" else _sqlite
    with schema_editor.connection.cursor() as cursor:
        present = set(schema_editor.connection.introspection.table_names(cursor))
        columns = {table: _columns(cursor, table) for table in FILLED_ONCE if table in present}
        for statement in make(present, _guarded(present, columns)):
            cursor.execute(statement)


def remove(apps: Any, schema_editor: Any) -> None:
    postgresql = schema_editor.connection.vendor == "postgresql"
    tables = _append_only() | _explained() | dict.fromkeys(SLOTS, "annotation_assignment")
    with schema_editor.connection.cursor() as cursor:
        present = set(schema_editor.connection.introspection.table_names(cursor))
        for name, table in tables.items():
            if table not in present:
                continue
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}" + (f" ON {table}" if postgresql else ""))


def _columns(cursor: Any, table: str) -> list[str]:
    cursor.execute(f'SELECT * FROM "{table}" LIMIT 0')  # noqa: S608 - a name of ours
    return [column[0] for column in cursor.description]


def _guarded(present: set[str], columns: dict[str, list[str]]) -> list[tuple[str, str, str, str]]:
    """Return name, event, table and condition of the append-only triggers; ``columns`` are those of FILLED_ONCE."""
    guarded = []
    for table, when in APPEND_ONLY.items():
        if table not in present:
            continue
        guarded.append((f"{table}_append_only_delete", "DELETE", table, when))
        if table not in columns:
            guarded.append((f"{table}_append_only_update", "UPDATE", table, when))
            continue
        column = FILLED_ONCE[table][0]
        fixed = ", ".join(f'"{name}"' for name in columns[table] if name not in FILLED_ONCE[table])
        guarded.append((f"{table}_append_only_update", f"UPDATE OF {fixed}", table, when))
        filled = f"OLD.{column} IS NOT NULL OR NEW.{column} IS NULL"
        guarded.append((f"{table}_append_only_fill", "UPDATE", table, filled))
    return guarded


def _sqlite(present: set[str], guarded: list[tuple[str, str, str, str]]) -> list[str]:
    statements = [
        f"CREATE TRIGGER {name} BEFORE {event} ON {table} "
        f"{'WHEN ' + when if when else ''} BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        for name, event, table, when in guarded
    ]
    statements += [
        f"CREATE TRIGGER {table}_names_its_step_{verb} BEFORE {verb.upper()} ON {table} "
        f"WHEN {UNEXPLAINED.format(of=of)} BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END"
        for table, of in EXPLAINED.items()
        for verb in ("insert", "update")
    ]
    return statements + [
        f"CREATE TRIGGER {name} AFTER {verb} ON annotation_assignment BEGIN {statement}; END"
        for name, (verb, statement) in SLOTS.items()
    ]


APPEND_ONLY_FUNCTION = """
CREATE OR REPLACE FUNCTION webverdict_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$
"""
SLOT_FUNCTION = """
CREATE OR REPLACE FUNCTION webverdict_{name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    {statement};
    RETURN NULL;
END $$
"""
SLOT_TRIGGER = """
CREATE TRIGGER {name} AFTER {verb} ON annotation_assignment FOR EACH ROW EXECUTE FUNCTION webverdict_{name}()
"""
# PostgreSQL does not allow a query in WHEN, so the function checks the condition.
STEP_FUNCTION = """
CREATE OR REPLACE FUNCTION webverdict_{table}_step() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF {unexplained} THEN
        RAISE EXCEPTION '{message}' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$
"""
STEP_TRIGGER = """
CREATE TRIGGER {table}_names_its_step_{verb} BEFORE {verb} ON {table}
FOR EACH ROW EXECUTE FUNCTION webverdict_{table}_step()
"""


def _postgresql(present: set[str], guarded: list[tuple[str, str, str, str]]) -> list[str]:
    statements = [APPEND_ONLY_FUNCTION]
    statements += [
        f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW "
        f"{'WHEN (' + when + ')' if when else ''} EXECUTE FUNCTION webverdict_append_only()"
        for name, event, table, when in guarded
    ]
    for table, of in EXPLAINED.items():
        condition = UNEXPLAINED.format(of=of)
        statements.append(STEP_FUNCTION.format(table=table, unexplained=condition, message=MESSAGE))
        statements += [STEP_TRIGGER.format(table=table, verb=verb) for verb in ("insert", "update")]
    for name, (verb, statement) in SLOTS.items():
        statements.append(SLOT_FUNCTION.format(name=name, statement=statement))
        statements.append(SLOT_TRIGGER.format(name=name, verb=verb))
    return statements
