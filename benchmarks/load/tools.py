"""Other load generators: how each is told to keep 50 streams open, and what its file says.

A tool is found on PATH or in the environments that IMPAKT_BENCH_TOOLS names (folders made
by `python -m venv`, as many as wanted, with ":" between): their requirements exclude each
other and ours.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.truth_bytes import MODEL

ENVIRONMENTS = "IMPAKT_BENCH_TOOLS"
PROMPT = "w " * 32


@dataclass(frozen=True)
class Reported:
    """One request as a tool tells it: its start on whatever clock, TTFT; id where it sent one."""

    start_s: float
    ttft_s: float
    request_id: str | None = None


@dataclass(frozen=True)
class Tool:
    """`command(executable, root url, folder, streams)`; `reported` reads the result it left."""

    name: str
    package: str
    executable: str
    command: Callable[[str, str, Path, int], list[str]]
    reported: Callable[[Path], list[Reported]]

    def find(self) -> str | None:
        """Its executable; None when it is not installed."""
        folders = [f for f in os.environ.get(ENVIRONMENTS, "").split(os.pathsep) if f]
        path = os.pathsep.join([*(str(Path(f) / "bin") for f in folders), os.environ["PATH"]])
        found = shutil.which(self.executable, path=path)
        return None if found is None else str(Path(found).absolute())

    def version(self, executable: str) -> str:
        """As its package says; empty when the Python beside it does not know."""
        python = Path(executable).with_name("python")
        code = f"import importlib.metadata as m; print(m.version({self.package!r}))"
        if not python.exists():
            return ""
        done = subprocess.run([str(python), "-c", code], capture_output=True, text=True)
        return done.stdout.strip()


def prepare(folder: Path, streams: int) -> None:
    """A tokenizer of three words and a file of prompts, so that nothing is downloaded."""
    vocabulary = {"[UNK]": 0, "w": 1, "token": 2, "</s>": 3}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": None, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None,
        "decoder": None, "model": model,
    }  # fmt: skip
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]", "eos_token": "</s>",
        "model_max_length": 100_000,
    }  # fmt: skip
    (folder / "tokenizer").mkdir()
    (folder / "tokenizer" / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer" / "tokenizer_config.json").write_text(json.dumps(settings))
    for name, key in (("text.jsonl", "text"), ("prompt.jsonl", "prompt")):
        (folder / name).write_text((json.dumps({key: PROMPT}) + "\n") * streams)


def _aiperf(executable: str, root: str, folder: Path, streams: int) -> list[str]:
    # The server's counts: its cheapest way.
    return [
        executable, "profile", "--model", MODEL, "--url", root, "--endpoint-type", "chat",
        "--streaming", "--concurrency", str(streams), "--request-count", str(streams),
        "--use-server-token-count", "--tokenizer", str(folder / "tokenizer"),
        "--input-file", str(folder / "text.jsonl"), "--custom-dataset-type", "single_turn",
        "--artifact-dir", str(folder / "out"), "--ui", "none",
    ]  # fmt: skip


def _aiperf_reported(folder: Path) -> list[Reported]:
    lines = (folder / "out" / "profile_export.jsonl").read_text().splitlines()
    found = []
    for line in map(json.loads, lines):
        told = line["metadata"]
        ttft_s = line["metrics"]["time_to_first_token"]["value"] / 1e3
        found.append(Reported(told["request_start_ns"] / 1e9, ttft_s, told["x_request_id"]))
    return found


def _guidellm(executable: str, root: str, folder: Path, streams: int) -> list[str]:
    return [
        executable, "run", "--backend", f"kind=openai_http,target={root},model={MODEL}",
        "--profile", f"kind=concurrent,streams={streams}",
        "--constraint", f"kind=max_requests,count={streams}",
        "--data", f"kind=json_file,path={folder / 'prompt.jsonl'}",
        "--tokenizer", f"kind=huggingface_auto,model={folder / 'tokenizer'}",
        "--output", f"kind=json,path={folder / 'out.json'}", "--disable-console",
    ]  # fmt: skip


def _guidellm_reported(folder: Path) -> list[Reported]:
    document = json.loads((folder / "out.json").read_text())
    timings = [
        request["info"]["timings"]
        for request in document["benchmarks"][0]["requests"]["successful"]
    ]
    return [
        Reported(t["request_start"], t["first_token_iteration"] - t["request_start"])
        for t in timings
    ]


def _inference_perf(executable: str, root: str, folder: Path, streams: int) -> list[str]:
    settings = {
        "api": {"type": "chat", "streaming": True},
        "server": {"type": "vllm", "model_name": MODEL, "base_url": root, "ignore_eos": True},
        "tokenizer": {"pretrained_model_name_or_path": str(folder / "tokenizer")},
        "data": {"type": "mock"},
        "load": {
            "type": "concurrent", "num_workers": 1,
            "stages": [{"num_requests": streams, "concurrency_level": streams}],
        },
        "report": {
            "request_lifecycle": {"summary": True, "per_stage": False, "per_request": True}
        },
        "storage": {"local_storage": {"path": str(folder / "out")}},
    }  # fmt: skip
    # JSON is YAML.
    (folder / "settings.yml").write_text(json.dumps(settings))
    return [executable, "-c", str(folder / "settings.yml")]


def _inference_perf_reported(folder: Path) -> list[Reported]:
    path = folder / "out" / "per_request_lifecycle_metrics.json"
    found = []
    for request in json.loads(path.read_text()):
        times = request["info"]["response_metrics"]["output_token_times"]
        found.append(Reported(request["start_time"], times[0] - request["start_time"]))
    return found


def _vllm(executable: str, root: str, folder: Path, streams: int) -> list[str]:
    return [
        executable, "bench", "serve", "--backend", "openai-chat", "--base-url", root,
        "--endpoint", "/v1/chat/completions", "--model", MODEL,
        "--tokenizer", str(folder / "tokenizer"), "--dataset-name", "custom",
        "--dataset-path", str(folder / "prompt.jsonl"), "--skip-chat-template",
        "--num-prompts", str(streams), "--max-concurrency", str(streams),
        "--save-result", "--save-detailed", "--result-dir", str(folder),
        "--result-filename", "out.json", "--disable-tqdm",
    ]  # fmt: skip


def _vllm_reported(folder: Path) -> list[Reported]:
    told = json.loads((folder / "out.json").read_text())
    starts = told.get("start_times") or range(len(told["ttfts"]))
    return [Reported(float(s), float(t)) for s, t in zip(starts, told["ttfts"], strict=True)]


# A line per tool.
TOOLS = (
    Tool("aiperf", "aiperf", "aiperf", _aiperf, _aiperf_reported),
    Tool("guidellm", "guidellm", "guidellm", _guidellm, _guidellm_reported),
    Tool("inference-perf", "inference-perf", "inference-perf",
         _inference_perf, _inference_perf_reported),
    Tool("vllm bench serve", "vllm", "vllm", _vllm, _vllm_reported),
)  # fmt: skip
