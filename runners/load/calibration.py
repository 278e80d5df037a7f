"""The calibration kept on this machine: where it lies, and whether it speaks for this host.

How it is measured is `runners.load.calibrate`; docs/methods/calibration.md. A
calibration that is missing, unreadable or of another machine, kernel or version
never stops a load run: the run says why it has none.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from records.errors import BadInput
from records.evidence.canonical import canonical_bytes, normalise
from records.evidence.files import make_directory, write_atomic

log = logging.getLogger(__name__)

SCHEMA = "impakt.calibration/1"
FILE = "calibration.json"
# Above any document of ours; what is larger is not one.
_MAX_BYTES = 1 << 20
# What must be as it was when the calibration was made.
COMPARED = ("machine_id_hash", "cpu_model", "cores", "kernel", "python", "impakt", "transport")
_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_CPU_INFO = Path("/proc/cpuinfo")
NONE_STORED = "this host is not calibrated: run impakt calibrate"


def places() -> list[Path]:
    """Where a calibration may lie, the place it is written to first.

    $IMPAKT_CALIBRATION alone when it is set; else $IMPAKT_DATA/calibration.json
    when that is set, then ${XDG_STATE_HOME:-~/.local/state}/impakt/calibration.json.
    """
    if named := os.environ.get("IMPAKT_CALIBRATION"):
        return [_path(named)]
    out = [_path(os.environ.get("XDG_STATE_HOME") or "~/.local/state") / "impakt" / FILE]
    if data := os.environ.get("IMPAKT_DATA"):
        out.insert(0, _path(data) / FILE)
    return out


def _path(text: str) -> Path:
    # Path.expanduser raises for a user without a home.
    return Path(os.path.expanduser(text))


def host_of(transport: str, stamp_source: str | None) -> dict[str, Any]:
    """What a calibration depends on, without the host's name. A part that cannot be read is null.

    `machine_id_hash` is a hash of the machine's own id, so that the id is not published.
    """
    return {
        "machine_id_hash": _machine_id_hash(),
        "cpu_model": _cpu_model(),
        "cores": _cores(),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "impakt": _version(),
        "transport": transport,
        "stamp_source": stamp_source,
    }


def store(document: Mapping[str, Any]) -> Path:
    """Writes a calibration to the first of `places`, whole or not at all; StorageFailed."""
    path = places()[0]
    make_directory(path.parent)
    write_atomic(path, canonical_bytes(dict(document)) + b"\n")
    return path


def of_this_host(transport: str) -> dict[str, Any] | None:
    """The stored calibration of this host for a transport, with `age_s`, its age; else None."""
    return look_up(transport)[0]


def look_up(transport: str) -> tuple[dict[str, Any] | None, str | None]:
    """The same, and in its absence why there is none, as a note for the run."""
    for path in places():
        try:
            document = _read(path)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, RecursionError, BadInput) as error:
            log.warning("the calibration %s is not readable: %s", path, error)
            return None, "the stored calibration of this host is not readable; make another"
        return _fitting(document, transport)
    return None, NONE_STORED


def _read(path: Path) -> dict[str, Any]:
    with path.open("rb") as handle:
        data = handle.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ValueError(f"larger than {_MAX_BYTES} bytes")
    document = json.loads(data)
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"not a document of {SCHEMA}")
    if not isinstance(document.get("host"), dict):
        raise ValueError("host: an object")
    _date(document)
    plain: dict[str, Any] = normalise(document)
    return plain


def _date(document: Mapping[str, Any]) -> datetime:
    date = datetime.fromisoformat(str(document.get("date")))
    if date.tzinfo is None:
        raise ValueError("date: a time with its zone")
    return date


def _fitting(document: dict[str, Any], transport: str) -> tuple[dict[str, Any] | None, str | None]:
    now, then = host_of(transport, None), document["host"]
    other = [name for name in COMPARED if now[name] != then.get(name)]
    if other:
        words = ", ".join(name.replace("_", " ") for name in other)
        return None, f"the stored calibration is of another {words}: run impakt calibrate"
    age_s = (datetime.now(UTC) - _date(document)).total_seconds()
    return {**document, "age_s": round(max(0.0, age_s), 3)}, None


def _version() -> str | None:
    try:
        return metadata.version("impakt")
    except metadata.PackageNotFoundError:
        return None


def _machine_id_hash() -> str | None:
    for path in _MACHINE_IDS:
        try:
            own = path.read_text().strip()
        except OSError:
            continue
        if own:
            return hashlib.sha256(f"impakt calibration {own}".encode()).hexdigest()[:16]
    return None


def _cpu_model() -> str | None:
    try:
        lines = _CPU_INFO.read_text().splitlines()
    except OSError:
        return platform.processor() or None
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip() or None
    return platform.processor() or None


def _cores() -> int | None:
    """The cores this process may use, which a container may have fewer of than the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()
