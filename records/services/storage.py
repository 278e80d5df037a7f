"""The evidence store that the settings name."""

from __future__ import annotations

from django.conf import settings

from records.evidence.store import LocalStore


def evidence_store() -> LocalStore:
    """Where raw bytes lie, by their SHA-256."""
    return LocalStore(settings.EVIDENCE_DIR)
