"""Refusals of the sandbox, in the same envelope the product's own API uses."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from aiohttp import web


class RequestError(Exception):
    """A request that is refused; `details` goes out beside the message."""

    def __init__(self, status: int, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.details = details

    def response(self) -> web.Response:
        return error_response(self.status, self.code, str(self), **self.details)


def error_response(status: int, code: str, message: str, **details: Any) -> web.Response:
    """`{"error", "message", "details": {"retriable", …}}` with the given HTTP status."""
    retriable = status in (408, 425, 429) or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return web.json_response(
        {"error": code, "message": message, "details": {"retriable": retriable, **details}}, status=status
    )


def invalid(*errors: tuple[str, str]) -> RequestError:
    """A 400 that names every offending field: pairs of (JSON pointer, what is wrong and what is allowed)."""
    listed = [{"pointer": pointer, "message": message} for pointer, message in errors]
    summary = "; ".join(f"{pointer or 'body'}: {message}" for pointer, message in errors)
    return RequestError(400, "validation_error", summary, errors=listed)
