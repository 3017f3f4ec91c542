"""What every endpoint of the API does around its one operation or query."""

from collections.abc import Iterable, Sequence
from typing import Any

import structlog
from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from audit.errors import IdempotencyInFlight, NotFound, Unauthenticated
from audit.principals import Principal
from compensation.api import errors, walls
from compensation.api.authentication import SCHEME, BearerKey, SameSiteSession
from compensation.api.docs import WireSchema
from compensation.api.parsing import IJsonParser, drain, refuse_uncounted
from compensation.api.ratelimit import PerCaller
from compensation.api.requests import request_id, traceparent

IN_FLIGHT_RETRY_S = 1


class AlwaysJson(BaseContentNegotiation):
    """There is one representation, whatever the client says it accepts."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        wanted = (request.content_type or "").split(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == wanted), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, str(renderer.media_type)


class Endpoint(APIView):
    """Authenticates, limits, answers errors in the envelope, and names the request in every answer."""

    http_method_names = ("get", "head", "post", "put")
    authentication_classes: Sequence[type[BaseAuthentication]] = (BearerKey, SameSiteSession)
    permission_classes = ()
    parser_classes = (IJsonParser,)
    renderer_classes = (JSONRenderer,)
    content_negotiation_class = AlwaysJson
    throttle_classes = (PerCaller,)
    schema = WireSchema()

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id(request))
        return super().initialize_request(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if any("\0" in str(value) for value in kwargs.values()):
            raise NotFound
        refuse_uncounted(request)

    def perform_authentication(self, request: Request) -> None:
        if not isinstance(request.auth, Principal):
            raise Unauthenticated("An API key is required: 'Authorization: Bearer <api key>'.")

    def handle_exception(self, exc: Exception) -> Response:
        """The one place where an error becomes an answer; what is left of the body is read first."""
        request = self.request
        if isinstance(exc, NotFound):
            walls.note_crossing(request, self.kwargs)
        drain(request._request)  # noqa: SLF001 - DRF's request hides the stream it wraps
        response = errors.answer(exc, correlation_id=request_id(request))
        if response.status_code == Unauthenticated.status:
            response["WWW-Authenticate"] = SCHEME
        if isinstance(exc, IdempotencyInFlight):
            response["Retry-After"] = str(IN_FLIGHT_RETRY_S)
        return response

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        final = super().finalize_response(request, response, *args, **kwargs)
        final["X-Request-Id"] = request_id(request)
        final["Cache-Control"] = "no-store"
        if trace := traceparent(request):
            final["traceparent"] = trace
        return final


class Public(Endpoint):
    """An endpoint for everybody; a key is not even looked at."""

    authentication_classes = ()

    def perform_authentication(self, request: Request) -> None:
        """Nobody in particular."""


class Unknown(Public):
    """Any path under the API that is none of its endpoints: 404 in the envelope, whatever the method."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NotFound("There is no such endpoint.")
