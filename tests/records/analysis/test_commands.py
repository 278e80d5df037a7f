"""`impakt analyze`, `judge` and `compare` print one document, and their exit code is the answer."""

from __future__ import annotations

import hashlib
import json

import pytest

from impakt_web.cli.main import run
from records.analysis.record import analyze_folder
from records.analysis.summary import record_text
from records.evidence.judgments import judgment_bytes

RUBRIC = {"criteria": [{"id": "short", "check": "length", "params": {"max_words": 3}}]}


def make(made, path, first=0.2, version="1", text="two words", **run_over):
    rows = [
        made.row(f"q{i}", i / 10, [i / 10 + first + i / 1e4, i / 10 + first + 0.3])
        for i in range(20)
    ]
    outputs = [
        {"request_id": f"q{i}", "attempt": 1, "text": text, "reasoning": None,
         "tool_calls": None, "sha256": "0"}
        for i in range(20)
    ]  # fmt: skip
    work = made.workload(classes={"default": {"objective": {"ttft_s": 0.4}}}, rubric=RUBRIC)
    said = made.run(
        run_id=path.name, configuration={"runtime": {"version": version}},
        configuration_fingerprint=version, **run_over,
    )  # fmt: skip
    return made.folder(path, *rows, run=said, workload=work, outputs=outputs, trace=[])


def judged(folder):
    assert run(["judge", str(folder.path)]) == 0
    return str(folder.path)


def test_analyze_prints_only_canonical_json_and_keeps_it(made, tmp_path, capsysbinary):
    folder = make(made, tmp_path / "r")
    assert run(["analyze", str(folder.path), "--json"]) == 0
    first = capsysbinary.readouterr().out
    assert run(["analyze", str(folder.path), "--json"]) == 0
    assert capsysbinary.readouterr().out == first
    (saved,) = folder.records()
    assert saved.read_bytes() == first.rstrip(b"\n")
    assert saved.stem == hashlib.sha256(saved.read_bytes()).hexdigest()


def test_analyze_shows_classes_with_intervals(made, tmp_path, capsys):
    folder = make(made, tmp_path / "r")
    assert run(["analyze", judged(folder)]) == 0
    out = capsys.readouterr().out
    # One class is the whole run, told once.
    assert out.count("\ndefault\n") == out.count("attempted  ") == 1
    assert "all classes" not in out
    # 20 of 20: Wilson's lower limit is 20 / (20 + 1.96^2) = 0.8389.
    assert "accepted        100 % [83.89, 100], n 20" in out


def test_several_classes_are_followed_by_all_of_them(made, tmp_path):
    record = analyze_folder(make(made, tmp_path / "r").path)
    record["classes"] = dict.fromkeys(("one", "two"), record["classes"]["default"])
    names = ("default", "one", "two", "all classes")
    heads = [line for line in record_text(record).splitlines() if line in names]
    assert heads == ["one", "two", "all classes"]


def test_analyze_of_an_invalid_run_says_so_first_and_exits_3(made, tmp_path, capsys):
    folder = make(made, tmp_path / "r", state="interrupted")
    assert run(["analyze", str(folder.path)]) == 3
    assert capsys.readouterr().out.splitlines()[1].startswith("INVALID  interrupted")


def test_analyze_of_a_file_or_of_nothing_is_bad_input(tmp_path, capsys):
    path = tmp_path / "result.json"
    path.write_text("{}")
    for argument in (path, tmp_path / "nowhere", tmp_path):
        assert run(["analyze", str(argument)]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert str(argument) in err


def test_judge_says_how_many_passed(made, tmp_path, capsys):
    folder = make(made, tmp_path / "r", text="far too many words")
    assert run(["judge", str(folder.path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["judged"], said["passed"]) == (20, 0)
    assert said["failed_criteria"] == {"short": 20}
    verdicts = tmp_path / "v.csv"
    verdicts.write_text("workflow_id,criterion,passed\nq0,short,true\n")
    assert run(["judge", str(folder.path), "--verdicts", str(verdicts)]) == 0
    assert "1 judged, 1 passed" in capsys.readouterr().out
    assert run(["analyze", str(folder.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["accepted"] == 1


def test_judge_without_a_rubric_says_so(made, tmp_path, capsys):
    made.folder(tmp_path / "r", made.row("a", 0, [0.5]))
    assert run(["judge", str(tmp_path / "r")]) == 2
    assert "no rubric" in capsys.readouterr().err


def test_judge_by_another_workload_names_its_file(made, tmp_path, capsys):
    folder = make(made, tmp_path / "r")
    other = tmp_path / "w.toml"
    other.write_text('[rubric]\n[[rubric.criteria]]\nid = "x"\ncheck = "magic"\n')
    assert run(["judge", str(folder.path), "--workload", str(other)]) == 2
    err = capsys.readouterr().err
    assert "w.toml" in err
    assert "rubric.criteria[0].check" in err


@pytest.mark.parametrize(("n", "first", "code"), [(3, 0.2, 0), (3, 0.5, 1), (2, 0.2, 3)])
def test_compare_answers_with_its_exit_code(made, tmp_path, capsys, monkeypatch, n, first, code):
    # As if every gate of a decision were there; today an open one keeps 0 out of reach.
    monkeypatch.setattr("records.analysis.gates.completeness.NOT_JUDGED", ())
    # Baseline TTFT runs from 0.399: four of twenty meet 0.4 s, give or take one a replicate.
    old = [
        judged(make(made, tmp_path / f"old{k}", first=0.3985 + k / 1e4, version="1"))
        for k in range(n)
    ]
    new = [
        judged(make(made, tmp_path / f"new{k}", first=first + k / 1e4, version="2"))
        for k in range(n)
    ]
    capsys.readouterr()
    assert run(["compare", *new, "--vs", *old, "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert [r["run_id"] for r in document["baselines"]] == [f"old{k}" for k in range(n)]
    assert document["changed_fields"] == 1
    if n == 2:
        assert run(["compare", *new, "--vs", *old]) == code
        assert capsys.readouterr().out.startswith("NOT ENOUGH EVIDENCE")


def test_compare_needs_both_sides(made, tmp_path, capsys):
    path = str(make(made, tmp_path / "a").path)
    for argv in (["compare", path], ["compare", path, "--vs"], ["compare", "--vs", path]):
        assert run(argv) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_a_tampered_judgment_set_is_refused(made, tmp_path, capsys):
    folder = make(made, tmp_path / "r")
    path = folder.add_judgments(judgment_bytes({"rubric_hash": None}, []))
    path.write_bytes(path.read_bytes() + b"\n")
    assert run(["analyze", str(folder.path)]) == 2
    assert path.name in capsys.readouterr().err
