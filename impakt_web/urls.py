"""Addresses: health, the API, the pages."""

from django.urls import include, path

from impakt_web import health

urlpatterns = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("api/", include("records.api.urls")),
    path("", include("records.web.urls")),
]
