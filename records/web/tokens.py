"""API tokens of the project: made, shown once, revoked."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from records.models import ApiToken, Project
from records.models.choices import TokenScope
from records.selectors import registry
from records.services import access
from records.web.access import in_project, may, require
from records.web.forms import TokenForm


@never_cache
@in_project
def tokens(request: HttpRequest, project: Project) -> HttpResponse:
    """The tokens there are; a new one is shown in this answer and never again."""
    form, secret = TokenForm(request.POST or None), ""
    if request.method == "POST" and form.is_valid():
        if form.cleaned_data["scope"] == TokenScope.WRITE:
            require(request, "upload")
        _, secret = access.token_create(
            project=project,
            user=request.user,
            name=form.cleaned_data["name"],
            scope=form.cleaned_data["scope"],
            lifetime=form.lifetime,
        )
        form = TokenForm()
    context = {
        "form": form,
        "secret": secret,
        "tokens": registry.token_list(project),
        "can_write": may(request, "upload"),
        "can_administer": may(request, "administer"),
    }
    return render(request, "tokens.html", context)


@require_POST
@in_project
def token_revoke(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    """One's own token, or any for an admin."""
    try:
        token = registry.token_get(project, pk)
    except ApiToken.DoesNotExist as error:
        raise Http404("No such token") from error
    if token.user_id != request.user.pk:
        require(request, "administer")
    access.token_revoke(token=token, user=request.user)
    messages.success(request, f"Token {token.name} no longer works.")
    return redirect("tokens", project.slug)
