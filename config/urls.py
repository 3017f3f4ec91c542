"""Every path of the web process."""

from django.urls import include, path

from config import health

urlpatterns = [
    path("healthz", health.alive),
    path("readyz", health.ready),
    path("", include("compensation.api.urls")),
    path("", include("compensation.web.urls")),
]

handler500 = "compensation.web.views.errors.server_error"
