"""Every refusal as `{"error", "message", "details"}` (wire.md, Conventions); never a stack trace, SQL or a secret."""

import math
from typing import Any, Final

import structlog
from django.core.exceptions import SuspiciousOperation
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from audit.errors import NotFound, RecourseError

log = structlog.get_logger(__name__)

NO_STACK: Final = "Something went wrong on this host. It is in the host's log under the correlation id."
_CODES: Final[dict[type[exceptions.APIException], str]] = {
    exceptions.NotAuthenticated: "unauthenticated",
    exceptions.AuthenticationFailed: "unauthenticated",
    exceptions.PermissionDenied: "forbidden",
    exceptions.NotFound: "not_found",
    exceptions.Throttled: "rate_limited",
}


def answer(error: Exception, *, correlation_id: str) -> Response:
    """The envelope of any error; one that is not a refusal is logged and told only by its correlation id."""
    if isinstance(error, Http404):
        error = NotFound()
    if isinstance(error, RecourseError):
        return envelope(error.code, error.message, error.status, error.details)
    if isinstance(error, exceptions.APIException):
        return _framework(error)
    if isinstance(error, SuspiciousOperation):
        return envelope("validation_error", "The request is malformed.", 400, {"errors": [], "retriable": False})
    log.error("uncaught", correlation_id=correlation_id, error=type(error).__name__, exc_info=error)
    return envelope("internal_error", NO_STACK, 500, {"correlationId": correlation_id, "retriable": False})


def envelope(code: str, message: str, status: int, details: dict[str, Any]) -> Response:
    return Response({"error": code, "message": message, "details": details}, status=status)


def _framework(error: exceptions.APIException) -> Response:
    """The framework's own refusals. A wrong method or media type has no code of its own on the wire."""
    code = _CODES.get(type(error), "validation_error")
    details: dict[str, Any] = {"retriable": code == "rate_limited"}
    if code == "validation_error":
        details["errors"] = [{"pointer": "", "message": str(error.detail)}]
    response = envelope(code, str(error.detail), error.status_code, details)
    if (wait := getattr(error, "wait", None)) is not None:
        response["Retry-After"] = str(max(1, math.ceil(wait)))
    return response
