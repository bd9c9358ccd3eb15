"""Columns of later migrations have a database default, because programs of the earlier version do not name them."""

import pytest
from django.apps import apps
from django.db import connection
from django.db.migrations.operations import AddField, CreateModel
from django.db.models import NOT_PROVIDED

from annotation.tests.replaced_migrations import ReplacedLoader

APPS = ("annotation", "judges", "evaluations")
# Which decision a reopening asks for; with any default an old program would reopen the wrong one.
WITHOUT = {"reopening.revision"}


def added_columns(loader, app):
    """Yield (model, field) of each column that was added to a table of an earlier migration."""
    made_in = {}
    for key in sorted(key for key in loader.graph.nodes if key[0] == app):
        for operation in loader.graph.nodes[key].operations:
            if isinstance(operation, CreateModel):
                made_in[operation.name_lower] = key
            if isinstance(operation, AddField) and made_in.get(operation.model_name_lower) != key:
                yield operation.model_name_lower, operation.name


@pytest.mark.parametrize("app", APPS)
def test_columns_added_later_have_a_database_default(app):
    lacking = []
    for model, name in added_columns(ReplacedLoader(None), app):
        fields = {field.name: field for field in apps.get_model(app, model)._meta.local_fields}
        field = fields.get(name)  # None where a later migration removed or renamed it
        if field is not None and not field.null and field.db_default is NOT_PROVIDED:
            lacking.append(f"{model}.{name}")
    assert set(lacking) == (WITHOUT if app == "annotation" else set())


@pytest.mark.django_db
@pytest.mark.parametrize("app", APPS)
def test_a_program_that_does_not_name_an_added_column_can_insert_a_row(app):
    """The schema that the migrations made has the defaults, and not only the models."""
    for model, name in added_columns(ReplacedLoader(None), app):
        kind = apps.get_model(app, model)
        fields = {field.name: field for field in kind._meta.local_fields}
        if name in fields and not fields[name].null and f"{model}.{name}" not in WITHOUT:
            assert default_of(kind._meta.db_table, fields[name].column) is not None, f"{model}.{name}"


def default_of(table, column):
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT dflt_value FROM pragma_table_info(%s) WHERE name = %s", [table, column])
        else:
            cursor.execute(
                "SELECT column_default FROM information_schema.columns WHERE table_name = %s AND column_name = %s",
                [table, column],
            )
        return cursor.fetchone()[0]
