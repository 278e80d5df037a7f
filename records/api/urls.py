"""Addresses of the API."""

from __future__ import annotations

from django.urls import include, path, re_path
from rest_framework.routers import SimpleRouter

from records.api import (
    alerts,
    audit,
    comparisons,
    configurations,
    decisions,
    docs,
    endpoints,
    evidence,
    fallback,
    judgments,
    projects,
    records,
    runs,
    schema,
    tokens,
    traces,
    uploads,
    workloads,
)  # fmt: skip

app_name = "api"

router = SimpleRouter()
router.register("projects", projects.Projects, "project")
router.register("workloads", workloads.Workloads, "workload")
router.register("configurations", configurations.Configurations, "configuration")
router.register("endpoints", endpoints.Endpoints, "endpoint")
router.register("traces", traces.Traces, "trace")
router.register("runs", runs.Runs, "run")
router.register("uploads", uploads.Uploads, "upload")
router.register("evidence", evidence.EvidenceFiles, "evidence")
router.register("judgments", judgments.Judgments, "judgment")
router.register("records", records.Records, "record")
router.register("comparisons", comparisons.Comparisons, "comparison")
router.register("decisions", decisions.Decisions, "decision")
router.register("alerts", alerts.Alerts, "alert")
router.register("tokens", tokens.Tokens, "token")
router.register("audit", audit.Audit, "audit")

urlpatterns = [
    path(
        "v1/evidence/<str:pk>/content",
        evidence.EvidenceFiles.as_view({"get": "content"}),
        name="evidence-content",
    ),
    path("v1/schema/", schema.SchemaView.as_view(), name="schema"),
    path("v1/", include(router.urls)),
    path("docs/", docs.docs, name="docs"),
    re_path(r"^v1/", fallback.NoSuchRoute.as_view()),
]
