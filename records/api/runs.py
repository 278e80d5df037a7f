"""Runs: one replay of one trace on one configuration, or an uploaded external run."""

from __future__ import annotations

from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from records.api.filters import Id, ProjectRowsFilter
from records.api.idempotency import once
from records.api.links import record_url, run_page
from records.api.scope import project_for
from records.api.views import OWNED, Owned, Person, ReadOnly, url_of
from records.models import Campaign, Configuration, Endpoint, Project, Run, Trace, Workload
from records.models.choices import CacheState, RunKind, RunState
from records.services import run as run_service

_FIGURES = (
    "attempted", "completed", "accepted", "accepted_per_s", "accepted_per_s_low",
    "accepted_per_s_high", "slo_attainment", "ttft_p95_s", "e2e_p95_s",
)  # fmt: skip


_OF_THE_RECORD = "As in the current measurement record, which tells why when it is null."


class RunOut(Owned):
    url = url_of("run")
    page_url = serializers.SerializerMethodField(help_text="The page for people.")
    owner = Person()
    invalid_reasons = serializers.ListField(
        child=serializers.DictField(), help_text="code, text and figure; empty when valid."
    )

    class Meta:
        model = Run
        fields = (
            *OWNED, "page_url", "uid", "number", "kind", "state", "title", "owner", "campaign",
            "workload", "configuration", "endpoint", "trace", "cache_state", "replicate",
            "simulated", "source", "queued_at", "started_at", "ended_at", "expires_at", "valid",
            "invalid_reasons", "failure", *_FIGURES,
        )  # fmt: skip
        extra_kwargs = {name: {"help_text": _OF_THE_RECORD} for name in _FIGURES}

    def get_page_url(self, run: Run) -> str:
        return run_page(self.context["request"], run)


class RunDetail(RunOut):
    policies = serializers.DictField()
    progress = serializers.DictField(help_text="The latest word of the load generator.")
    record_url = serializers.SerializerMethodField(help_text="The current measurement record.")

    class Meta(RunOut.Meta):
        fields = (*RunOut.Meta.fields, "policies", "progress", "cancel_requested", "record_url")

    def get_record_url(self, run: Run) -> str | None:
        return record_url(self.context["request"], run)


class RunIn(serializers.Serializer):
    project = serializers.SlugField(required=False, help_text="Slug; needed by members of several.")
    workload = serializers.IntegerField(help_text="Id, as of the other parts.")
    configuration = serializers.IntegerField(
        required=False, help_text="Default: the endpoint's configuration."
    )
    endpoint = serializers.IntegerField()
    trace = serializers.IntegerField()
    campaign = serializers.IntegerField(required=False, allow_null=True)
    policies = serializers.DictField(
        required=False, default=dict,
        help_text="max_concurrency, retries, timeout_s, warmup_s, window_s, drain_s, mode, "
        "capture, transport (fast or httpx); what is left out has its default.",
    )  # fmt: skip
    cache_state = serializers.ChoiceField(
        CacheState.choices, default=CacheState.WARM, allow_null=True
    )
    replicate = serializers.IntegerField(required=False, allow_null=True, min_value=1)
    title = serializers.CharField(max_length=200, required=False, default="", allow_blank=True)
    launch = serializers.BooleanField(default=True, help_text="false: leave it a draft.")


class RunFilter(ProjectRowsFilter):
    number = Id()
    uid = filters.UUIDFilter()
    kind = filters.ChoiceFilter(choices=RunKind.choices)
    state = filters.MultipleChoiceFilter(choices=RunState.choices)
    workload = Id("workload_id")
    configuration = Id("configuration_id")
    fingerprint = filters.CharFilter("configuration__fingerprint")
    endpoint = Id("endpoint_id")
    trace = Id("trace_id")
    campaign = Id("campaign_id")
    owner = filters.CharFilter("owner__username")
    cache_state = filters.ChoiceFilter(choices=CacheState.choices)
    valid = filters.BooleanFilter()
    simulated = filters.BooleanFilter()


class Runs(ReadOnly):
    """Runs with their headline figures; a figure not known is null."""

    queryset = Run.objects.select_related("project", "created_by", "owner")
    serializer_class = RunOut
    detail_serializer_class = RunDetail
    filterset_class = RunFilter
    ordering_fields = ("id", "created_at", "number", "state", *_FIGURES)
    nullable_ordering_fields = _FIGURES

    def get_serializer_class(self):
        return RunOut if self.action == "list" else RunDetail

    @extend_schema(request=RunIn, responses={201: RunDetail})
    def create(self, request) -> Response:
        """Make a run against a registered endpoint and, unless told otherwise, launch it."""
        given = RunIn(data=request.data)
        given.is_valid(raise_exception=True)
        fields = dict(given.validated_data)
        project = project_for(request, fields.pop("project", None))
        launch = fields.pop("launch")

        def make() -> Response:
            run = run_service.run_create(
                project=project, user=request.user, **_parts(project, fields)
            )
            if launch:
                run = run_service.run_launch(run=run, user=request.user)
            body = RunDetail(run, context=self.get_serializer_context()).data
            return Response(body, 201, headers={"Location": str(body["url"])})

        return once(request, project, make)

    @extend_schema(request=None, responses={200: RunDetail})
    @action(detail=True, methods=["post"])
    def launch(self, request, pk=None) -> Response:
        """Queue a draft; a worker takes it up."""
        return self._moved(request, run_service.run_launch)

    @extend_schema(request=None, responses={200: RunDetail})
    @action(detail=True, methods=["post"])
    def cancel(self, request, pk=None) -> Response:
        """Stop a run: a waiting one at once, a running one once its worker hears of it."""
        return self._moved(request, run_service.run_cancel)

    def _moved(self, request, move) -> Response:
        run = self.get_object()

        def moved() -> Response:
            after = move(run=run, user=request.user)
            return Response(RunDetail(after, context=self.get_serializer_context()).data)

        return once(request, run.project, moved)


def _parts(project: Project, fields: dict) -> dict:
    """The rows that ids name, each of this project; a wrong one is the field's error."""
    found = dict(fields)
    for name, model in _PARTS.items():
        if found.get(name) is None:
            continue
        row = model.objects.filter(project=project, pk=found[name]).first()
        if row is None:
            raise serializers.ValidationError({name: "No such id in this project"})
        found[name] = row
    if "configuration" not in found:
        if found["endpoint"].configuration is None:
            raise serializers.ValidationError(
                {"configuration": "Needed: the endpoint has no configuration of its own"}
            )
        found["configuration"] = found["endpoint"].configuration
    return found


_PARTS = {
    "workload": Workload, "configuration": Configuration, "endpoint": Endpoint, "trace": Trace,
    "campaign": Campaign,
}  # fmt: skip
