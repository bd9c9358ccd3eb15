from django.db import migrations, models


class AddIndexWhileRunning(migrations.AddIndex):
    """Add an index without a lock on PostgreSQL: workers of an earlier version go on writing calls meanwhile."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
        elif self.allow_migrate_model(schema_editor.connection.alias, model := self._find(app_label, to_state)):
            schema_editor.add_index(model, self.index, concurrently=True)

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor != "postgresql":
            super().database_backwards(app_label, schema_editor, from_state, to_state)
        elif self.allow_migrate_model(schema_editor.connection.alias, model := self._find(app_label, from_state)):
            index = from_state.models[app_label, self.model_name_lower].get_index_by_name(self.index.name)
            schema_editor.remove_index(model, index, concurrently=True)

    def _find(self, app_label, state):
        return state.apps.get_model(app_label, self.model_name)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("judges", "0010_batches_of_calls")]

    operations = [
        AddIndexWhileRunning(
            model_name="modelcall",
            index=models.Index(
                models.F("batch"), models.F("item"), condition=models.Q(("batch__isnull", False)), name="model_call_batch"
            ),
        ),
        AddIndexWhileRunning(
            model_name="modelbatch",
            index=models.Index(
                models.F("run"), condition=models.Q(("ended_at__isnull", True)), name="model_batch_open"
            ),
        ),
    ]
