"""How many tokens a second can one process take in, and what does an open stream weigh?"""

from __future__ import annotations

from benchmarks.load import print_part
from benchmarks.load.measure import Ask, LoadRun, default_transport, run_ours
from benchmarks.table import Row, row

STREAMS, FEW = 1000, 10
# 100,000 tokens a second are asked for, which is near what the server can send.
TOKENS, ITL_MS, RAMP_S = 500, 10.0, 0.5
REPEATS = 2


def rows() -> list[Row]:
    """Tokens a second that were taken in, beside what was sent; KB for each open stream."""
    name = default_transport()
    asks = [
        Ask(str(i), at_s=i / STREAMS * RAMP_S, tokens=TOKENS, itl_ms=ITL_MS) for i in range(STREAMS)
    ]
    taken, sent, per_cpu_s = [], [], []
    for _ in range(REPEATS):
        run = run_ours(asks, name)
        taken_per_s, sent_per_s = rates(run)
        taken.append(taken_per_s)
        sent.append(sent_per_s)
        per_cpu_s.append(run.truth.tokens / run.cpu_s)
    what = f"impakt, {name}: {STREAMS:,} streams"
    return [
        row(f"server: {STREAMS:,} streams", sent, "tokens/s", note="100,000 were asked for"),
        row(f"{what}, taken in", taken, "tokens/s", ("sent", sent), least=60_000.0),
        row(f"{what}, for each CPU second", per_cpu_s, "tokens", note="sealing included"),
        memory_row(name),
    ]


def rates(run: LoadRun) -> tuple[float, float]:
    """Tokens a second from the first token on: taken in, sent.

    Taken in by the moment that the replay was over: what waits in buffers is not.
    """
    times = [sent for sent in run.truth.sent_ns.values() if len(sent)]
    first, last = min(sent[0] for sent in times), max(sent[-1] for sent in times)
    tokens = run.truth.tokens
    return tokens / ((run.ended_ns - first) / 1e9), tokens / ((last - first) / 1e9)


def memory_row(name: str) -> Row:
    """Resident memory with 1,000 open streams less that with 10, of the same process."""
    asks = [Ask(str(i), tokens=60, itl_ms=100.0) for i in range(FEW)]
    late = STREAMS - FEW
    asks += [
        Ask(str(FEW + i), at_s=1.6 + 0.8 * i / late, tokens=36, itl_ms=100.0) for i in range(late)
    ]
    what = f"impakt, {name}: memory per open stream"
    grown = grown_bytes(run_ours(asks, name).rss)
    if grown is None:
        return Row(what, None, "KB", note="no moment was seen with all streams open")
    note = "1,024 bytes; one run, answers and evidence kept meanwhile included"
    return row(what, [grown / late / 1024], "KB", most=20.0, note=note)


def grown_bytes(rss: list[tuple[float, int, int]]) -> float | None:
    """The most with all streams open less the last with few; None when neither was seen."""
    few = [size for _, open_, size in rss if open_ == FEW]
    all_ = [size for _, open_, size in rss if open_ == STREAMS]
    before = few[: next((i for i, s in enumerate(rss) if s[1] > FEW), len(few))]
    return max(all_) - before[-1] if all_ and before else None


if __name__ == "__main__":
    print_part("many")
