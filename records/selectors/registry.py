"""Lists and single objects of a project: every query begins at the project.

`*_list(project)` gives rows in the order pages show them; `*_get` raises the
model's DoesNotExist for what is not there or belongs to another project.
"""

from __future__ import annotations

from django.db.models import Count, Max, QuerySet

from records.models import (
    Alert,
    ApiToken,
    AuditEntry,
    Campaign,
    Comparison,
    Configuration,
    Decision,
    Endpoint,
    MeasurementRecord,
    Project,
    Run,
    Trace,
    Upload,
    Workload,
)
from records.models.choices import OPEN_STATES


def _with_runs(rows: QuerySet) -> QuerySet:
    """Rows with `run_count` and `last_run_at`."""
    return rows.annotate(run_count=Count("runs"), last_run_at=Max("runs__started_at"))


def workload_list(project: Project) -> QuerySet[Workload]:
    """Every version of every workload, newest version first."""
    return _with_runs(Workload.objects.in_project(project)).order_by("name", "-version")


def workload_get(project: Project, pk: int) -> Workload:
    """One version, with its parts."""
    related = ("rubric", "case_set", "evidence_packet", "replaces")
    return Workload.objects.in_project(project).select_related(*related).get(pk=pk)


def configuration_list(project: Project) -> QuerySet[Configuration]:
    """Configurations by name."""
    return _with_runs(Configuration.objects.in_project(project)).order_by("name", "pk")


def configuration_get(project: Project, pk: int) -> Configuration:
    """One configuration."""
    return Configuration.objects.in_project(project).get(pk=pk)


def endpoint_list(project: Project) -> QuerySet[Endpoint]:
    """Endpoints by name, with their configuration."""
    rows = Endpoint.objects.in_project(project).select_related("configuration")
    return _with_runs(rows).order_by("name")


def endpoint_get(project: Project, pk: int) -> Endpoint:
    """One endpoint, with its configuration."""
    return Endpoint.objects.in_project(project).select_related("configuration").get(pk=pk)


def trace_list(project: Project) -> QuerySet[Trace]:
    """Traces, newest first; the preview's points are left in the database."""
    rows = Trace.objects.in_project(project).defer("description", "header")
    return _with_runs(rows).order_by("-created_at", "-pk")


def trace_get(project: Project, pk: int) -> Trace:
    """One trace, whole."""
    return Trace.objects.in_project(project).get(pk=pk)


def campaign_list(project: Project) -> QuerySet[Campaign]:
    """Campaigns, newest first."""
    rows = Campaign.objects.in_project(project).select_related("workload")
    return rows.annotate(run_count=Count("runs")).order_by("-number")


def campaign_get(project: Project, number: int) -> Campaign:
    """One campaign by its number."""
    return Campaign.objects.in_project(project).select_related("workload").get(number=number)


def comparison_list(project: Project) -> QuerySet[Comparison]:
    """Comparisons, newest first; their documents are left in the database."""
    rows = Comparison.objects.in_project(project).select_related("workload").defer("document")
    return rows.prefetch_related("baselines", "candidates").order_by("-number")


def comparison_get(project: Project, number: int) -> Comparison:
    """One comparison by its number, with its runs."""
    rows = Comparison.objects.in_project(project).select_related("workload")
    related = ("baselines__configuration", "candidates__configuration")
    return rows.prefetch_related(*related).get(number=number)


def decision_list(project: Project) -> QuerySet[Decision]:
    """Decisions, newest first."""
    return Decision.objects.in_project(project).select_related("comparison", "signed_by")


def decision_get(project: Project, number: int) -> Decision:
    """One decision by its number."""
    return decision_list(project).get(number=number)


def record_list(project: Project) -> QuerySet[MeasurementRecord]:
    """Measurement records, newest first, without their series."""
    rows = MeasurementRecord.objects.in_project(project).select_related("run")
    return rows.defer("series").order_by("-pk")


def record_get(project: Project, pk: int) -> MeasurementRecord:
    """One measurement record, whole."""
    return MeasurementRecord.objects.in_project(project).select_related("run").get(pk=pk)


def alert_list(project: Project, *, open_only: bool = False) -> QuerySet[Alert]:
    """Alerts, newest first."""
    rows = Alert.objects.in_project(project).select_related("run", "decision", "resolved_by")
    rows = rows.filter(resolved_at=None) if open_only else rows
    return rows.order_by("-created_at", "-pk")


def alert_get(project: Project, pk: int) -> Alert:
    """One alert."""
    return Alert.objects.in_project(project).select_related("run").get(pk=pk)


def upload_list(project: Project) -> QuerySet[Upload]:
    """Uploads, newest first."""
    return Upload.objects.in_project(project).select_related("run").order_by("-pk")


def upload_get(project: Project, pk: int) -> Upload:
    """One upload."""
    return Upload.objects.in_project(project).select_related("run").get(pk=pk)


def token_list(project: Project) -> QuerySet[ApiToken]:
    """Tokens that may read or write in the project, newest first; never their secrets."""
    return ApiToken.objects.in_project(project).select_related("user").order_by("-pk")


def token_get(project: Project, pk: int) -> ApiToken:
    """One token."""
    return ApiToken.objects.in_project(project).get(pk=pk)


def audit_list(project: Project) -> QuerySet[AuditEntry]:
    """What happened in the project, newest first."""
    return AuditEntry.objects.in_project(project).select_related("actor").order_by("-pk")


def open_runs(project: Project) -> QuerySet[Run]:
    """Runs that go on by themselves: queued, running, analysing."""
    rows = Run.objects.in_project(project).filter(state__in=OPEN_STATES)
    return rows.select_related("configuration", "workload", "endpoint").order_by("number")
