"""How a number looks on a page: the rules of the design's chapter "Numbers".

Everything else hands over SI units and fractions; only this module rounds,
converts to ms or %, and decides what an unknown is called.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

MINUS = "\u2212"
NBSP = "\u00a0"
SIGNIFICANT = 3
# At and above this many seconds a column of times is shown in s, else in ms.
SECONDS_FROM = 10.0


@dataclass(frozen=True, slots=True)
class Shown:
    """One figure ready for a page: `text` with its limits, or a `word` and the `reason`."""

    text: str = ""
    unit: str = ""
    low: str = ""
    high: str = ""
    n: str = ""
    word: str = ""
    reason: str = ""

    @property
    def known(self) -> bool:
        """Whether there is a value to show."""
        return not self.word

    @property
    def has_interval(self) -> bool:
        """Whether both limits are known."""
        return bool(self.low and self.high)

    @property
    def with_unit(self) -> str:
        """Value, no-break space, unit."""
        return f"{self.text}{NBSP}{self.unit}" if self.unit else self.text

    @property
    def span(self) -> str:
        """The interval as a sentence says it: "4.67 to 4.78"."""
        return f"{self.low} to {self.high}" if self.has_interval else ""

    @property
    def brackets(self) -> str:
        """The interval as a table says it: "[4.67, 4.78]"."""
        return f"[{self.low}, {self.high}]" if self.has_interval else ""

    def __str__(self) -> str:
        return self.with_unit if self.known else self.word


def decimals(low: float, high: float) -> int | None:
    """Decimals that end at the first digit of the half-width, one more if that digit is 1.

    Negative to the left of the point: -2 rounds to hundreds. None for no width.
    """
    half = abs(high - low) / 2
    if not math.isfinite(half) or half == 0:
        return None
    digits, exponent = f"{half:.6e}".split("e")
    return -int(exponent) + (1 if digits[0] == "1" else 0)


def significant(value: float) -> int:
    """Decimals that leave three significant digits, for a value without an interval."""
    if value == 0:
        return 0
    return max(0, SIGNIFICANT - 1 - math.floor(math.log10(abs(value))))


def number(value: float, places: int = 0, *, signed: bool = False) -> str:
    """The value with thousands commas and a real minus; a rounded zero has no sign."""
    rounded = Decimal(repr(float(value))).quantize(
        Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN
    )
    text = f"{abs(rounded):,f}"
    if rounded == 0:
        return text
    if rounded < 0:
        return MINUS + text
    return f"+{text}" if signed else text


def count(value: int | None, reason: str | None = None) -> Shown:
    """A whole number; unknown with its reason."""
    if value is None:
        return unknown(reason)
    return Shown(text=number(value))


def unknown(reason: str | None, grade: str | None = None, word: str = "") -> Shown:
    """What stands where there is no figure: a word, and why."""
    return Shown(word=word or null_word(reason, grade), reason=reason or "no reason was recorded")


_WORDS = (
    ("not computed by", "not yet"),
    ("needed", "too few"),
    ("fewer than", "too few"),
    ("too few", "too few"),
    ("judged", "unjudged"),
    ("no rubric", "no rubric"),
    ("no objective", "no objective"),
    ("not declared", "not declared"),
    ("not given", "not given"),
)


def null_word(reason: str | None, grade: str | None = None) -> str:
    """The short word for an absent figure, from its reason; else *not observable*."""
    text = (reason or "").lower()
    for part, word in _WORDS:
        if part in text:
            return word
    return "not observable" if text or grade == "not_observable" else "unknown"


@dataclass(frozen=True, slots=True)
class Unit:
    """How a quantity is shown: multiplied by `factor`, followed by `name`."""

    name: str
    factor: float = 1.0


MS, S = Unit("ms", 1000.0), Unit("s")
PER_S, PERCENT, POINTS, PLAIN = Unit("/s"), Unit("%", 100.0), Unit("points", 100.0), Unit("")
PER_MIN, PER_HOUR = Unit("/min", 60.0), Unit("/h", 3600.0)


def time_unit(values: Iterable[float | None]) -> Unit:
    """ms while every known value is below 10 s, else s: one unit per column, tile or axis."""
    known = [abs(v) for v in values if v is not None]
    return S if any(v >= SECONDS_FROM for v in known) else MS


def figure(
    value: Mapping[str, Any] | None, unit: Unit, *, reason: str | None = None, signed: bool = False
) -> Shown:
    """An I or P of the record, its limits sharing the decimals its interval allows.

    A percentile that its sample does not support is shown as unknown, with the
    sample size that would be needed.
    """
    if not value or value.get("value") is None:
        given = value or {}
        return unknown(given.get("reason") or reason, given.get("grade"))
    if value.get("supported") is False:
        return unknown(value.get("reason"), word="too few")
    n = value.get("n")
    return plain(
        value["value"], unit, low=value.get("low"), high=value.get("high"),
        n="" if n is None else number(n), signed=signed,
    )  # fmt: skip


def plain(
    value: float | None,
    unit: Unit,
    *,
    low: float | None = None,
    high: float | None = None,
    n: str = "",
    signed: bool = False,
    reason: str | None = None,
) -> Shown:
    """A bare number in its unit; decimals from its limits, else three significant digits."""
    if value is None:
        return unknown(reason)
    scaled = value * unit.factor
    ends = None if low is None or high is None else (low * unit.factor, high * unit.factor)
    places = None if ends is None else decimals(*ends)
    if places is None:
        places = significant(scaled)
    shown = [number(x, places, signed=signed) for x in (scaled, *(ends or ()))]
    low_text, high_text = shown[1:] if ends else ("", "")
    return Shown(shown[0], unit.name, low_text, high_text, n)


def exact(value: float, unit: Unit) -> str:
    """A number somebody set, such as an objective: as it was set, never rounded to intervals."""
    scaled = Decimal(repr(round(value * unit.factor, 6))).normalize()
    places = max(0, -int(scaled.as_tuple().exponent))
    text = number(float(scaled), places)
    return f"{text}{NBSP}{unit.name}" if unit.name else text


def pair(
    baseline: float, candidate: float, difference: Mapping[str, Any], unit: Unit
) -> tuple[str, str]:
    """Both sides of a comparison with the decimals of their difference."""
    low, high = difference.get("low"), difference.get("high")
    places = None
    if low is not None and high is not None:
        places = decimals(low * unit.factor, high * unit.factor)
    sides = [v * unit.factor for v in (baseline, candidate)]
    if places is None:
        places = max(significant(v) for v in sides)
    # A side that is not 0 is not shown as 0, however far the other one is away.
    least = min((abs(v) for v in sides if v), default=0.0)
    if least:
        places = max(places, -math.floor(math.log10(least)))
    return number(baseline * unit.factor, places), number(candidate * unit.factor, places)


def real_minus(text: str) -> str:
    """The text with a minus before each number that has a hyphen there."""
    return re.sub(r"(?<![\w.])-(?=\d)", MINUS, text)


def size(n: int) -> str:
    """Bytes as people read them: 301 KB, 5.2 MB."""
    if n < 1000:
        return f"{n}{NBSP}B"
    value = float(n)
    for name in ("KB", "MB", "GB", "TB"):
        value /= 1000
        if value < 999.5 or name == "TB":
            break
    return f"{number(value, 1 if value < 9.95 else 0)}{NBSP}{name}"


def money(value: float | None, reason: str | None = None) -> Shown:
    """USD; per thousand where cents would vanish."""
    if value is None:
        return unknown(reason)
    if 0 < abs(value) < 1:
        return Shown(text=number(value * 1000, 2), unit="USD per 1,000")
    return Shown(text=number(value, 2), unit="USD")


def duration(seconds: float | None) -> str:
    """A length of time in words: 34 s, 4 min 5 s, 2 h 10 min."""
    if seconds is None:
        return ""
    whole = round(seconds)
    if whole < 60:
        return f"{number(seconds, 0 if seconds >= 10 or seconds == whole else 1)}{NBSP}s"
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes}{NBSP}min" + (f" {rest}{NBSP}s" if rest else "")
    hours, rest = divmod(whole, 3600)
    return f"{number(hours)}{NBSP}h" + (f" {rest // 60}{NBSP}min" if rest >= 60 else "")


def day(at: datetime) -> str:
    """12 Mar 2026."""
    return f"{at.day} {at:%b %Y}"


def moment(at: datetime) -> str:
    """12 Mar 2026, 14:44."""
    return f"{day(at)}, {at:%H:%M}"


def short_moment(at: datetime) -> str:
    """12 Mar 14:44."""
    return f"{at.day} {at:%b} {at:%H:%M}"


def seconds(at: datetime) -> str:
    """12 Mar, 14:44:05."""
    return f"{at.day} {at:%b}, {at:%H:%M:%S}"
