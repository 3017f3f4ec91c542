from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from audit.models import Tenant, User


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """To the inbox of the tenant that was looked at last, else of the first one."""
    if not isinstance(request.user, User):
        return redirect_to_login("/")
    mine = Tenant.objects.filter(memberships__user=request.user).order_by("name")
    last = mine.filter(slug=request.session.get("tenant", "")).first() or mine.first()
    return redirect("web:inbox", last.slug) if last else render(request, "no_tenant.html")
