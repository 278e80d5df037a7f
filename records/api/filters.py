"""Filtering and ordering of lists; a parameter nobody knows is an error, never ignored."""

from __future__ import annotations

from datetime import UTC

from django import forms
from django.db.models import F, FloatField, Value
from django.db.models.functions import Coalesce
from django_filters import rest_framework as filters
from django_filters.fields import IsoDateTimeField
from rest_framework.exceptions import ValidationError
from rest_framework.filters import OrderingFilter

_FLOAT = FloatField()
_PAGING = {"cursor", "page_size", "format", "ordering"}


class Id(filters.NumberFilter):
    """The id of a related row; one that the reader may not see simply matches nothing."""

    field_class = forms.IntegerField

    def __init__(self, *args, **kwargs) -> None:
        # What a database can hold; beyond it SQLite fails instead of finding nothing.
        super().__init__(*args, min_value=0, max_value=2**63 - 1, **kwargs)


class _Moment(IsoDateTimeField):
    def to_python(self, value):
        moment = super().to_python(value)
        try:
            return moment and moment.astimezone(UTC)
        except OverflowError as error:
            # The first and the last day of all, told in another zone.
            invalid = self.error_messages["invalid"]
            raise forms.ValidationError(invalid, code="invalid") from error


class Moment(filters.IsoDateTimeFilter):
    """A time of day, RFC 3339."""

    field_class = _Moment


class ProjectRowsFilter(filters.FilterSet):
    """What every list can be narrowed by."""

    project = filters.CharFilter("project__slug", label="Slug of the project.")
    created_after = Moment("created_at", "gte", label="RFC 3339; included.")
    created_before = Moment("created_at", "lt", label="RFC 3339; left out.")


class StrictFilters(filters.DjangoFilterBackend):
    """django-filter, but a mistyped parameter is refused instead of giving the whole list."""

    def filter_queryset(self, request, queryset, view):
        filterset = self.get_filterset(request, queryset, view)
        known = set(filterset.filters) if filterset is not None else set()
        for name in request.query_params:
            if name not in known | _PAGING:
                choices = ", ".join(sorted(known | {"ordering", "page_size"}))
                raise ValidationError({name: f"Not a parameter of this list; it knows {choices}"})
        return super().filter_queryset(request, queryset, view)


class Ordering(OrderingFilter):
    """`ordering=field` or `-field`, one of the view's `ordering_fields`; rows without a value last.

    The cursor needs a value in every row, so nulls of nullable columns sort as
    a number beyond any measured one.
    """

    ordering_description = "A field to sort by, with `-` for descending."

    def filter_queryset(self, request, queryset, view):
        name, descending = self._asked(request, view)
        if name in getattr(view, "nullable_ordering_fields", ()):
            last = Value(-1e308 if descending else 1e308)
            return queryset.annotate(sort_value=Coalesce(F(name), last, output_field=_FLOAT))
        return queryset

    def get_ordering(self, request, queryset, view):
        name, descending = self._asked(request, view)
        if name in getattr(view, "nullable_ordering_fields", ()):
            name = "sort_value"
        sign = "-" if descending else ""
        return (f"{sign}{name}",) if name == "pk" else (f"{sign}{name}", f"{sign}pk")

    def _asked(self, request, view) -> tuple[str, bool]:
        given = request.query_params.get(self.ordering_param)
        if not given:
            return "pk", True
        name, descending = given.removeprefix("-"), given.startswith("-")
        if name not in view.ordering_fields:
            known = ", ".join(view.ordering_fields)
            raise ValidationError({self.ordering_param: f"One of {known}, or - before it"})
        return ("pk" if name == "id" else name), descending

    def get_schema_operation_parameters(self, view):
        names = [f"{sign}{name}" for name in view.ordering_fields for sign in ("", "-")]
        return [
            {
                "name": self.ordering_param,
                "required": False,
                "in": "query",
                "description": self.ordering_description,
                "schema": {"type": "string", "enum": names, "default": "-id"},
            }
        ]
