"""The trace of the worked example SUP-SUM-01: real arrivals, invented support cases.

Arrivals are a window of a cut of the Azure 2023 conversation trace; what else
each row decides is in `RULES`, and in records/examples/sup_sum_01/ATTRIBUTION.md.
"""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path

from records.errors import BadInput
from records.traces.cutting import cut_window
from records.traces.importing.formats import import_trace
from records.traces.reading import Trace
from records.traces.schema import TraceRequest
from records.traces.tickets import SHORTEST_PROMPT_WORDS, case_prompt

FOLDER = Path(__file__).parents[1] / "examples" / "sup_sum_01"
ARRIVALS_PATH = FOLDER / "arrivals.csv"
WORKLOAD_PATH = FOLDER / "workload.toml"
CUT_S = 600.0
# The cut begins almost idle; from the second minute on its rate is steady.
DEFAULT_START_S = 60.0
# The 75th percentile of GeneratedTokens in the cut.
BACKGROUND_ABOVE_TOKENS = 405
SUMMARY_WORDS = (30, 120)
PROMPT_WORDS = (SHORTEST_PROMPT_WORDS, 1200)
RULES = {
    "class": f"background when GeneratedTokens is above {BACKGROUND_ABOVE_TOKENS} "
    "(the cut's 75th percentile), else interactive",
    "summary_words": "GeneratedTokens, held to {} to {}".format(*SUMMARY_WORDS),
    "max_output_tokens": "1.5 times summary_words, rounded up",
    "prompt_words": "ContextTokens, held to {} to {}".format(*PROMPT_WORDS),
}
ATTRIBUTION = (
    "Arrivals: Azure Public Dataset, AzureLLMInferenceTrace_conv 2023, first 600 s, CC-BY-4.0; "
    "Patel et al., Splitwise, ISCA 2024. Case texts: invented."
)


def build_trace(
    window_s: float,
    *,
    start_s: float = DEFAULT_START_S,
    rate_scale: float = 1.0,
    seed: int = 1,
) -> Trace:
    """The arrivals of `window_s` seconds, from second `start_s` of the cut on.

    `rate_scale` divides every gap, so twice the scale is twice the rate out of
    twice the stretch of the cut, with the mix untouched. `seed` fixes the case
    texts. The same arguments give the same trace. BadInput when the stretch
    runs beyond the cut (600 s).
    """
    if not (math.isfinite(rate_scale) and rate_scale > 0):
        raise BadInput(f"rate_scale: a number above 0, not {rate_scale}")
    end_s = start_s + window_s * rate_scale
    if end_s > CUT_S:
        raise BadInput(
            f"window: {window_s:g} s at rate scale {rate_scale:g} from second {start_s:g} runs "
            f"beyond the {CUT_S:g} s of arrivals that SUP-SUM-01 ships"
        )
    cut = cut_window(_arrivals(), start_s, end_s)
    requests = [_request(row, rate_scale, seed) for row in cut.requests]
    changes = [
        *cut.header["changes"],
        "prompt lengths, output limits and service classes follow the header's rules",
    ]
    if rate_scale != 1:
        changes.append(f"every arrival is divided by {rate_scale:g}")
    header = {
        **cut.header,
        "name": "SUP-SUM-01",
        "attribution": ATTRIBUTION,
        "licence": "CC-BY-4.0",
        "rules": RULES,
        "rate_scale": rate_scale,
        "seed": seed,
        "changes": changes,
    }
    return Trace(header, requests)


@lru_cache(maxsize=1)
def _arrivals() -> Trace:
    return import_trace(ARRIVALS_PATH, "azure")


def _request(row: TraceRequest, rate_scale: float, seed: int) -> TraceRequest:
    """A case from one row of the cut: its moment, class, limit and text."""
    context, generated = row.prompt_tokens or 0, row.max_output_tokens or 0
    summary = _held(generated, SUMMARY_WORDS)
    case = f"C{int(row.id):05d}"
    background = generated > BACKGROUND_ABOVE_TOKENS
    return TraceRequest(
        id=case,
        at_s=round(row.at_s / rate_scale, 9),
        service_class="background" if background else "interactive",
        prompt=case_prompt(case, _held(context, PROMPT_WORDS), summary, f"{seed}|{case}"),
        max_output_tokens=math.ceil(1.5 * summary),
        case=case,
    )


def _held(value: int, limits: tuple[int, int]) -> int:
    return min(max(value, limits[0]), limits[1])
