"""Signing in and out. Wrong passwords are counted and throttled by django-axes."""

from django.contrib.auth.views import LoginView, LogoutView


class SignIn(LoginView):
    template_name = "sign_in.html"
    redirect_authenticated_user = True


class SignOut(LogoutView):
    """POST only, so that no link or image signs anybody out."""

    next_page = "/login/"
