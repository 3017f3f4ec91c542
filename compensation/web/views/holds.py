from collections.abc import Callable

from django import forms
from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from audit import authority
from audit.errors import RecourseError, ValidationFailed
from compensation.operations import holds
from compensation.queries.registry import find_node_type
from compensation.web.pages import Here, tenant_page

both = require_http_methods(["GET", "HEAD", "POST"])


class ReasonForm(forms.Form):
    reason = forms.CharField(max_length=200)


@both
@tenant_page
def hold_node_type(here: Here, node_type_id: str) -> HttpResponseBase:
    """Entries of this node type wait, visibly, and burn no attempts (CMP-409)."""
    node_type = find_node_type(here.principal, node_type_id).node_type.node_type_id
    return _ask(
        here,
        title=f"Hold {node_type}",
        consequence="Its entries wait and spend no attempts until it is released. Calls in flight end by themselves.",
        back=reverse("web:node_type", args=[here.tenant.slug, node_type]),
        perform=lambda reason: holds.hold_node_type(actor=here.principal, node_type_id=node_type, reason=reason),
    )


@both
@tenant_page
def release_node_type(here: Here, node_type_id: str) -> HttpResponseBase:
    node_type = find_node_type(here.principal, node_type_id).node_type.node_type_id
    return _ask(
        here,
        title=f"Release {node_type}",
        consequence="Its breaker closes, and the entries that it held go back in line at once.",
        back=reverse("web:node_type", args=[here.tenant.slug, node_type]),
        perform=lambda reason: holds.release_node_type(actor=here.principal, node_type_id=node_type, reason=reason),
    )


@both
@tenant_page
def hold_tenant(here: Here) -> HttpResponseBase:
    """Stop everything of a tenant."""
    return _ask(
        here,
        title=f"Hold everything of {here.tenant.name}",
        consequence="No inverse starts until it is released. Calls in flight end by themselves; nothing is lost.",
        back=reverse("web:node_types", args=[here.tenant.slug]),
        perform=lambda reason: holds.hold_tenant(actor=here.principal, reason=reason),
    )


@both
@tenant_page
def release_tenant(here: Here) -> HttpResponseBase:
    return _ask(
        here,
        title=f"Release {here.tenant.name}",
        consequence="Whatever is due starts at once.",
        back=reverse("web:node_types", args=[here.tenant.slug]),
        perform=lambda reason: holds.release_tenant(actor=here.principal, reason=reason),
    )


def _ask(here: Here, *, title: str, consequence: str, back: str, perform: Callable[[str], object]) -> HttpResponseBase:
    form, error = ReasonForm(here.request.POST or None), None
    if here.request.method == "POST":
        try:
            perform(_reason(form))
        except RecourseError as refused:
            error = refused
        else:
            messages.success(here.request, f"{title}: done. It is on record with your reason.")
            return redirect(back)
    return here.render(
        "definitions/hold.html",
        status=error.status if error else 200,
        section="node_types",
        title=title,
        consequence=consequence,
        back=back,
        form=form,
        error=error,
        allowed=authority.permits(here.principal, "hold", here.tenant),
    )


def _reason(form: ReasonForm) -> str:
    if not form.is_valid():
        raise ValidationFailed(
            "A reason is required; nothing was changed.",
            [{"pointer": "/reason", "message": "expected 1 to 200 characters saying why"}],
        )
    return str(form.cleaned_data["reason"])
