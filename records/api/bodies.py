"""Large request bodies: streamed to a temporary file, hashed on the way, up to a limit."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath

from django.conf import settings
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError, UnsupportedMediaType
from rest_framework.parsers import BaseParser, JSONParser, MultiPartParser
from rest_framework.request import Request

from records.errors import (
    BadEvidence,
    BadInput,
    EvidenceDiffers,
    FieldError,
    NotDecided,
    StorageFailed,
)

RAW_TYPES = (
    "application/zstd", "application/gzip", "application/zip", "application/x-tar",
    "application/json", "application/jsonl", "application/octet-stream",
)  # fmt: skip
_BLOCK = 1 << 20
_NAME = "received"
# Where an archive is unpacked to, in the same folder.
UNPACKED = "unpacked"
# Boundaries and headers of a multipart body, beside the file itself.
_FRAMING = 64 * 1024


class TooLarge(APIException):
    """413: more bytes than this server takes."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE

    def __init__(self) -> None:
        super().__init__(f"More than the {settings.UPLOAD_MAX_BYTES} bytes that this server takes")


class JsonBody(JSONParser):
    """A JSON object that any database and any reader can keep.

    Its size is bounded by DATA_UPLOAD_MAX_MEMORY_SIZE before it comes here.
    """

    def parse(self, stream, media_type=None, parser_context=None):
        data = stream.read()
        try:
            parsed = super().parse(io.BytesIO(data), media_type, parser_context)
            if b"\\u" in data:
                json.dumps(parsed, ensure_ascii=False).encode()
        except RecursionError as error:
            raise ParseError("JSON nested too deeply") from error
        except UnicodeEncodeError as error:
            raise ParseError("JSON with half of a surrogate pair") from error
        if not isinstance(parsed, dict):
            raise ParseError("A JSON object is needed")
        return parsed


class RawParser(BaseParser):
    """Leaves a body of any of RAW_TYPES where it is: `received` reads it in blocks."""

    media_type = "*/*"

    def parse(self, stream, media_type=None, parser_context=None) -> dict[str, str]:
        if (media_type or "").partition(";")[0].strip().lower() not in RAW_TYPES:
            raise UnsupportedMediaType(media_type or "none")
        return {}


PARSERS = (MultiPartParser, RawParser)


@dataclass(frozen=True)
class Body:
    """A received file: where it lies until the request ends, its hash, size and name."""

    path: Path
    sha256: str
    bytes: int
    filename: str

    @property
    def folder(self) -> Path:
        """A folder of the request's own, removed with it."""
        return self.path.parent


@contextmanager
def received(request: Request) -> Iterator[Body]:
    """The field `file` of a multipart body, or the whole body, as a file.

    The file and all that is put beside it is gone when the block ends.
    TooLarge (413) beyond UPLOAD_MAX_BYTES, ParseError (400) when nothing was sent.
    """
    refuse_oversized(request)
    blocks, filename = _source(request)
    with _temporary_folder() as folder:
        path = folder / _NAME
        try:
            sha256, size = _written(blocks, path)
        except OSError as error:
            raise StorageFailed(f"Temporary space: {error.strerror or error}") from error
        if not size:
            raise ParseError("file: an empty body was sent")
        with _without_paths(folder, filename):
            yield Body(path, sha256, size, filename)


def parameter(request: Request, name: str) -> str | None:
    """A parameter of a file's create: a field of a multipart body, or of the query."""
    refuse_oversized(request)
    field = request.data.get(name)
    return field if isinstance(field, str) and field else request.query_params.get(name) or None


def refuse_oversized(request: Request) -> None:
    """413 by the declared length, before a byte of it is read."""
    declared = request.META.get("CONTENT_LENGTH") or "0"
    if declared.isdigit() and int(declared) > settings.UPLOAD_MAX_BYTES + _FRAMING:
        raise TooLarge


def _source(request: Request) -> tuple[Iterable[bytes], str]:
    if (request.content_type or "").startswith("multipart/"):
        file = request.data.get("file")
        if not hasattr(file, "chunks"):
            raise ParseError("file: a file in the field `file` is needed")
        return file.chunks(_BLOCK), _plain_name(file.name)
    _ = request.data  # refuses other media types; reads nothing of a raw body
    return _blocks(request._request), _plain_name(request.query_params.get("filename", ""))


def _plain_name(name: str | None) -> str:
    text = "".join(c for c in PurePath(name or "").name if c.isprintable())
    return text[:200] or "upload"


def _blocks(stream) -> Iterator[bytes]:
    while block := stream.read(_BLOCK):
        yield block


def _written(blocks: Iterable[bytes], path: Path) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    with path.open("xb") as out:
        for block in blocks:
            size += len(block)
            if size > settings.UPLOAD_MAX_BYTES:
                raise TooLarge
            digest.update(block)
            out.write(block)
    return digest.hexdigest(), size


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    try:
        folder = Path(tempfile.mkdtemp(prefix="impakt-body-", dir=settings.FILE_UPLOAD_TEMP_DIR))
    except OSError as error:
        raise StorageFailed(f"Temporary space: {error.strerror or error}") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _without_paths(folder: Path, filename: str) -> Iterator[None]:
    """Errors name the client's file, not where it lay on this server."""

    def plain(text: str) -> str:
        text = text.replace(f"{folder}/{_NAME}", filename).replace(f"{folder}/{UNPACKED}/", "")
        return text.replace(f"{folder}/{UNPACKED}", filename)

    try:
        yield
    except FieldError as error:
        raise type(error)(plain(error.where), error.field, plain(error.expected)) from error
    except (BadInput, EvidenceDiffers, NotDecided) as error:
        # In an upload these are all the same: what was sent is not what it must be.
        raise BadEvidence(filename, None, plain(str(error))) from error
