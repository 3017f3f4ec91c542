"""The page for what should never happen. The root URLconf names it as ``handler500``."""

import uuid

import structlog
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

log = structlog.get_logger(__name__)


def server_error(request: HttpRequest) -> HttpResponse:
    """500 with a number that is in the log too; rendered without the database, which may be what broke."""
    correlation_id = uuid.uuid4().hex
    log.error("page failed", correlation_id=correlation_id, path=request.path, method=request.method)
    return HttpResponse(render_to_string("500.html", {"correlation_id": correlation_id}), status=500)
