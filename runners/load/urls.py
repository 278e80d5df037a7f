"""What a URL that we are given says, and what of it may be recorded and shown."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

from records.errors import BadInput
from runners.load.hiding import SECRET_NAME

PORTS = {"http": 80, "https": 443}
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def public_url(url: str, what: str = "url") -> str:
    """The URL as it may be recorded: no user, no password, no secrets in the query.

    BadInput, which begins with `what`, when it is not an http or https URL of a host and
    port that can be.
    """
    parts = _parts(url, what)
    # The dialect's paths come after it, so a fragment can mean nothing.
    return urlunsplit((parts.scheme, _place(url, parts, what), parts.path,
                       _public_query(parts.query), ""))  # fmt: skip


def host_and_port(url: str) -> str:
    """Where a URL goes, in the words of an error: its host and the port, also one it leaves out."""
    parts = urlsplit(url)
    return f"{parts.hostname} port {parts.port or PORTS[parts.scheme.lower()]}"


def _parts(url: str, what: str) -> SplitResult:
    wanted = f"{what}: an http or https URL with a host is needed"
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - read for its ValueError
    except ValueError:
        # Its text is not shown: it may hold what stands before the host.
        raise _bad_place(url, what) from None
    if parts.scheme not in PORTS or not parts.hostname or not url.isprintable():
        raise BadInput(f"{wanted}, not {_shown(url)!r}")
    return parts


def _place(url: str, parts: SplitResult, what: str) -> str:
    host = _host_name(parts.hostname or "")
    if host is None or parts.port == 0:
        raise _bad_place(url, what)
    return host if parts.port in (None, PORTS[parts.scheme]) else f"{host}:{parts.port}"


def _bad_place(url: str, what: str) -> BadInput:
    wanted = "a URL whose host is a name or address and whose port is 1 to 65535 is needed"
    return BadInput(f"{what}: {wanted}, not {_shown(url)!r}")


def _host_name(name: str) -> str | None:
    """The host as URLs write it; None when no name or address looks like this."""
    if ":" in name:
        return f"[{name}]"
    try:
        # Also for ASCII, whose labels have a longest length.
        name = name.encode("idna").decode()
    except UnicodeError:
        return None
    return name if _NAME.fullmatch(name) else None


def _public_query(query: str) -> str:
    pairs = parse_qsl(query, keep_blank_values=True)
    if not any(SECRET_NAME.search(name) for name, _ in pairs):
        return query
    shown = [(name, "***" if SECRET_NAME.search(name) else value) for name, value in pairs]
    return urlencode(shown, safe="*")


def _shown(url: str) -> str:
    """The text of a URL that is none, without what may be a password or a key in it."""
    shown = re.sub(r"^([a-z]*://)?.*@", r"\1***@", url, flags=re.DOTALL | re.IGNORECASE)
    return shown.partition("?")[0][:200]
