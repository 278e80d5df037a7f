"""`impakt trace` imports, makes, cuts and describes; each mistake is one line and exit 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from impakt_web.cli.main import run
from records.traces.reading import read_trace

CUT = Path(__file__).parents[2] / "samples" / "azure2023" / "conv_first_600s.csv"


@pytest.fixture
def ask(capsys):
    """Run a command; (exit code, stdout, stderr)."""

    def _ask(*args: object) -> tuple[int, str, str]:
        code = run([str(arg) for arg in ("trace", *args)])
        out, err = capsys.readouterr()
        return code, out, err

    return _ask


def test_import_then_describe(ask, tmp_path):
    """The main path: a production trace in, its figures out, as JSON alone on stdout."""
    code, out, err = ask("import", CUT, "-o", tmp_path / "t.jsonl.zst", "--json")
    assert (code, err) == (0, "")
    summary = json.loads(out)
    assert summary["requests"] == 2867
    assert summary["trace_hash"] == read_trace(tmp_path / "t.jsonl.zst").trace_hash
    code, out, err = ask("describe", tmp_path / "t.jsonl.zst", "--json", "--points")
    assert (code, err) == (0, "")
    figures = json.loads(out)
    wanted = "requests span_s rate_per_s cv burstiness dispersion prompt_tokens output_tokens"
    assert set(wanted.split()) <= set(figures)
    assert {"classes", "prefix_reuse", "sessions", "warnings"} <= set(figures)
    assert len(figures["points"]["rate"]["rate_per_s"]) == 200


def test_describe_for_people_is_an_aligned_table(ask, tmp_path):
    """One figure a line, labels of one width, unknown ones with their reason."""
    ask("import", CUT, "--class", "interactive", "-o", tmp_path / "t.jsonl")
    code, out, _ = ask("describe", tmp_path / "t.jsonl")
    lines = out.splitlines()
    assert code == 0
    assert "class interactive  2867 requests, 100.0%" in lines
    assert "prefix reuse       unknown (no request names prefix blocks)" in lines


def test_make_and_cut(ask, tmp_path):
    """A specification becomes a trace and a window of it another."""
    spec = tmp_path / "s.toml"
    spec.write_text('[arrivals]\nprocess = "constant"\nrate_per_s = 2\nduration_s = 10\n')
    assert ask("make", spec, "-o", tmp_path / "t.jsonl.gz")[0] == 0
    code, out, _ = ask(
        "cut", tmp_path / "t.jsonl.gz", "--start", 2, "--end", 4, "-o", tmp_path / "c.jsonl"
    )
    # 2.0, 2.5, 3.0 and 3.5 s of the parent
    assert (code, out) == (0, f"{tmp_path / 'c.jsonl'}: 4 requests over 1.500 s\n")


def test_changes_are_told(ask, tmp_path):
    """A reordered file says so on the screen as in the header."""
    rows = (
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-01-01 00:00:02,1,1\n2023-01-01 00:00:01,1,1"
    )
    (tmp_path / "a.csv").write_text(rows)
    _, out, _ = ask("import", tmp_path / "a.csv", "-o", tmp_path / "t.jsonl")
    assert "changed: rows earlier than the row above them: 1" in out


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("describe", "gone.jsonl"), "gone.jsonl: a readable file"),
        (("describe", "bad.jsonl"), "bad.jsonl: line 1: at_s: "),
        (("import", "bad.txt", "-o", "t.jsonl"), "not a trace of a known format (plain, azure"),
        (("import", "bad.jsonl", "--format", "x", "-o", "t"), "--format: one of"),
        (("import", "bad.jsonl"), "-o"),
        (("make", "bad.txt", "-o", "t.jsonl"), "bad.txt: TOML"),
        (("cut", "good.jsonl", "--end", "-1", "-o", "t"), "window: "),
        (("cut", "good.jsonl", "--end", "soon", "-o", "t"), "soon"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(ask, tmp_path, monkeypatch, args, expected):
    """Named file, line or option; no traceback; nothing written."""
    monkeypatch.chdir(tmp_path)
    Path("bad.jsonl").write_text('{"prompt": "a"}\n')
    Path("bad.txt").write_text("what, is, this\n")
    Path("good.jsonl").write_text('{"at_s": 0, "prompt": "a"}\n')
    before = set(Path().iterdir())
    code, out, err = ask(*args)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert expected in err
    assert set(Path().iterdir()) == before


def test_every_command_has_help_with_an_example(ask):
    """--help shows how it is called."""
    for name in ("import", "make", "cut", "describe"):
        code, out, _ = ask(name, "--help")
        assert code == 0
        assert f"Example: impakt trace {name}" in out
