"""`impakt load` and `impakt verify` from the command line: what they print and answer with."""

from __future__ import annotations

import json
import shutil

import pytest

from impakt_web.cli.main import run
from tests.runners.load.server import ANSWER, ScriptedServer


@pytest.fixture
def server():
    one = ScriptedServer(lambda request: ANSWER)
    yield one
    one.close()


@pytest.fixture
def arguments(server, tmp_path):
    return _arguments(server, tmp_path)


def _arguments(server, tmp_path):
    """The arguments of a load run of twenty requests in one second."""
    trace = tmp_path / "t.jsonl"
    lines = [{"at_s": i * 0.05, "prompt": "hi", "max_output_tokens": 4} for i in range(20)]
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = tmp_path / "run"
    # The limit is wide: a busy machine must not fail what these tests are about.
    return [
        "load", "--url", server.url, "--model", "m", "--trace", str(trace), "--out", str(out),
        "--lag-limit", "5",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """A folder that `impakt load` left, for every test here; only copies are changed."""
    folder = tmp_path_factory.mktemp("loaded")
    server = ScriptedServer(lambda request: ANSWER)
    try:
        assert run(_arguments(server, folder)) == 0
    finally:
        server.close()
    return folder / "run"


@pytest.fixture
def measured(loaded, tmp_path):
    """A copy of a folder that `impakt load` left."""
    return shutil.copytree(loaded, tmp_path / "run", symlinks=True)


def test_json_is_one_document_and_the_same_that_analyze_prints(arguments, tmp_path, capsys):
    assert run([*arguments, "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    record = json.loads(printed.out)
    assert record["counts"]["completed"] == 20
    assert record["run"]["model"] == "m"
    assert run(["analyze", str(tmp_path / "run"), "--json"]) == 0
    assert capsys.readouterr().out == printed.out


def test_without_json_a_summary_is_printed(arguments, capsys):
    assert run(arguments) == 0
    assert "20 completed" in capsys.readouterr().out


def test_configuration_and_workload_come_from_files(arguments, tmp_path):
    config, workload = tmp_path / "c.toml", tmp_path / "w.toml"
    config.write_text('precision = "fp8"\n[runtime]\nname = "vllm"\nversion = "0.32"\n')
    workload.write_text("[classes.default.objective]\nttft_s = 0.5\n")
    assert run([*arguments, "--config", str(config), "--workload", str(workload)]) == 0
    written = json.loads((tmp_path / "run" / "run.json").read_text())
    assert written["configuration"] == {
        "precision": "fp8", "runtime": {"name": "vllm", "version": "0.32"}, "model": "m",
    }  # fmt: skip
    stored = json.loads((tmp_path / "run" / "workload.json").read_text())
    assert stored["classes"]["default"]["objective"] == {"ttft_s": 0.5}


def test_a_folder_that_holds_something_is_refused_before_the_network(
    arguments, server, tmp_path, capsys
):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("x")
    assert run(arguments) == 2
    assert "empty" in capsys.readouterr().err
    assert server.seen == []


@pytest.mark.parametrize(
    "option",
    [["--shards", "2"], ["--policy", "p.toml"], ["--metrics-url", "http://x"]],
)
def test_what_comes_later_says_so(arguments, server, capsys, option):
    assert run([*arguments, *option]) == 2
    assert "comes in a later version" in capsys.readouterr().err
    assert server.seen == []


@pytest.mark.parametrize(
    "option",
    [["--timeout", "0"], ["--warmup", "-1"], ["--api", "x"], ["--warmup", "nan"],
     ["--api-key-env", "NOT_SET_ANYWHERE"], ["--config", "nothing.toml"], ["--window", "inf"],
     ["--retries", "-1"], ["--retries", "21"], ["--proxy", "http://127.0.0.1:1"], ["--http2"],
     ["--transport", "httpx", "--proxy", "x"], ["--ca-file", "nothing.pem"],
     ["--ca-file", __file__], ["--tokenizer", "nothing.json"], ["--tokenizer", __file__],
     ["--api-key-header", "X-Key"],
     ["--api-key-env", "PATH", "--api-key-header", "Content-Length"],
     ["--api-key-env", "PATH", "--api-key-header", "a b"]],
)  # fmt: skip
def test_a_bad_option_is_one_line_and_exit_two(arguments, server, tmp_path, capsys, option):
    assert run([*arguments, *option]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert server.seen == []
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:99999/v1", "http://127.0.0.1:0/v1", "http://a b/v1", "http:///v1"]
)
def test_a_url_that_names_no_place_is_bad_input(arguments, tmp_path, capsys, url):
    """A port above 65535 would be taken modulo 65536: load on a port nobody named."""
    arguments[arguments.index("--url") + 1] = url
    assert run(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("impakt: url: ")
    assert said.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_wrong_key_exits_four_with_the_record_and_without_the_key(
    arguments, server, monkeypatch, capsys
):
    monkeypatch.setenv("ENDPOINT_KEY", "sk-secret-7")
    server.models = (401, {"error": "sk-secret-7"})
    assert run([*arguments, "--api-key-env", "ENDPOINT_KEY", "--json"]) == 4
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert "refused the API key" in printed.err
    assert "sk-secret-7" not in printed.err + printed.out
    record = json.loads(printed.out)
    assert record["valid"] is False
    assert record["counts"]["attempted"] == 0


def test_an_untouched_folder_verifies_with_its_record_recomputed(measured, capsys):
    capsys.readouterr()
    assert run(["verify", str(measured)]) == 0
    assert capsys.readouterr().out == "9 files verified, 1 record recomputed\n"


def test_a_record_is_recomputed_from_the_judgments_it_knew(measured, capsys):
    from records.evidence.folder import EvidenceFolder

    EvidenceFolder.open(measured).add_judgments(b'{"schema":"impakt.judgments/1"}\n')
    assert run(["verify", str(measured)]) == 0


def test_a_flipped_bit_is_found_and_named(measured, capsys):
    path = measured / "chunks.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert run(["verify", str(measured)]) == 1
    assert "chunks.parquet: changed" in capsys.readouterr().out


def tampered(folder, change):
    """Puts a record with a changed figure under its own right hash."""
    from records.analysis.record import record_bytes
    from records.evidence.folder import EvidenceFolder

    (path,) = (folder / "records").iterdir()
    record = json.loads(path.read_bytes())
    path.unlink()
    change(record)
    return EvidenceFolder.open(folder).add_record(record_bytes(record))


def test_a_figure_that_the_evidence_does_not_give_is_named(measured, capsys):
    path = tampered(measured, lambda r: r["counts"].update(completed=21))
    assert run(["verify", str(measured), "--json"]) == 1
    (difference,) = json.loads(capsys.readouterr().out.splitlines()[-1])["differences"]
    assert difference["name"] == f"records/{path.name}"
    assert "$.counts.completed" in difference["detail"]


def test_a_record_of_another_analysis_version_is_not_decided(measured, capsys):
    tampered(measured, lambda r: r.update(analysis_version="0"))
    assert run(["verify", str(measured)]) == 3
    assert "analysis version 0" in capsys.readouterr().out


def test_a_folder_that_is_none_is_bad_input(tmp_path, capsys):
    assert run(["verify", str(tmp_path)]) == 2
    assert run(["verify", str(tmp_path / "nothing")]) == 2
    assert capsys.readouterr().err.count("\n") == 2


def _bytes(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


@pytest.mark.parametrize("kind", ["folder", "file", "link", "other"])
def test_what_is_merely_called_spool_does_not_replace_evidence(measured, tmp_path, capsys, kind):
    """A sealed folder is sealed once: nothing is rewritten, and verify names the intruder."""
    before, spool = _bytes(measured), measured / "spool"
    if kind == "file":
        spool.write_text("x")
    elif kind == "link":
        (tmp_path / "elsewhere").mkdir()
        spool.symlink_to(tmp_path / "elsewhere")
    else:
        spool.mkdir()
        if kind == "other":
            (spool / "events-00000.jsonl").write_text('{"e": "end"}\n')
    capsys.readouterr()
    assert run(["verify", str(measured)]) == 1
    assert "spool: extra" in capsys.readouterr().out
    assert run(["analyze", str(measured)]) == 0
    left = _bytes(measured)
    left.pop("spool", None)
    assert left == before


def test_a_spool_whose_folder_was_sealed_already_only_goes_away(measured):
    """Killed between manifest and end of the spool: the sealed tables stay as they are."""
    before = _bytes(measured)
    (measured / "spool").mkdir()
    (measured / "spool" / "plan.jsonl").write_bytes(b"")
    assert run(["verify", str(measured)]) == 0
    assert not (measured / "spool").exists()
    assert _bytes(measured) == before


@pytest.mark.parametrize("damage", ["flip", "cut", "delete", "link"])
def test_a_damaged_manifest_is_a_difference_that_names_it(measured, tmp_path, capsys, damage):
    """Exit 1, as for any other file: the run beside it shows that there was one."""
    manifest = measured / "manifest.json"
    data = manifest.read_bytes()
    if damage == "flip":
        manifest.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    elif damage == "cut":
        manifest.write_bytes(data[: len(data) // 2])
    else:
        manifest.rename(tmp_path / "manifest.json")
        if damage == "link":
            manifest.symlink_to(tmp_path / "manifest.json")
    capsys.readouterr()
    assert run(["verify", str(measured)]) == 1
    assert capsys.readouterr().out.startswith("manifest.json: ")
