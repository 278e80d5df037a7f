"""Signing in with a password or a one-time link, and out."""

from __future__ import annotations

from django.contrib.auth import login
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from records.services import access

BACKEND = "django.contrib.auth.backends.ModelBackend"

sign_in = LoginView.as_view(template_name="sign_in.html", redirect_authenticated_user=True)
sign_out = LogoutView.as_view()


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_link(request: HttpRequest, token: str) -> HttpResponse:
    """One button; pressing it uses the link up.

    A GET changes nothing, so that a mail scanner or a prefetch cannot burn it.
    """
    if request.method != "POST":
        return render(request, "sign_in_link.html")
    user = access.link_use(token)
    if user is None:
        return render(request, "sign_in_link.html", {"used": True}, status=410)
    login(request, user, backend=BACKEND)
    return redirect("home")
