"""How far are our times of tokens from the moments at which the server sent them?

Both sides read CLOCK_MONOTONIC of the same machine. The server reads it right before each
send, so an error has the send and the network in it and is never below 0.
"""

from __future__ import annotations

import statistics

import numpy as np

from benchmarks.load import print_part
from benchmarks.load.measure import (
    FAST,
    HTTPX,
    Ask,
    LoadRun,
    in_child,
    run_ours,
    transports,
    truth_server,
)
from benchmarks.table import Row, row

# 100 streams, 5 ms apart and in step, as an engine's batch sends them: 20,000 tokens/s.
STREAMS, TOKENS, REPEATS = 100, 400, 3
HTTPX_TOKENS = 40
TOGETHER, SHORT, BURSTS = 50, 20, 5


def rows() -> list[Row]:
    """Error of time stamps at 20,000 tokens a second; error of TTFT at 50 at once."""
    found: list[Row] = []
    for name in (FAST, HTTPX):
        if name not in transports():
            found.append(Row(f"impakt, {name}: error p99", None, "ms", note="not in this version"))
            continue
        found += _stamp_rows(name)
    found += _floor_rows()
    for name in transports():
        found += _ttft_rows(name)
    return found


def _stamp_rows(name: str) -> list[Row]:
    kernel = name == FAST
    tokens, repeats = (TOKENS, REPEATS) if kernel else (HTTPX_TOKENS, 1)
    asks = [Ask(str(i), at_s=i / 200, tokens=tokens) for i in range(STREAMS)]
    middle, tail, alone, share = [], [], [], []
    for _ in range(repeats):
        run = run_ours(asks, name)
        errors, shared = joined_ms(run)
        middle.append(float(np.percentile(errors, 50)))
        tail.append(float(np.percentile(errors, 99)))
        alone.append(float(np.percentile(errors[~shared], 99)))
        share.append(float(shared.mean()))
    source = "/".join(sorted(run.attempts["stamp_source"].dropna().unique())) or "unknown"
    note = f"{source} stamps, {statistics.median(share):.1%} of tokens shared a receive"
    note += "" if kernel else "; more than this transport can take"
    what = f"impakt, {name}: time-stamp error at 20,000 tokens/s"
    most = 0.1 if kernel else None
    return [
        row(f"{what}, median", middle, "ms", note=note),
        row(f"{what}, p99", tail, "ms", most=most, note=note),
        row(f"{what}, p99 of the last in each receive", alone, "ms"),
    ]


def joined_ms(run: LoadRun, prefix: str = "") -> tuple[np.ndarray, np.ndarray]:
    """Errors of the tokens of all requests with ids like this; which shared a later stamp."""
    errors, shared = run.errors_s(), run.shared()
    ids = [i for i in errors if i.startswith(prefix)]
    return (
        np.concatenate([errors[i] for i in ids]) * 1e3,
        np.concatenate([shared[i] for i in ids]),
    )


def ttft_errors_ms(run: LoadRun) -> tuple[np.ndarray, np.ndarray]:
    """Of TTFT from arrival, and of TTFT from send against what the server took."""
    attempts = run.attempts.set_index("request_id")
    ours_s = attempts["first_token_s"] - attempts["sent_s"]
    truth = run.truth
    took_s = [(truth.sent_ns[i][0] - truth.arrived_ns[i]) / 1e9 for i in attempts.index]
    return run.first_errors_s() * 1e3, (ours_s.to_numpy() - np.array(took_s)) * 1e3


def _ttft_rows(name: str) -> list[Row]:
    asks = [Ask(str(i), tokens=SHORT) for i in range(TOGETHER)]
    runs = [ttft_errors_ms(run_ours(asks, name)) for _ in range(BURSTS)]
    # From send has in it what the server needs to take 50 at once, so it has no target.
    limits = {(0, 50): 1.0, (0, 99): 5.0} if name == FAST else {}
    return [
        row(
            f"impakt, {name}: TTFT error at {TOGETHER} at once, {clock}, {_name(at)}",
            [float(np.percentile(run[which], at)) for run in runs],
            "ms",
            most=limits.get((which, at)),
        )
        for which, clock in enumerate(("from arrival", "from send"))
        for at in (50, 99)
    ]


def _floor_rows() -> list[Row]:
    runs = []
    for _ in range(BURSTS):
        with truth_server() as server:
            told = in_child(
                "floor", url=server.url, streams=TOGETHER, ca_file=None,
                body={"model": "truth", "stream": True, "max_tokens": SHORT},
            )  # fmt: skip
        truth = server.truth
        took_s = [
            (truth.sent_ns[str(i)][0] - truth.arrived_ns[str(i)]) / 1e9 for i in range(TOGETHER)
        ]
        ours_s = np.array(told["first_s"]) - np.array(told["sent_s"])
        runs.append((ours_s - np.array(took_s)) * 1e3)
    return [
        row(
            f"floor: TTFT error at {TOGETHER} at once, from send, {_name(at)}",
            [float(np.percentile(errors, at)) for errors in runs],
            "ms",
        )
        for at in (50, 99)
    ]


def _name(at: int) -> str:
    return "median" if at == 50 else f"p{at}"


if __name__ == "__main__":
    print_part("stamps")
