"""A comparison's document as its page shows it: the answer first, bad news before good."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from records.charts.figure import Scene
from records.charts.goodput_difference import goodput_difference
from records.models import Comparison
from records.models.choices import Verdict
from records.web import format as fmt
from records.web.format import Shown
from records.web.pages import comparison_gates, comparison_moves
from records.web.pages.run_charts import Chart

Document = Mapping[str, Any]
_LOOKS = {
    Verdict.ADOPT: ("adopt", "adopt"),
    Verdict.DO_NOT_ADOPT: ("do-not-adopt", "reject"),
    Verdict.NOT_ENOUGH_EVIDENCE: ("not-enough", "unknown"),
}


def comparison_page(comparison: Comparison) -> dict[str, Any]:
    """Context of the page, from the stored document alone."""
    document: Document = comparison.document
    verdict = Verdict(document["verdict"])
    look, icon = _LOOKS[verdict]
    workload = comparison.workload
    order = workload.class_names if workload else []
    found = comparison_gates.gates(document)
    return {
        "document": document,
        "verdict": {"word": verdict.label, "look": look, "icon": icon},
        "sentence": _sentence(document),
        "deciding": _deciding(document),
        "chart": _chart(document, order),
        "gates": found,
        "gate_counts": comparison_gates.counted(found),
        "items": _items(document),
        "moves": comparison_moves.moves(document),
        "unknown_moves": comparison_moves.unknown(document),
        "sure": _sure(document),
    }


def _of(document: Document, metric: str, name: str | None) -> dict[str, Any]:
    rows = document.get("differences") or []
    return next((d for d in rows if d["metric"] == metric and d["class"] == name), {})


def _relative(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "value": row.get("relative"), "low": row.get("relative_low"),
        "high": row.get("relative_high"), "reason": row.get("reason"),
    }  # fmt: skip


def _sentence(document: Document) -> str:
    """What was found, and why that is or is not enough."""
    if document.get("refused"):
        titles = [
            i["title"] for i in document["comparability"] if i["required"] and i["same"] is not True
        ]
        return f"These runs cannot be compared: {'; '.join(titles)}. No figure decides anything."
    change = fmt.figure(_relative(_of(document, "accepted_per_s", None)), fmt.PERCENT, signed=True)
    moved = "The change of accepted goodput is not known"
    if change.known:
        moved = f"Accepted goodput changes by {change.with_unit}"
        if change.has_interval:
            moved += f", 95{fmt.NBSP}% interval {change.span}{fmt.NBSP}%"
    results = [g["result"] for g in document["gates"]]
    failed = [g["title"] for g in document["gates"] if g["result"] == "fail"]
    undecided = [g["title"] for g in document["gates"] if g["result"] == "not_enough_evidence"]
    if failed:
        return f"{moved}, and {_many(len(failed), 'gate fails', 'gates fail')}: {_list(failed)}."
    if undecided:
        said = _many(len(undecided), "gate is", "gates are")
        return f"{moved}, but {said} undecided: {_list(undecided)}."
    return f"{moved}, and all {len(results)} gates pass."


def _many(n: int, one: str, more: str) -> str:
    return f"{n} {one if n == 1 else more}"


def _list(names: Sequence[str]) -> str:
    return "; ".join(names)


def _deciding(document: Document) -> dict[str, Any]:
    row = _of(document, "accepted_per_s", None)
    change = fmt.figure(_relative(row), fmt.PERCENT, signed=True)
    absolute = fmt.plain(
        row.get("difference"), fmt.PER_S, low=row.get("low"), high=row.get("high"), signed=True,
        reason=row.get("reason"),
    )  # fmt: skip
    old, new = ((row.get(side) or {}).get("value") for side in ("baseline", "candidate"))
    sides = ""
    if old is not None and new is not None:
        before, after = fmt.pair(old, new, row, fmt.PER_S)
        sides = f"{before} → {after} accepted per second"
        sides += f"; {fmt.number(old * 3600, -1)} → {fmt.number(new * 3600, -1)} per hour"
    return {"change": change, "absolute": absolute, "sides": sides, "tone": _tone(row)}


def _tone(row: Mapping[str, Any]) -> str:
    low, high = row.get("relative_low"), row.get("relative_high")
    if low is None or high is None or low <= 0 <= high:
        return ""
    return "positive" if low > 0 else "negative"


def _chart(document: Document, order: Sequence[str]) -> Chart:
    found = [d["class"] for d in document["differences"] if d["metric"] == "accepted_per_s"]
    ordered = Scene(classes=order).in_order([n for n in found if n])
    rows = [
        {"name": n or "All classes", **_relative(_of(document, "accepted_per_s", n))}
        for n in (None, *ordered)
    ]
    gate = next(
        (g for g in document["gates"] if g["name"] == "accepted_goodput_improves"), {"limit": None}
    )
    question = "Change of accepted goodput, by class"
    figure = goodput_difference(rows, Scene(classes=ordered), gate["limit"])
    return Chart("difference", question, figure, "No class has a change that is known.")


def _items(document: Document) -> list[dict[str, Any]]:
    """What must be shared, what differs first."""
    out = []
    for item in document["comparability"]:
        same, required = item["same"], item["required"]
        if same:
            tone, icon, word = "positive", "check", "same"
        elif not required:
            tone, icon, word = "neutral", "unknown", "differs, allowed"
        else:
            tone, icon = "negative", "reject"
            word = "not known" if same is None else "differs"
        detail = _shown(item["candidate"] if item["baseline"] is None else item["baseline"])
        if not same and item["baseline"] is not None:
            detail = f"{_shown(item['baseline'])} against {_shown(item['candidate'])}"
        out.append(
            {
                "title": item["title"], "tone": tone, "icon": icon, "word": word, "detail": detail,
                "rerun": item["rerun"] if tone == "negative" else "",
            }
        )  # fmt: skip
    order = {"negative": 0, "neutral": 1, "positive": 2}
    return sorted(out, key=lambda i: order[i["tone"]])


def _shown(value: Any) -> str:
    if value is None:
        return "none on either side"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value[:8] if len(value) == 64 else _words(value)
    if isinstance(value, Mapping):
        if set(value) == {"start_s", "end_s"}:
            return f"{value['start_s']:g} to {value['end_s']:g}{fmt.NBSP}s"
        return ", ".join(_pair(k, v) for k, v in value.items())
    if isinstance(value, Sequence):
        return ", ".join(_shown(v) for v in value)
    return fmt.number(value) if isinstance(value, int) else f"{value:g}"


def _pair(key: str, value: Any) -> str:
    """A field with its value: "timeout 60 s", "max concurrency none"."""
    name, unit = (key[:-2], f"{fmt.NBSP}s") if key.endswith("_s") else (key, "")
    shown = "none" if value is None else _shown(value) + unit
    return f"{_words(name)} {shown}"


def _words(key: str) -> str:
    """open_loop as "open loop"; other text as it is."""
    return key.replace("_", " ") if re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", key) else key


def _sure(document: Document) -> list[tuple[str, Shown | str]]:
    olds, news = len(document["baselines"]), len(document["candidates"])
    attempted = next((i for i in document["comparability"] if i["item"] == "attempted"), {})
    return [
        ("Replicates", f"{olds} baseline, {news} candidate"),
        ("Method", "Welch interval over replicate means, 95 %; replicates are the unit"),
        ("Requests", f"{_shown(attempted.get('baseline'))} attempted in each run, none left out"),
        ("Workload", document.get("workload") or "not named"),
    ]
