"""What does one more streamed token cost, and what does a whole run?

50 streams, 5 ms apart: CPU of long answers less CPU of short ones, by the tokens between
them; evidence is written in both. The least of the repeats, for a busy machine only adds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.load import print_part
from benchmarks.load.measure import (
    FAST,
    HTTPX,
    Ask,
    in_child,
    marginal_us,
    run_ours,
    transports,
    truth_server,
)
from benchmarks.table import Row, row

STREAMS, MANY, FEW, REPEATS = 50, 600, 100, 3
# httpx takes long enough to be a load of its own.
HTTPX_MANY, HTTPX_FEW = 120, 40
FLOOR, TLS_FLOOR = "floor", "floor, TLS"


@dataclass
class Costs:
    """CPU seconds of long and short runs, and of the whole processes of the long ones."""

    many: int
    few: int
    many_s: list[float] = field(default_factory=list)
    few_s: list[float] = field(default_factory=list)
    process_s: list[float] = field(default_factory=list)

    def marginal_us(self) -> list[float]:
        return marginal_us(self.many_s, self.few_s, STREAMS * (self.many - self.few))

    def whole_us(self) -> list[float]:
        return [cpu_s * 1e6 / (STREAMS * self.many) for cpu_s in self.process_s]


def rows() -> list[Row]:
    """Marginal and whole-run CPU beside the floor client, plain and over TLS."""
    floor, tls_floor = Costs(MANY, FEW), Costs(MANY, FEW)
    fast, tls, httpx = Costs(MANY, FEW), Costs(MANY, FEW), Costs(HTTPX_MANY, HTTPX_FEW)
    has_fast = FAST in transports()
    for _ in range(REPEATS):
        _floor(floor)
        if has_fast:
            _ours(fast, FAST)
    _floor(tls_floor, tls=True)
    if has_fast:
        for _ in range(REPEATS - 1):
            _ours(tls, FAST, tls=True)
    _ours(httpx, HTTPX)
    return [*_rows(FLOOR, floor), *_ours_rows(has_fast, fast, floor), *_rows(TLS_FLOOR, tls_floor),
            *_tls_rows(has_fast, tls, tls_floor), *_rows(HTTPX, httpx)]  # fmt: skip


def _rows(name: str, costs: Costs) -> list[Row]:
    note = f"whole process, {STREAMS * costs.many:,} tokens"
    return [
        _marginal(f"{name}: marginal CPU", costs),
        row(f"{name}: whole run", costs.whole_us(), "us/token", best=True, note=note),
    ]


def _marginal(
    what: str, costs: Costs, floor: Costs | None = None, name: str = FLOOR,
    most: float | None = None, ratio_most: float | None = None,
) -> Row:  # fmt: skip
    """The first of the costs is of the least of each; the others give the range."""
    chosen, *pairs = costs.marginal_us()
    ratio = None if floor is None else chosen / floor.marginal_us()[0]
    return Row(
        what, chosen, "us/token", len(pairs), min(pairs), max(pairs),
        None if floor is None else name, ratio, most=most, ratio_most=ratio_most,
    )  # fmt: skip


def _ours_rows(has_fast: bool, fast: Costs, floor: Costs) -> list[Row]:
    what = f"impakt, {FAST}: marginal CPU"
    if not has_fast:
        return [Row(what, None, "us/token", note="not in this version")]
    whole = _rows(f"impakt, {FAST}", fast)[1]
    return [_marginal(what, fast, floor, FLOOR, most=12.0, ratio_most=1.4), whole]


def _tls_rows(has_fast: bool, tls: Costs, floor: Costs) -> list[Row]:
    what = f"impakt, {FAST}, TLS: marginal CPU"
    if not has_fast:
        return [Row(what, None, "us/token", note="not in this version")]
    return [_marginal(what, tls, floor, TLS_FLOOR)]


def _ours(costs: Costs, transport: str, tls: bool = False) -> None:
    long, short = (
        run_ours([Ask(str(i), tokens=tokens) for i in range(STREAMS)], transport, tls)
        for tokens in (costs.many, costs.few)
    )
    costs.many_s.append(long.cpu_s)
    costs.few_s.append(short.cpu_s)
    costs.process_s.append(long.process_cpu_s)


def _floor(costs: Costs, tls: bool = False) -> None:
    for tokens, into in ((costs.many, costs.many_s), (costs.few, costs.few_s)):
        with truth_server(tls) as server:
            told = in_child(
                "floor", url=server.url, streams=STREAMS, ca_file=server.ca_file,
                body={"model": "truth", "stream": True, "max_tokens": tokens},
            )  # fmt: skip
        into.append(told["cpu_s"])
        if tokens == costs.many:
            costs.process_s.append(told["process_cpu_s"])


if __name__ == "__main__":
    print_part("cpu")
