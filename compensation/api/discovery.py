"""What this host can do and how it is called: public, for everybody who may reach it."""

from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from rest_framework.request import Request
from rest_framework.response import Response

from compensation.api import schemas
from compensation.api.docs import described, operations_of
from compensation.api.endpoint import Public
from compensation.queries.discovery import manifest


class WellKnown(Public):
    @described(summary="What this host can do", tag="discovery", ok={200: schemas.MANIFEST})
    def get(self, request: Request) -> Response:
        return Response(manifest())


class OpenApi(Public):
    @described(summary="This description", tag="discovery", ok={200: schemas.ANY_OBJECT})
    def get(self, request: Request) -> Response:
        return Response(document())


@require_safe
def docs_page(request: HttpRequest) -> HttpResponse:
    """The same description for people, one page without any script."""
    described_api = document()
    context = {"api": described_api, "groups": operations_of(described_api)}
    return render(request, "api/docs.html", context)


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document, made once in a process: it depends on nothing but the code."""
    from compensation.api import urls  # the URLs name these views, so this looks them up late
    from compensation.api.docs import openapi

    return openapi(urls.urlpatterns)
