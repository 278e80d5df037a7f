"""Traces built from a specification: the same specification gives the same bytes anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from records.errors import FieldError
from records.traces.cutting import cut_window
from records.traces.lengths import draw_lengths
from records.traces.processes import Shape, arrivals
from records.traces.reading import Trace, read_trace
from records.traces.schema import SCHEMA, TraceRequest
from records.traces.spec import check_spec


def make_trace(raw: Any, where: str) -> Trace:
    """The trace a specification describes (its form: `records.traces.spec`).

    `where` names the specification in errors, and a relative `arrivals.trace`
    is looked for beside it. FieldError names the wrong field.
    """
    spec = check_spec(raw, where)
    # One stream per purpose, so that changing a length leaves the arrivals alone.
    streams = [
        np.random.Generator(np.random.PCG64(stream))
        for stream in np.random.SeedSequence(spec["seed"]).spawn(4)
    ]
    header = {"schema": SCHEMA, "name": spec["name"], "made_from": spec}
    if "trace" in spec["arrivals"]:
        cut = _window(spec["arrivals"], where)
        header = {**cut.header, **header}
        if not spec["classes"]:
            return Trace(header, cut.requests)
        moments = [(request.id, request.at_s) for request in cut.requests]
    else:
        moments = [(str(n), at_s) for n, at_s in enumerate(_times(spec, streams[0], where), 1)]
    return Trace(header, _requests(moments, spec["classes"], streams[1:]))


def _times(spec: Mapping[str, Any], random: np.random.Generator, where: str) -> list[float]:
    asked = spec["arrivals"]
    times = arrivals(
        asked["process"],
        Shape(rate_per_s=asked["rate_per_s"], cv=asked.get("cv")),
        random,
        count=asked.get("count"),
        duration_s=asked.get("duration_s"),
    )
    if not len(times):
        raise FieldError(where, "arrivals", "a rate and duration that give a request; none came")
    return [float(at_s) for at_s in times]


def _window(asked: Mapping[str, Any], where: str) -> Trace:
    """The window of another trace, whose path is relative to the specification."""
    source = read_trace(Path(where).parent / asked["trace"])
    # Without an end the window runs through the last arrival.
    end_s = asked.get("end_s", source.requests[-1].at_s + 1.0)
    return cut_window(source, asked["start_s"], end_s)


def _requests(
    moments: Sequence[tuple[str, float]],
    classes: Mapping[str, Mapping[str, Any]],
    streams: Sequence[np.random.Generator],
) -> list[TraceRequest]:
    """A request per id and arrival, its class and lengths drawn."""
    names = _classes(classes, len(moments), streams[0])
    prompts = _lengths(classes, "prompt_tokens", names, streams[1])
    outputs = _lengths(classes, "output_tokens", names, streams[2])
    return [
        TraceRequest(
            id=request_id,
            at_s=at_s,
            service_class=name,
            prompt_tokens=prompt,
            max_output_tokens=output,
            cancel_after_s=classes[name].get("cancel_after_s"),
            deadline_s=classes[name].get("deadline_s"),
            timeout_s=classes[name].get("timeout_s"),
        )
        for (request_id, at_s), name, prompt, output in zip(
            moments, names, prompts, outputs, strict=True
        )
    ]


def _classes(
    classes: Mapping[str, Mapping[str, Any]], count: int, random: np.random.Generator
) -> list[str]:
    """A class name per request, drawn by share."""
    names = list(classes)
    edges = np.cumsum([classes[name]["share"] for name in names])
    # side="right" never lands on a class of share 0.
    index = np.searchsorted(edges, random.random(count) * edges[-1], side="right")
    return [names[i] for i in np.minimum(index, len(names) - 1)]


def _lengths(
    classes: Mapping[str, Mapping[str, Any]],
    key: str,
    of_requests: list[str],
    random: np.random.Generator,
) -> list[int]:
    """A length per request from its class's distribution.

    Every class draws for every request, so that a class's lengths do not move
    when the shares do.
    """
    drawn = {
        name: draw_lengths(part[key], len(of_requests), random) for name, part in classes.items()
    }
    return [drawn[name][i] for i, name in enumerate(of_requests)]
