"""A sealed folder of three answered requests and one failed, with a rubric of two checks."""

from __future__ import annotations

import json

import pytest

from records.evidence.folder import write_folder
from records.evidence.workload import check_workload

CRITERIA = [
    {"id": "length", "check": "length", "params": {"max_words_from_prompt": r"most (\d+) words"}},
    {"id": "cites", "check": "citations", "params": {"min": 1}, "severe": True},
]
PROMPT = "Evidence:\n[E1] Customer: it broke.\nSummarise in at most 4 words."
ANSWERS = {"a": "It broke [E1].", "b": "It broke at night, alas [E1].", "c": "It broke."}


def run_json():
    return {
        "schema": "impakt.run/1", "run_id": "r", "state": "completed",
        "created_at": "2026-01-01T00:00:00Z", "window": {"start_s": 0, "end_s": 3},
        "clock": {"started_at": "2026-01-01T00:00:01Z", "monotonic_s": 5.0},
        "end": {"ended_s": 4.5, "reason": "done", "text": ""}, "configuration": {},
    }  # fmt: skip


def make_folder(path, rubric=None, answers=ANSWERS, keep=True):
    ids = ["a", "b", "c", "d"]
    rows = [
        {
            "request_id": i, "workflow_id": i, "class": "default", "intended_s": float(k),
            "outcome": "completed" if i in ANSWERS else "failed", "attempts": 1,
            "fallback": False, "in_window": True, "first_token_s": k + 0.1,
            "last_token_s": k + 0.2, "end_s": k + 0.2, "output_tokens": 3,
        }
        for k, i in enumerate(ids)
    ]  # fmt: skip
    tries = [
        {"request_id": r["request_id"], "attempt": 1, "sent_s": r["intended_s"],
         "end_s": r["end_s"], "outcome": r["outcome"]}
        for r in rows
    ]  # fmt: skip
    trace = [
        json.dumps({"id": i, "at_s": k, "prompt": PROMPT, "max_output_tokens": 9})
        for k, i in enumerate(ids)
    ]
    outputs = [
        {"request_id": i, "attempt": 1, "text": t, "reasoning": None, "tool_calls": None,
         "sha256": "0"}
        for i, t in answers.items()
    ]  # fmt: skip
    work = check_workload({"rubric": {"criteria": CRITERIA if rubric is None else rubric}}, "w")
    return write_folder(
        path, run_json(), work, trace, {"requests": rows, "attempts": tries},
        outputs if keep else None,
    )  # fmt: skip


@pytest.fixture
def make():
    return make_folder
