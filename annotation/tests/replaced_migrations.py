"""Migrations that a squashed migration replaces, for tests of databases of earlier versions."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader


class ReplacedLoader(MigrationLoader):
    """Loads the replaced migrations instead of the squashed ones."""

    def load_disk(self) -> None:
        super().load_disk()
        newest = {key: squashed.replaces[-1] for key, squashed in self.disk_migrations.items() if squashed.replaces}
        for key in newest:
            del self.disk_migrations[key]
        for migration in self.disk_migrations.values():
            migration.dependencies = [newest.get(key, key) for key in migration.dependencies]


def migrate(*targets: tuple[str, str]) -> Any:
    """Migrate to ``targets``, or to the newest migrations, and return `get_model` of that state."""
    executor = MigrationExecutor(connection)
    executor.loader = ReplacedLoader(connection)
    return executor.migrate(list(targets) or executor.loader.graph.leaf_nodes()).apps.get_model
