"""Judging adds one set per evidence and rubric, and the record counts by it."""

from __future__ import annotations

import json
import time

import pytest

from records.acceptance.judging import ended_at, judge_folder
from records.acceptance.verdicts import add_verdicts
from records.analysis.record import analyze_folder
from records.errors import BadEvidence, BadInput, BadWorkload
from records.evidence.workload import check_workload


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_set_says_per_workflow_what_each_check_said(make, tmp_path):
    header, *lines = lines_of(judge_folder(make(tmp_path / "f")))
    assert header["schema"] == "impakt.judgments/1"
    assert header["method"] == "automatic"
    # Started at 00:00:01, ended 4.5 s later: the clock of the machine plays no part.
    assert header["created_at"] == "2026-01-01T00:00:05.500Z"
    assert [(x["workflow_id"], x["rubric_passed"], x["severe_failure"]) for x in lines] == [
        ("a", True, False),
        ("b", False, False),
        ("c", False, True),
    ]
    assert lines[1]["criteria"]["length"] == {"passed": False, "reason": "6 words, at most 4"}


def test_judging_twice_gives_the_same_file(make, tmp_path):
    folder = make(tmp_path / "f")
    assert judge_folder(folder) == judge_folder(folder)
    assert len(folder.judgment_sets()) == 1


def test_the_record_counts_what_was_judged_and_names_the_set(make, tmp_path):
    folder = make(tmp_path / "f", rubric=None)
    before = analyze_folder(folder.path)
    assert before["counts"]["accepted"] is None
    assert before["counts"]["unjudged"] == 3
    path = judge_folder(folder)
    record = analyze_folder(folder.path)
    assert f"judgments/{path.name}" in [f["name"] for f in record["inputs"]]
    assert record["counts"]["unjudged"] == 0
    assert record["counts"]["severe_failures"] == 1
    # No objective: accepted goodput is not defined.
    assert record["counts"]["accepted"] is None
    assert record["counts"]["reasons"]["accepted"] == "no objective for class default"


def test_a_set_for_another_rubric_does_not_count(make, tmp_path):
    folder = make(tmp_path / "f")
    other = check_workload(
        {"rubric": {"criteria": [{"id": "x", "check": "length", "params": {"max_words": 9}}]}}, "w"
    )
    judge_folder(folder, other)
    record = analyze_folder(folder.path)
    assert record["counts"]["unjudged"] == 3
    assert "another rubric" in record["counts"]["reasons"]["accepted"]


def test_without_a_check_there_is_nothing_to_run(make, tmp_path):
    folder = make(tmp_path / "f", rubric=[{"id": "x", "check": "human"}])
    assert judge_folder(folder) is None
    assert folder.judgment_sets() == []


def test_a_rubric_with_a_human_part_stays_open_until_a_person_judges(make, tmp_path):
    rubric = [
        {"id": "length", "check": "length", "params": {"max_words": 4}},
        {"id": "true", "check": "human"},
    ]
    folder = make(tmp_path / "f", rubric=rubric)
    said = [line["rubric_passed"] for line in lines_of(judge_folder(folder))[1:]]
    # b is too long, which decides; a and c still wait for a person.
    assert said == [None, False, None]
    # b's open human criterion leaves it unjudged too: its severity is not known.
    assert analyze_folder(folder.path)["counts"]["unjudged"] == 3
    csv = tmp_path / "v.csv"
    csv.write_text("workflow_id,criterion,passed,review_minutes\na,true,yes,1.5\nb,true,yes,\n")
    add_verdicts(folder, csv, folder.workload)
    counts = analyze_folder(folder.path)["counts"]
    assert counts["unjudged"] == 1
    assert counts["review_minutes"] == 1.5


def test_answers_that_were_not_kept_cannot_be_judged(make, tmp_path):
    with pytest.raises(BadInput, match="--capture full"):
        judge_folder(make(tmp_path / "f", keep=False))
    hashes_only = make(tmp_path / "g", answers=dict.fromkeys("abc"))
    with pytest.raises(BadInput, match="request a was not captured"):
        judge_folder(hashes_only)


def test_an_unknown_check_names_the_field(make, tmp_path):
    folder = make(tmp_path / "f", rubric=[{"id": "x", "check": "magic"}])
    with pytest.raises(BadWorkload, match=r"rubric\.criteria\[0\]\.check"):
        judge_folder(folder)


HEAD = "workflow_id,criterion,passed,severe_failure,authority_violation,review_minutes\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("workflow_id,passed\na,true\n", "line 1: criterion"),
        ("workflow_id,criterion,passed,colour\na,cites,true,red\n", "line 1: colour"),
        (HEAD + "zz,cites,true,,,\n", "line 2: workflow_id"),
        (HEAD + "a,cites,true,,,\na,tone,true,,,\n", "line 3: criterion"),
        (HEAD + "a,cites,maybe,,,\n", "line 2: passed"),
        (HEAD + "a,cites,,,,\n", "line 2: passed"),
        (HEAD + "a,cites,true,perhaps,,\n", "line 2: severe_failure"),
        (HEAD + "a,cites,true,,,-1\n", "line 2: review_minutes"),
        (HEAD + "a,cites,true,,,nan\n", "line 2: review_minutes"),
        (HEAD + "a,cites,true,,,1,2\n", "line 2: more fields"),
        (HEAD + "a,cites,true,,,\na,cites,false,,,\n", "line 3: criterion: once"),
        (HEAD, "at least one verdict"),
        ("", "line 1: workflow_id"),
    ],
)
def test_a_bad_verdict_file_names_line_and_column(make, tmp_path, text, said):
    path = tmp_path / "v.csv"
    path.write_text(text)
    folder = make(tmp_path / "f")
    with pytest.raises(BadInput) as caught:
        add_verdicts(folder, path, folder.workload)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)
    assert folder.judgment_sets() == []


def test_uploaded_verdicts_override_automatic_ones_criterion_by_criterion(make, tmp_path):
    folder = make(tmp_path / "f")
    judge_folder(folder)
    csv = tmp_path / "v.csv"
    csv.write_text(HEAD + "c,cites,true,false,,\n")
    add_verdicts(folder, csv, folder.workload)
    # c failed only `cites`, severely; the upload says it did not.
    assert analyze_folder(folder.path)["counts"]["severe_failures"] == 0


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ({"rubric_passed": True}, "workflow_id"),
        ({"workflow_id": "a", "criteria": {"cites": True}}, "criteria.cites.passed"),
        ({"workflow_id": "a", "criteria": [1]}, "criteria"),
        ({"workflow_id": "a", "severe_failure": "no"}, "severe_failure"),
        ({"workflow_id": "a", "review_minutes": "long"}, "review_minutes"),
    ],
)
def test_a_malformed_set_names_its_line_and_field(make, tmp_path, line, field):
    folder = make(tmp_path / "f")
    head = {"schema": "impakt.judgments/1", "rubric_hash": "x"}
    folder.add_judgments("\n".join(json.dumps(x) for x in (head, line)).encode())
    with pytest.raises(BadEvidence) as caught:
        analyze_folder(folder.path)
    assert f":2: {field}" in str(caught.value)


def test_a_start_without_a_zone_is_utc_on_every_machine(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        run = {"created_at": "2026-01-01T00:00:00", "end": {"ended_s": 1.0}}
        assert ended_at(run) == "2026-01-01T00:00:01.000Z"
        run["created_at"] = "2026-01-01T09:00:00+09:00"
        assert ended_at(run) == "2026-01-01T00:00:01.000Z"
    finally:
        monkeypatch.undo()
        time.tzset()
