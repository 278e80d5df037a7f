"""Redirects are never followed: where one would have gone, for a person."""

from __future__ import annotations

from urllib.parse import urlsplit


def redirect_text(location: str) -> str:
    """Where a redirect would go: its host only, since addresses may carry secrets."""
    try:
        host = urlsplit(location).hostname
    except ValueError:
        host = None
    return f"a redirect to {host}, not followed" if host else "a redirect, not followed"
