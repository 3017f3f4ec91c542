"""`Idempotency-Key`: the first final answer to a POST is kept for 24 h and replayed (wire.md, Conventions).

The whole request is one transaction with the kept answer in it, so there is no answer without its effect and no
effect without its answer, whenever the process dies.
"""

import hashlib
import re
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

from django.db import connection, transaction
from django.db.models.functions import Now
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils.crypto import salted_hmac
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from audit.errors import IdempotencyInFlight, IdempotencyKeyMismatch, RecourseError
from audit.principals import Principal
from compensation.api.endpoint import Endpoint
from compensation.api.requests import actor, refuse_header
from compensation.domain.canonical import canonical
from compensation.models import IdempotencyRecord

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotent-Replayed"
KEPT_FOR: Final = timedelta(hours=24)
NOT_FINAL: Final = frozenset({401, 403, 408, 429})
SERVER_ERROR: Final = 500
_KEY: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")

P = ParamSpec("P")
View = TypeVar("View", bound=Endpoint)


def once(
    post: Callable[Concatenate[View, Request, P], Response],
) -> Callable[Concatenate[View, Request, P], HttpResponseBase]:
    """Makes a POST answer the same to the same key. Without the header it is as it was."""

    @wraps(post)
    def wrapped(view: View, request: Request, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        key = request.headers.get(HEADER)
        if key is None:
            return post(view, request, *args, **kwargs)
        if not _KEY.fullmatch(key):
            raise refuse_header(HEADER, key, "1 to 255 printable ASCII characters")
        return _once(view, request, key, lambda: post(view, request, *args, **kwargs))

    return wrapped


def _once(view: Endpoint, request: Request, key: str, answer: Callable[[], Response]) -> HttpResponseBase:
    principal, fingerprint = actor(request), _fingerprint(request)
    with transaction.atomic():
        _lock(principal, key)
        kept = IdempotencyRecord.objects.filter(tenant=principal.tenant, user_id=_person(principal), key=key)
        found = kept.filter(created_at__gt=Now() - KEPT_FOR).first()
        if found is not None:
            return _replay(found, fingerprint)
        response = _answered(view, answer)
        if _final(response.status_code):
            kept.delete()
            _keep(principal, key, fingerprint, response)
        return response


def _answered(view: Endpoint, answer: Callable[[], Response]) -> Response:
    """The answer, a refusal included: the operation has already taken back its own changes, and a refusal's record
    (the denied decision) must commit."""
    try:
        return answer()
    except RecourseError as error:
        return view.handle_exception(error)


def _lock(principal: Principal, key: str) -> None:
    """Held until the transaction ends. Nobody waits for it: the second of two is told to come back."""
    name = f"{principal.tenant.pk}/{_person(principal)}/{key}"
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
    with connection.cursor() as cursor:
        cursor.execute("select pg_try_advisory_xact_lock(%s)", [number])
        (locked,) = cursor.fetchone() or (False,)
    if not locked:
        raise IdempotencyInFlight("A request with this Idempotency-Key is still under way; try again.")


def _fingerprint(request: Request) -> str:
    """Of method, path and the meaning of the body; keyed, since a body may hold a secret."""
    asked = canonical([request.method or "", request.get_full_path(), request.data])
    return salted_hmac("idempotency", asked, algorithm="sha256").hexdigest()


def _person(principal: Principal) -> int:
    if principal.user is None:
        raise TypeError("the engine does not call the API")
    return principal.user.pk


def _final(status: int) -> bool:
    return status < SERVER_ERROR and status not in NOT_FINAL


def _keep(principal: Principal, key: str, fingerprint: str, response: Response) -> None:
    """The body is kept as text, so that the replay has the same bytes."""
    IdempotencyRecord.objects.create(
        tenant=principal.tenant,
        user_id=_person(principal),
        key=key,
        fingerprint=fingerprint,
        status=response.status_code,
        body=JSONRenderer().render(response.data).decode(),
    )


def _replay(found: IdempotencyRecord, fingerprint: str) -> HttpResponse:
    if found.fingerprint != fingerprint:
        raise IdempotencyKeyMismatch(
            "This Idempotency-Key was used for another request; nothing was changed. Use a key of its own for each."
        )
    return HttpResponse(found.body, status=found.status, content_type="application/json", headers={REPLAYED: "true"})
