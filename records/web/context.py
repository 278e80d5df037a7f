"""What every page's frame needs."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from records.models import Alert, Membership

# address name, label, key after `g`
SECTIONS = (
    ("project", "Home", "h"),
    ("runs", "Runs", "r"),
    ("comparisons", "Compare", "c"),
    ("workloads", "Workloads", "w"),
    ("endpoints", "Endpoints", "e"),
)
# Pages that belong to a section under another name.
_PARENTS = {
    "run": "runs", "configuration": "runs", "trace": "runs",
    "comparison": "comparisons", "workload": "workloads", "endpoint": "endpoints",
}  # fmt: skip


def shell(request: HttpRequest) -> dict[str, Any]:
    """Context of the top bar: the project, the reader's role, navigation and open alerts."""
    project = getattr(request, "project", None)
    if project is None:
        return {}
    name = request.resolver_match.url_name if request.resolver_match else ""
    memberships = Membership.objects.filter(user=request.user).select_related("project")
    return {
        "project": project,
        "role": request.role,
        "memberships": memberships.order_by("project__name"),
        "section": _PARENTS.get(name, name),
        "alert_count": Alert.objects.in_project(project).filter(resolved_at=None).count(),
        "navigation": [
            {"name": n, "label": label, "key": key, "url": reverse(n, args=[project.slug])}
            for n, label, key in SECTIONS
        ],
    }
