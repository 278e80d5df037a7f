"""Which analysis computed a record, and how it names what it does not compute yet."""

from __future__ import annotations

# Changes whenever the same evidence gives other figures. 2: recorded quantiles of loop
# stalls and what they say of validity, who read the clock, chunks per receive.
ANALYSIS_VERSION = "2"
RECORD_SCHEMA = "impakt.record/1"
NOT_COMPUTED = f"not computed by analysis_version {ANALYSIS_VERSION}"
