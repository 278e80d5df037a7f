"""Judgments: what each completion was judged to be, with the set it came in."""

from __future__ import annotations

from django_filters import rest_framework as filters
from rest_framework import serializers

from records.api.filters import Id
from records.api.views import ReadOnly, url_of
from records.models import Judgment, JudgmentSet
from records.models.choices import JudgmentMethod


class JudgmentSetOut(serializers.ModelSerializer):
    class Meta:
        model = JudgmentSet
        fields = ("id", "run", "method", "author", "rubric_hash", "evidence", "created_at")


class JudgmentOut(serializers.ModelSerializer):
    url = url_of("judgment")
    project = serializers.SlugRelatedField(
        slug_field="slug", read_only=True, source="judgment_set.project"
    )
    set = JudgmentSetOut(source="judgment_set")

    class Meta:
        model = Judgment
        fields = (
            "id", "url", "project", "set", "workflow_id", "request_id", "rubric_passed",
            "criteria", "severe_failure", "authority_violation", "review_minutes",
        )  # fmt: skip


class JudgmentFilter(filters.FilterSet):
    project = filters.CharFilter("judgment_set__project__slug", label="Slug of the project.")
    run = Id("judgment_set__run_id")
    set = Id("judgment_set_id")
    method = filters.ChoiceFilter("judgment_set__method", choices=JudgmentMethod.choices)
    workflow_id = filters.CharFilter()
    request_id = filters.CharFilter()
    rubric_passed = filters.BooleanFilter()
    severe_failure = filters.BooleanFilter()
    authority_violation = filters.BooleanFilter()


class Judgments(ReadOnly):
    """Judgments, a row per judged completion."""

    queryset = Judgment.objects.select_related("judgment_set__project")
    project_path = "judgment_set__project"
    serializer_class = JudgmentOut
    filterset_class = JudgmentFilter
    ordering_fields = ("id", "workflow_id", "request_id")
