"""What the load client measures agrees with what the reference endpoint knows it did."""

from __future__ import annotations

import numpy as np
import pytest

from records.evidence.folder import EvidenceFolder
from runners.endpoint.testing import serve
from runners.load.run import run_load
from tests.runners.load.conftest import plan_of, rows

REQUESTS = 200


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["continuous", "static"])
def test_times_and_counts_agree_at_light_load(tmp_path, profile):
    lines = [
        {"id": f"r{i}", "at_s": i * 0.05, "prompt": None, "prompt_tokens": 64 + i % 32,
         "max_output_tokens": 4 + i % 8}
        for i in range(REQUESTS)
    ]  # fmt: skip
    with serve(profile) as endpoint:
        outcome = run_load(plan_of(endpoint.url, *lines, model=endpoint.model), tmp_path / "f")
        truth = {t["request_id"]: t for t in endpoint.truth()}
    folder = EvidenceFolder.open(tmp_path / "f")
    assert outcome.outcomes == {"completed": REQUESTS}
    assert folder.run["simulated"] is True
    attempts = rows(folder, "attempts")
    chunks = {c["request_id"]: c for c in rows(folder, "chunks")}
    assert {a["request_id"] for a in attempts} == set(truth)
    t0 = folder.run["clock"]["monotonic_s"]
    ttft, e2e = [], []
    for attempt in attempts:
        true = truth[attempt["request_id"]]
        for count in ("prompt_tokens", "output_tokens", "finish_reason"):
            assert attempt[count] == true[count]
        assert sum(chunks[attempt["request_id"]]["tokens"]) == true["output_tokens"]
        # Seen after it was done, on the one clock that both read.
        assert attempt["first_token_s"] + t0 >= true["first_token_s"]
        for name, out in (("first_token_s", ttft), ("last_token_s", e2e)):
            ours = attempt[name] - attempt["sent_s"]
            out.append(abs(ours - (true[name] - true["received_s"])))
    for differences in (ttft, e2e):
        assert np.quantile(differences, 0.5) <= 0.005
        assert np.quantile(differences, 0.99) <= 0.020
