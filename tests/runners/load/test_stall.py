"""What users of a stalled server waited is what the record says, from their intended arrival."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from records.analysis.record import record_of_folder
from tests.runners.load.conftest import SLOW_HTTPX, rows
from tests.runners.load.server import sse, token

PER_S, CAP, REQUESTS = 100, 50, 400
STALL_AT, STALL_S = 80, 1.5
FIRST_MS, LAST_MS = 20, 100
ANSWER = {
    "events": [
        [FIRST_MS, sse(token("a"), done=False)],
        [LAST_MS, sse(token("b", "stop"))],
    ]
}
# Kernel stamps do not see how busy we are. httpx reads the clock once it has parsed a head,
# which takes it about a millisecond for each of the 50 that come at once.
CLOSE_S = {"fast": 0.020, "httpx": 0.100}
# How long the crowd after the freeze may take both of us beyond what a queue in theory takes.
CROWD_S = {"fast": 0.150, "httpx": 0.500}


@pytest.mark.parametrize("transport", SLOW_HTTPX)
def test_the_p90_from_intended_arrival_is_that_of_the_servers_log_and_the_schedule(
    serve, load, transport
):
    """100/s under a cap of 50, all of the server frozen for 1.5 s; best of three.

    150 arrive meanwhile, of which 50 are on their way. What the log says is when each token
    was written; what the schedule says is when its user came.
    """
    found = []
    for _ in range(3):
        found.append(differences(serve, load, transport))
        if all(difference < limit for difference, limit in found[-1].values()):
            return
    pytest.fail(f"(difference, limit) in s: {found}")


def differences(serve, load, transport):
    """|record - truth| of the p90 of TTFT and E2E, and how far the truth is from theory."""
    server = serve()

    def script(request):
        if request["headers"]["x-request-id"] == f"r{STALL_AT}":
            server.freeze(STALL_S)
        return ANSWER

    server.script = script
    lines = [{"id": f"r{i}", "at_s": i / PER_S} for i in range(REQUESTS)]
    outcome, folder = load(server.url, *lines, max_concurrency=CAP, transport=transport)
    assert outcome.outcomes == {"completed": REQUESTS}
    t0 = folder.run["clock"]["monotonic_s"]
    written = {(w.request_id, w.event): w.at_s for w in server.log}
    latency = record_of_folder(folder)["latency"]
    begun_s, ended_s = (at - t0 for at in server.frozen[0])
    assert ended_s - begun_s >= STALL_S
    theory = first_tokens_in_theory(begun_s, ended_s)
    out = {}
    for figure, event in (("ttft_s", 1), ("e2e_s", 2)):
        true = [written[f"r{i}", event] - t0 - i / PER_S for i in range(REQUESTS)]
        p90 = float(np.quantile(true, 0.9))
        out[figure] = (abs(latency[figure]["p90"]["value"] - p90), CLOSE_S[transport])
        if event == 1:
            out["theory"] = (abs(p90 - float(np.quantile(theory, 0.9))), CROWD_S[transport])
    # From the send, nobody waited but the 50 who were on their way: a share of 1 in 8.
    sent = {a["request_id"]: a for a in rows(folder, "attempts")}
    from_send = [a["first_token_s"] - a["sent_s"] for a in sent.values()]
    assert np.quantile(from_send, 0.8) < 0.3 < 0.9 < latency["ttft_s"]["p90"]["value"]
    return out


def first_tokens_in_theory(begun_s, ended_s):
    """Waits for the first token, first come first served over CAP slots, frozen in between."""

    def moment(at_s, after_s):
        """When what is due `after_s` after the server reads a request sent at `at_s` is written."""
        read_s = ended_s if begun_s <= at_s < ended_s else at_s
        due_s = read_s + after_s
        return ended_s if begun_s <= due_s < ended_s else due_s

    free = [0.0] * CAP
    waits = []
    for number in range(REQUESTS):
        sent_s = max(number / PER_S, heapq.heappop(free))
        waits.append(moment(sent_s, FIRST_MS / 1e3) - number / PER_S)
        heapq.heappush(free, moment(sent_s, LAST_MS / 1e3))
    return waits
