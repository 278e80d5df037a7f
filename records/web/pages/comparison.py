"""A comparison's document as its page shows it."""

from __future__ import annotations

from typing import Any

from records.models import Comparison


def comparison_page(comparison: Comparison) -> dict[str, Any]:
    """Context of the page."""
    return {}
