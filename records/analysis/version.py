"""Which analysis computed a record, and how it names what it does not compute yet."""

from __future__ import annotations

# Changes whenever the same evidence gives other figures.
ANALYSIS_VERSION = "1"
RECORD_SCHEMA = "impakt.record/1"
NOT_COMPUTED = f"not computed by analysis_version {ANALYSIS_VERSION}"
