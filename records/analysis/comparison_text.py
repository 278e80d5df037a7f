"""A comparison as a few lines of text, for a terminal: bad news first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

UNKNOWN = "–"
_RANK = {"fail": 0, "not_enough_evidence": 1, "pass": 2}
_WORDS = {"fail": "FAIL", "not_enough_evidence": "OPEN", "pass": "pass"}
_VERDICT = {
    "adopt": "ADOPT",
    "do_not_adopt": "DO NOT ADOPT",
    "not_enough_evidence": "NOT ENOUGH EVIDENCE",
}


def comparison_text(document: Mapping[str, Any]) -> str:
    """The verdict, what stands against it, the gates with the failed first, the differences."""
    lines = [_VERDICT[document["verdict"]]]
    if document["refused"]:
        lines.append("refused: the runs are not comparable")
        lines += [_item(i) for i in document["comparability"] if i["required"] and not i["same"]]
        lines += [f"  to do: {text}" for text in dict.fromkeys(document["rerun"])]
    lines += [f"note  {note}" for note in document["notes"]]
    lines.append(f"note  not judged: {', '.join(document['not_judged'])}")
    lines += ["", "gates", *_gates(document["gates"])]
    lines += ["", f"configuration: {document['changed_fields']} fields differ"]
    lines += [
        f"  {d['field']}: {_plain(d['baseline'])} -> {_plain(d['candidate'])}"
        for d in document["configuration_diff"]
    ]
    lines += ["", "differences, candidate against baseline", *_differences(document)]
    return "\n".join(lines)


def _item(item: Mapping[str, Any]) -> str:
    return f"  {item['title']}: {_plain(item['baseline'])} / {_plain(item['candidate'])}"


def _plain(value: Any) -> str:
    if value is None:
        return UNKNOWN
    text = str(value)
    # A hash is told apart by its first figures.
    return text[:12] + "…" if len(text) == 64 and text.isalnum() else text


def _gates(gates: Sequence[Mapping[str, Any]]) -> list[str]:
    ordered = sorted(gates, key=lambda g: _RANK[g["result"]])
    out = []
    for gate in ordered:
        figures = ""
        if gate["difference"] is not None and gate["difference_unit"] in ("relative", "fraction"):
            sign = " %" if gate["difference_unit"] == "relative" else " points"
            figures = "  " + _interval(gate["difference"], gate["low"], gate["high"], sign)
        reason = f"  ({gate['reason']})" if gate["reason"] else ""
        out.append(
            f"  {_WORDS[gate['result']]}  {gate['title']}: {gate['threshold']}{figures}{reason}"
        )
    return out


def _interval(value: float, low: float | None, high: float | None, sign: str) -> str:
    def one(number: float | None) -> str:
        return UNKNOWN if number is None else f"{100 * number:+.1f}"

    return f"{one(value)}{sign} [{one(low)}, {one(high)}]"


def _differences(document: Mapping[str, Any]) -> list[str]:
    ordered = sorted(document["differences"], key=_badness)
    return [f"  {_difference(d)}" for d in ordered]


def _badness(found: Mapping[str, Any]) -> tuple[int, float]:
    """Worse first, then better, then what has no figure."""
    change = found["relative"]
    if change is None:
        return 1, 0.0
    return 0, change if found["better"] == "higher" else -change


def _difference(found: Mapping[str, Any]) -> str:
    name = f"{found['metric']}, {found['class'] or 'all classes'}"
    old, new = found["baseline"]["value"], found["candidate"]["value"]
    if old is None or new is None:
        return f"{name}: {UNKNOWN} ({found['reason']})"
    text = f"{name}: {old:.4g} -> {new:.4g} {found['unit']}"
    if found["relative"] is None:
        return text
    limits = _interval(found["relative"], found["relative_low"], found["relative_high"], " %")
    return f"{text}, {limits}" + (f" ({found['reason']})" if found["reason"] else "")
