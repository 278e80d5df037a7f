"""What was measured does not change: the database itself refuses.

Triggers, installed after every migrate because SQLite drops a table's triggers
whenever Django rebuilds the table to alter it.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.apps import apps
from django.db.backends.base.base import BaseDatabaseWrapper

# model -> fields that may still change; every other column is fixed once written.
MUTABLE: dict[str, tuple[str, ...]] = {
    "Evidence": ("verified_at", "verified"),
    "Configuration": ("name",),
    "Trace": ("name", "description"),
    "Rubric": (),
    "CaseSet": (),
    "EvidencePacket": (),
    "Workload": ("title",),
    "ServiceClass": (),
    "RequestRecords": (),
    "MeasurementRecord": (),
    "JudgmentSet": (),
    "Judgment": (),
    "AuditEntry": (),
}


def install(connection: BaseDatabaseWrapper) -> None:
    """Create or renew the triggers of every immutable table."""
    build = {"sqlite": _sqlite, "postgresql": _postgresql}[connection.vendor]
    with connection.cursor() as cursor:
        for name, mutable in MUTABLE.items():
            model = apps.get_model("records", name)
            columns = [f.column for f in model._meta.concrete_fields if f.name not in mutable]
            for statement in build(model._meta.db_table, columns):
                cursor.execute(statement)


def _sqlite(table: str, columns: list[str]) -> Iterator[str]:
    changed = " OR ".join(f'OLD."{c}" IS NOT NEW."{c}"' for c in columns)
    yield f"DROP TRIGGER IF EXISTS {table}_immutable"
    yield (
        f"CREATE TRIGGER {table}_immutable BEFORE UPDATE ON {table} WHEN {changed} "
        f"BEGIN SELECT RAISE(ABORT, '{table} is immutable once written'); END"
    )


def _postgresql(table: str, columns: list[str]) -> Iterator[str]:
    changed = " OR ".join(f'OLD."{c}" IS DISTINCT FROM NEW."{c}"' for c in columns)
    yield f"DROP TRIGGER IF EXISTS {table}_immutable ON {table}"
    yield (
        f"CREATE OR REPLACE FUNCTION {table}_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ "
        f"BEGIN RAISE EXCEPTION '{table} is immutable once written' "
        "USING ERRCODE = 'integrity_constraint_violation'; END $$"
    )
    yield (
        f"CREATE TRIGGER {table}_immutable BEFORE UPDATE ON {table} FOR EACH ROW "
        f"WHEN ({changed}) EXECUTE FUNCTION {table}_refuse()"
    )
