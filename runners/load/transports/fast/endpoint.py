"""What every request to one endpoint has in common: where it goes and its head."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from urllib.parse import SplitResult, quote, unquote, urlsplit

from records.errors import BadInput
from runners.load.plan import LoadPlan

_PORTS = {"http": 80, "https": 443}
# What may stand in a request target as it is; the rest is percent-encoded.
_TARGET = "/?:@!$&'()*+,;=-._~%[]"
# What may stand in a header's value as it is: everything printable of ASCII.
_VALUE = "".join(map(chr, range(0x20, 0x7F)))
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


class Endpoint:
    """Host, port, paths and headers of a plan's URL. BadInput when it is none."""

    def __init__(self, plan: LoadPlan) -> None:
        url = _split(plan.url)
        self.secure = url.scheme == "https"
        self.host = _host(url)
        self.port = url.port or _PORTS[url.scheme]
        self._path, self._query = url.path.rstrip("/"), f"?{url.query}" if url.query else ""
        shown = f"[{self.host.partition('%')[0]}]" if ":" in self.host else self.host
        if self.port != _PORTS[url.scheme]:
            shown += f":{self.port}"
        credentials = _credentials(url, plan)
        headers = {
            "Host": shown,
            "User-Agent": "impakt",
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            **credentials,
        }
        self._common = _lines(headers)
        # Without the word Bearer or Basic, which is no secret.
        self.hide = _hider([value.split(" ")[-1] for value in credentials.values()])

    def get(self, path: str) -> bytes:
        """The head of a GET of a path below the URL's own."""
        return self._start("GET", path) + b"\r\n"

    def post(self, path: str) -> bytes:
        """The head of every POST to a path below the URL's own, its end left open."""
        return self._start("POST", path) + b"Content-Type: application/json\r\n"

    def _start(self, method: str, path: str) -> bytes:
        target = quote(f"{self._path}{path}{self._query}", safe=_TARGET)
        return f"{method} {target} HTTP/1.1\r\n".encode("ascii") + self._common


def head_of(start: bytes, headers: Mapping[str, str], size: int) -> bytes:
    """A whole head: what all requests share, what is this one's own, and the body's length."""
    return b"%s%sContent-Length: %d\r\n\r\n" % (start, _lines(headers), size)


def _lines(headers: Mapping[str, str]) -> bytes:
    # Ids of a trace go into headers: nothing in them may end a line.
    return b"".join(
        f"{name}: {value if value.isascii() and value.isprintable() else quote(value, _VALUE)}\r\n"
        .encode("ascii")
        for name, value in headers.items()
    )  # fmt: skip


def _split(text: str) -> SplitResult:
    try:
        url = urlsplit(text)
        usable = url.scheme in _PORTS and url.hostname and url.port != 0
    except ValueError as error:
        raise BadInput(f"url: {error}") from error
    if not usable:
        raise BadInput("url: http:// or https:// with a host")
    return url


def _host(url: SplitResult) -> str:
    host = url.hostname or ""
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise BadInput(f"url: a host name that cannot be ({error})") from error


def _credentials(url: SplitResult, plan: LoadPlan) -> dict[str, str]:
    """The key when there is one, else what the URL itself carries."""
    if plan.api_key is not None:
        key, name = plan.api_key.reveal(), plan.api_key_header
        if not (key.isascii() and key.isprintable()):
            raise BadInput("API key: characters that cannot stand in a header")
        if name is None:
            return {"Authorization": f"Bearer {key}"}
        if _HEADER_NAME.fullmatch(name) is None:
            raise BadInput("API key header: not the name of a header")
        return {name: key}
    if url.username is None and url.password is None:
        return {}
    pair = f"{unquote(url.username or '')}:{unquote(url.password or '')}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}


def _hider(secrets: list[str]) -> Callable[[str], str]:
    """Strikes out of a text what proves who we are."""

    def hide(text: str) -> str:
        for secret in secrets:
            if secret:
                text = text.replace(secret, "***")
        return text

    return hide
