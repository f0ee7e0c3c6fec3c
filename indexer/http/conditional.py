"""Conditional requests (RFC 9110 §13): what a client knows is not sent again."""

from __future__ import annotations

from starlette.requests import Request


def known(request: Request, tag: str) -> bool:
    """Whether `If-None-Match` holds a strong ETag; compared weakly, as is right for reading."""
    conditions = ",".join(request.headers.getlist("if-none-match")).split(",")
    tags = [condition.strip().removeprefix("W/") for condition in conditions]
    return tag in tags or "*" in tags
