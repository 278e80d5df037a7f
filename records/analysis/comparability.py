"""Whether runs may be compared: item by item, what both sides share and what differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]
# The interventions that change the prompt itself, so that it may differ.
PROMPT_INTERVENTIONS = ("prompt", "context", "evidence_selection")


@dataclass(frozen=True)
class Item:
    """One thing to compare: how a record tells it, and what to do when sides differ.

    `required` items must be the same for a verdict. `known` ones must also be
    known: two runs that do not say what was asked of them may have been asked
    different things. Elsewhere null means that there is none.
    """

    name: str
    title: str
    value: Callable[[Record], Any]
    rerun: str
    required: bool = True
    known: bool = False


def _run(key: str) -> Callable[[Record], Any]:
    return lambda record: record["run"].get(key)


ITEMS = (
    Item("demand_hash", "Demand: who arrives when, wanting what", _run("demand_hash"),
         "run both sides on one trace", known=True),
    Item("prompt_hash", "Prompts", _run("prompt_hash"),
         "run both sides on the same prompts, or declare the prompt as the intervention",
         known=True),
    Item("objectives_hash", "Service objectives", _run("objectives_hash"),
         "run both sides against the same objectives"),
    Item("rubric_hash", "Rubric", _run("rubric_hash"), "judge both sides by the same rubric"),
    Item("evidence_packet_hash", "Evidence packet", _run("evidence_packet_hash"),
         "run both sides with the same evidence packet"),
    Item("case_set_hash", "Difficult cases", _run("case_set_hash"),
         "run both sides on the same cases"),
    Item("window", "Measurement window", _run("declared_window"),
         "run both sides with the same window"),
    Item("cache_state", "Cache state", _run("cache_state"),
         "run both sides with the same cache state"),
    Item("attempted", "Denominator: attempted requests of the window",
         lambda record: record["counts"]["attempted"],
         "run both sides to the end of the window"),
    Item("simulated", "Simulated endpoint", _run("simulated"),
         "run both sides on the same kind of endpoint"),
    Item("valid", "Valid runs", lambda record: record["valid"],
         "repeat the runs that are not valid"),
    Item("analysis_version", "Analysis version", lambda record: record["analysis_version"],
         "analyse both sides with one version"),
    Item("workload_hash", "Workload document", _run("workload_hash"), "", required=False),
    Item("policies", "Failure and admission policies", _run("policies"), "", required=False),
)  # fmt: skip


def comparability(
    candidates: Sequence[Record], baselines: Sequence[Record], intervention: str | None = None
) -> list[dict[str, Any]]:
    """Every item with both sides: {item, title, baseline, candidate, same, required, rerun}.

    A side shows its one value, or the list of them where its runs differ. All
    runs of both sides must agree for `same`; `same` is None where an item that
    must be known is not. Prompts are not required to be the same when the
    declared intervention is the prompt, its context or its evidence selection.
    """
    out = []
    for item in ITEMS:
        required = item.required
        if item.name == "prompt_hash" and intervention in PROMPT_INTERVENTIONS:
            required = False
        out.append(_compared(item, required, candidates, baselines))
    for side, records in (("baseline", baselines), ("candidate", candidates)):
        out.append(_one_configuration(side, records))
    return out


def _compared(
    item: Item, required: bool, candidates: Sequence[Record], baselines: Sequence[Record]
) -> dict[str, Any]:
    mine, theirs = _values(item.value, candidates), _values(item.value, baselines)
    same: bool | None = len(mine) == len(theirs) == 1 and mine == theirs
    if same and item.name == "valid":
        same = mine[0] is True
    if same and item.known and mine[0] is None:
        same = None
    return {
        "item": item.name,
        "title": item.title,
        "baseline": _shown(theirs),
        "candidate": _shown(mine),
        "same": same,
        "required": required,
        "rerun": item.rerun or None,
    }


def _one_configuration(side: str, records: Sequence[Record]) -> dict[str, Any]:
    """The replicates of one side must be of one configuration, or they are no replicates."""
    values = _values(_run("configuration_fingerprint"), records)
    return {
        "item": f"{side}_configuration",
        "title": f"One configuration in all {side} runs",
        "baseline": _shown(values) if side == "baseline" else None,
        "candidate": _shown(values) if side == "candidate" else None,
        "same": len(values) == 1,
        "required": True,
        "rerun": f"give {side} runs of one configuration only",
    }


def _values(value: Callable[[Record], Any], records: Sequence[Record]) -> list[Any]:
    """The distinct values over some records, in order of appearance."""
    out: list[Any] = []
    for record in records:
        found = value(record)
        if found not in out:
            out.append(found)
    return out


def _shown(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def differing(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The required items that are not the same: while there is one, there is no verdict."""
    return [i for i in items if i["required"] and i["same"] is not True]


def configuration_diff(
    candidates: Sequence[Record], baselines: Sequence[Record]
) -> list[dict[str, Any]]:
    """The fields in which the first candidate's and baseline's configurations differ.

    Nested fields by their path: runtime.version. {field, baseline, candidate}.
    """
    old, new = (
        flattened(baselines[0]["run"]["configuration"]),
        flattened(candidates[0]["run"]["configuration"]),
    )
    return [
        {"field": field, "baseline": old.get(field), "candidate": new.get(field)}
        for field in sorted(set(old) | set(new))
        if old.get(field) != new.get(field) or (field in old) != (field in new)
    ]


def flattened(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested document as {path: leaf}; an empty object is a leaf."""
    out: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, Mapping) and item:
            out |= flattened(item, f"{prefix}{key}.")
        else:
            out[f"{prefix}{key}"] = item
    return out
