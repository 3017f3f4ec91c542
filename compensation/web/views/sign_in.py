"""Signing in and out. Wrong passwords are counted and throttled by django-axes."""

from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


class SignIn(LoginView):
    template_name = "sign_in.html"
    redirect_authenticated_user = True


class SignOut(LogoutView):
    """Signs out by POST only, so that no link or image does; who comes by a link is given the button."""

    http_method_names = ["get", "head", "post", "options"]
    next_page = "/login/"

    def get(self, request: HttpRequest) -> HttpResponse:
        return render(request, "sign_out.html")
