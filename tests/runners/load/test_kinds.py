"""Answers of every kind met in the field are read as what they are, on both transports."""

from __future__ import annotations

import pytest

from records.evidence.folder import EvidenceFolder
from runners.load.run import TRANSPORTS, run_load
from tests.runners.load.conftest import plan_of, rows
from tests.runners.load.kinds import KINDS
from tests.runners.load.server import ScriptedServer

BY_ID = {f"k{number}": name for number, name in enumerate(KINDS)}


@pytest.fixture(scope="module", params=sorted(TRANSPORTS))
def found(request, tmp_path_factory):
    """Every kind played once, in one run per transport: kind -> attempt, chunks, output, error."""
    server = ScriptedServer(lambda r: KINDS[BY_ID[r["headers"]["x-request-id"]]].response)
    lines = [
        {"id": name, "at_s": number * 0.02, "timeout_s": 10} for number, name in enumerate(BY_ID)
    ]
    folder = tmp_path_factory.mktemp("kinds") / "run"
    run_load(plan_of(server.url, *lines, transport=request.param), folder)
    server.close()
    evidence = EvidenceFolder.open(folder)
    out = {name: {"chunks": None, "output": {}} for name in KINDS}
    for table in ("attempts", "chunks"):
        for row in rows(evidence, table):
            out[BY_ID[row["request_id"]]][table] = row
    for line in evidence.outputs():
        out[BY_ID[line["request_id"]]]["output"] = line
    return out


@pytest.mark.parametrize("name", KINDS)
def test_the_kind_is_read_as_it_should_be(found, name):
    kind, got = KINDS[name], found[name]
    attempt = got["attempts"]
    assert {key: attempt[key] for key in kind.attempt} == kind.attempt, got["output"]
    assert {key: got["output"].get(key) for key in kind.output} == kind.output
    if kind.error is not None:
        assert kind.error in got["output"]["error"]
    if kind.tokens is not None:
        tokens = [int(n) for n in got["chunks"]["tokens"]]
        assert tokens == kind.tokens or (kind.tokens, sum(tokens)) == (
            "sum",
            attempt["output_tokens"],
        )
