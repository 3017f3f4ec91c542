"""What every page of a tenant stands on: who is looking, where, and how a refusal looks."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from http import HTTPStatus
from typing import Any, Concatenate, Final, ParamSpec
from urllib.parse import unquote, urlencode

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django_htmx.http import HttpResponseClientRedirect

from audit import authority
from audit.errors import Forbidden, NotFound, RecourseError
from audit.models import Tenant, User
from audit.principals import Principal
from compensation.models import Plan, Workflow
from compensation.queries.inbox import COUNTED, Inbox, inbox

P = ParamSpec("P")
NUL: Final = "\x00"  # no text of PostgreSQL can hold it, so nothing has such a name


@dataclass(frozen=True)
class Here:
    """Somebody looking at a tenant they belong to."""

    request: HttpRequest
    user: User
    tenant: Tenant

    @cached_property
    def principal(self) -> Principal:
        return Principal(tenant=self.tenant, user=self.user)

    @cached_property
    def tenants(self) -> list[Tenant]:
        return list(Tenant.objects.filter(memberships__user=self.user).order_by("name"))

    @property
    def person(self) -> str:
        return str(self.user)

    @property
    def environment(self) -> str:
        return environment()

    @cached_property
    def reads_record(self) -> bool:
        return authority.permits(self.principal, "read_audit", self.tenant)

    @cached_property
    def inbox(self) -> Inbox:
        """What needs this person: the page's list and the badge of every page come from this one query."""
        return inbox(self.principal)

    @property
    def waiting(self) -> int:
        return self.inbox.count

    @property
    def waiting_text(self) -> str:
        return f"{COUNTED - 1:,}+" if self.waiting >= COUNTED else f"{self.waiting:,}"

    @property
    def wants_part(self) -> bool:
        """Whether htmx asked for a part of the page to swap in."""
        return bool(getattr(self.request, "htmx", False))

    def render(self, page: str, *, part: str = "", status: int = 200, **context: Any) -> HttpResponse:
        """The page, or for htmx only its ``part``: the same partial that the page includes."""
        template = part if part and self.wants_part else page
        response = render(self.request, template, {"here": self, **context}, status=status)
        response["Cache-Control"] = "no-store"
        response["Vary"] = "HX-Request"
        return response


@dataclass(frozen=True, slots=True)
class Live:
    """The part of a page that refreshes itself, and a mark of what it says, which the next request brings back."""

    body: str
    seen: str


Page = Callable[Concatenate[Here, P], HttpResponseBase]


def live_page(here: Here, page: str, *, part: str, body: str, **context: Any) -> HttpResponse:
    """A page with a part that refreshes itself; 204 when the reader's part already says what is so.

    Nothing is then swapped, so a quiet page never loses focus, selection or an unfolded row.
    """
    text = render_to_string(body, {"here": here, **context}, request=here.request)
    live = Live(text, hashlib.sha256(text.encode()).hexdigest()[:16])
    if here.wants_part and here.request.GET.get("seen") == live.seen:
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    return here.render(page, part=part, live=live, **context)


def environment() -> str:
    """``production`` or ``demo``: the two must never look alike."""
    return "production" if str(settings.SETTINGS_MODULE).endswith(".prod") else "demo"


def tenant_page(view: Page[P]) -> Callable[..., HttpResponseBase]:
    """A page under ``/t/<slug>/`` for a signed-in member; refusals of the engine become pages, once, here.

    A tenant one does not belong to is the same 404 as one that does not exist (CMP-606).
    """

    @wraps(view)
    def page(request: HttpRequest, slug: str, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not isinstance(request.user, User):
            return _to_sign_in(request)
        if NUL in unquote(request.get_full_path()):
            raise Http404
        tenant = Tenant.objects.filter(slug=slug, memberships__user=request.user).first()
        if tenant is None:
            raise Http404
        here = Here(request, request.user, tenant)
        if not _sees_something(here.principal):
            return refused(here, Forbidden("You belong to this tenant and may not see anything of it yet."))
        _remember(request, slug)
        try:
            return view(here, *args, **kwargs)
        except NotFound as missing:
            raise Http404 from missing
        except RecourseError as error:
            return refused(here, error)

    return page


def refused(here: Here, error: RecourseError) -> HttpResponse:
    """A calm page that says what happened and what was not done; its part is shown where the finger was."""
    page = "errors/forbidden.html" if error.status == Forbidden.status else "errors/refused.html"
    return here.render(page, part="errors/_refused.html", status=error.status, error=error)


def _sees_something(principal: Principal) -> bool:
    if authority.permits(principal, "view", principal.tenant):
        return True
    return any(
        authority.granted(principal, "view", model).filter(content_object__tenant=principal.tenant).exists()
        for model in (Workflow, Plan)
    )


def _remember(request: HttpRequest, slug: str) -> None:
    """Where ``/`` leads next time; written only when it changes, since pages ask for themselves all the time."""
    if request.session.get("tenant") != slug:
        request.session["tenant"] = slug


def _to_sign_in(request: HttpRequest) -> HttpResponse:
    """To the sign-in page and back. A swap must not receive the sign-in page as its content."""
    if getattr(request, "htmx", False):
        back = request.htmx.current_url_abs_path or "/"  # type: ignore[attr-defined]
        return HttpResponseClientRedirect(f"{settings.LOGIN_URL}?{urlencode({'next': back})}")
    return redirect_to_login(request.get_full_path())
