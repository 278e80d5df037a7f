"""Can the runs' figures be used at all?"""

from __future__ import annotations

from records.analysis.gates.base import OPEN, PASSED, GateResult, Sides

NAME = "validity"


def gate(sides: Sides) -> list[GateResult]:
    """Every run must be valid; an invalid one says nothing, so this gate never fails."""
    bad = [r for r in [*sides.baselines, *sides.candidates] if not r["valid"]]
    told = "; ".join(
        f"{r['run'].get('run_id')}: {', '.join(i['code'] for i in r['invalid_reasons'])}"
        for r in bad
    )
    return [
        GateResult(
            name=NAME,
            title="Valid runs",
            threshold="all",
            baseline=sum(bool(r["valid"]) for r in sides.baselines),
            candidate=sum(bool(r["valid"]) for r in sides.candidates),
            unit="valid runs",
            result=OPEN if bad else PASSED,
            reason=f"not valid: {told}" if bad else None,
        )
    ]
