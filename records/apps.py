from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate


class RecordsConfig(AppConfig):
    """The registry: projects, runs, evidence, records, comparisons."""

    name = "records"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        post_migrate.connect(_install_triggers, sender=self)


def _install_triggers(using: str, plan=(), **kwargs) -> None:
    from records.models import immutable

    # Migrating back to nothing leaves no table to guard.
    connection = connections[using]
    if "records_judgment" in connection.introspection.table_names():
        immutable.install(connection)
