"""Documents that are JSON or TOML but too deep, too large or not finite are refused in one line."""

from __future__ import annotations

import hashlib
import json

import pytest

from impakt_web.cli.main import run
from records.errors import BadEvidence, BadInput
from records.evidence.canonical import is_number, normalise
from records.evidence.judgments import judgment_bytes, load_judgments
from records.evidence.run_document import check_run

# Larger than any float64.
HUGE = 10**400
# Deeper than the parsers of Python go.
TOWER = "[" * 100_000
ODD = {
    "deep.json": TOWER,
    "deep600.json": '{"prices": ' + "[" * 600 + "]" * 600 + "}",
    "deep.toml": "prices = " + "[" * 5000 + "]" * 5000,
    "nan.json": '{"prices": NaN}',
    "date.toml": "prices = 2020-01-01",
}


@pytest.mark.parametrize("name", sorted(ODD))
@pytest.mark.parametrize("option", ["--workload", "--config"])
def test_a_load_run_refuses_them_before_the_network(tmp_path, capsys, name, option):
    """Exit 2 and one line that names the file."""
    (tmp_path / "t.jsonl").write_text('{"at_s": 0, "prompt": "a"}\n')
    (tmp_path / name).write_text(ODD[name])
    arguments = ["load", "--url", "http://127.0.0.1:9/v1", "--model", "m"]
    arguments += ["--trace", str(tmp_path / "t.jsonl"), "--out", str(tmp_path / "run")]
    assert run([*arguments, option, str(tmp_path / name)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert name in said.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("text", [f"decode_base_s = {HUGE}", "seed = nan", ODD["deep.toml"]])
def test_a_profile_refuses_them(tmp_path, capsys, text):
    """Exit 2 and one line that names the file."""
    (tmp_path / "p.toml").write_text(text)
    assert run(["reference-endpoint", "--port", "0", "--profile", str(tmp_path / "p.toml")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "p.toml" in said


@pytest.mark.parametrize("name", ["run.json", "workload.json", "manifest.json"])
@pytest.mark.parametrize("command", ["analyze", "judge"])
def test_a_folder_with_one_of_them_is_no_evidence(tmp_path, capsys, name, command):
    """Exit 2, one line."""
    for part in ("run.json", "workload.json", "manifest.json"):
        (tmp_path / part).write_text(TOWER if part == name else "{}")
    assert run([command, str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_only_what_float64_holds_is_a_number():
    """A whole number of 401 digits is JSON, but no figure can come of it."""
    assert all(is_number(v) for v in (0, 1.5, 10**300))
    assert not any(is_number(v) for v in (HUGE, True, "1", None, float("nan"), float("inf")))
    with pytest.raises(BadEvidence, match=r"generator\.cpu_s"):
        check_run({"schema": "impakt.run/1", "generator": {"cpu_s": HUGE}}, "run.json")


def test_a_hundred_levels_of_nesting_have_a_hash_and_one_more_has_not():
    """The depth is the number of brackets open at once."""
    value = json.loads("[" * 100 + "]" * 100)
    assert normalise(value) == value
    with pytest.raises(BadInput, match="levels of nesting"):
        normalise([value])


RUBRIC = {"criteria": [{"id": "c", "check": "length"}]}


def _set(tmp_path, **changed):
    line = {"workflow_id": "w", "request_id": "w", "rubric_passed": True, "criteria": {}} | changed
    data = judgment_bytes({"method": "human", "rubric_hash": "h"}, [line])
    path = tmp_path / f"{hashlib.sha256(data).hexdigest()}.jsonl"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x1e"])
def test_a_judgment_ends_at_a_line_feed_only(tmp_path, separator):
    """Other separators of lines are text in JSON: a comment may hold them."""
    said = {"c": {"passed": True, "reason": f"first{separator}second"}}
    path = _set(tmp_path, criteria=said)
    assert load_judgments([path], RUBRIC, "h").verdicts["w"].rubric_passed is True


@pytest.mark.parametrize("minutes", [HUGE, -1])
def test_minutes_that_cannot_be_added_up_are_refused(tmp_path, minutes):
    """A sum over them would be no figure."""
    path = _set(tmp_path, review_minutes=minutes)
    with pytest.raises(BadEvidence, match="review_minutes"):
        load_judgments([path], RUBRIC, "h")
