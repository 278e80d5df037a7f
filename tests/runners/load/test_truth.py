"""What the load client measures agrees with what the reference endpoint knows it did."""

from __future__ import annotations

import numpy as np
import pytest

from records.evidence.folder import EvidenceFolder
from runners.endpoint.testing import serve
from runners.load.run import run_load
from tests.runners.load.conftest import plan_of, rows

REQUESTS = 200
LINES = [
    {"id": f"r{i}", "at_s": i * 0.05, "prompt": None, "prompt_tokens": 64 + i % 32,
     "max_output_tokens": 4 + i % 8}
    for i in range(REQUESTS)
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["continuous", "static"])
def test_times_and_counts_agree_at_light_load(tmp_path, profile):
    """Counts must be exact every time; the times once in three runs on a busy machine."""
    found = []
    for number in range(3):
        found.append(differences_ms(tmp_path / str(number), profile))
        if all(p50 <= 5 and p99 <= 20 for p50, p99 in found[-1].values()):
            return
    pytest.fail(f"TTFT and E2E differ from the truth by (p50, p99) ms: {found}")


def differences_ms(path, profile):
    """p50 and p99 of |ours - truth| for TTFT and E2E from send, after checking every count."""
    with serve(profile) as endpoint:
        outcome = run_load(plan_of(endpoint.url, *LINES, model=endpoint.model), path)
        truth = {t["request_id"]: t for t in endpoint.truth()}
    folder = EvidenceFolder.open(path)
    assert outcome.outcomes == {"completed": REQUESTS}
    assert folder.run["simulated"] is True
    attempts = rows(folder, "attempts")
    assert sorted(a["request_id"] for a in attempts) == sorted(truth)
    chunks = {c["request_id"]: c for c in rows(folder, "chunks")}
    t0 = folder.run["clock"]["monotonic_s"]
    out = {"first_token_s": [], "last_token_s": []}
    for attempt in attempts:
        true = truth[attempt["request_id"]]
        for count in ("prompt_tokens", "output_tokens", "finish_reason"):
            assert attempt[count] == true[count]
        assert sum(chunks[attempt["request_id"]]["tokens"]) == true["output_tokens"]
        # Seen after it was done, sent before it was received, on the one clock that both read.
        assert attempt["first_token_s"] + t0 >= true["first_token_s"]
        assert attempt["sent_s"] + t0 <= true["received_s"]
        for name, values in out.items():
            ours = attempt[name] - attempt["sent_s"]
            values.append(abs(ours - (true[name] - true["received_s"])))
    return {name: np.quantile(values, [0.5, 0.99]) * 1e3 for name, values in out.items()}
