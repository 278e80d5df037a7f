"""What people fill in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms

from records.models import Endpoint, Project, Trace
from records.models.choices import TokenScope
from records.selectors import registry
from records.services.policies import DEFAULTS

MOST_REPLICATES = 20


class TokenForm(forms.Form):
    """A new API token."""

    name = forms.CharField(max_length=120, label="Name")
    scope = forms.ChoiceField(choices=TokenScope.choices, initial=TokenScope.READ, label="May")
    days = forms.IntegerField(min_value=1, max_value=3650, required=False, label="Expires after")

    @property
    def lifetime(self) -> timedelta | None:
        """How long the token lives; None for as long as nobody revokes it."""
        days = self.cleaned_data.get("days")
        return None if days is None else timedelta(days=days)


class CampaignForm(forms.Form):
    """A campaign: the same trace on a baseline and on candidates, replicated."""

    title = forms.CharField(max_length=200, label="Question")
    trace = forms.ModelChoiceField(Trace.objects.none(), label="Trace", empty_label=None)
    baseline = forms.ModelChoiceField(Endpoint.objects.none(), label="Baseline", empty_label=None)
    candidates = forms.ModelMultipleChoiceField(Endpoint.objects.none(), label="Candidates")
    replicates = forms.IntegerField(
        min_value=1, max_value=MOST_REPLICATES, initial=5, label="Replicates per side"
    )
    warmup_s = forms.FloatField(min_value=0, initial=0, label="Warm-up")
    window_s = forms.FloatField(min_value=1, required=False, label="Window")
    drain_s = forms.FloatField(
        min_value=0, required=False, initial=DEFAULTS["drain_s"], label="Drain at most"
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        served = registry.endpoint_list(project).exclude(configuration=None)
        self.fields["trace"].queryset = registry.trace_list(project)
        self.fields["baseline"].queryset = served
        self.fields["candidates"].queryset = served

    def clean(self) -> dict[str, Any]:
        """Both sides differ, and the window lies inside the trace."""
        data = super().clean() or {}
        if data.get("baseline") in list(data.get("candidates") or []):
            self.add_error("candidates", "The baseline cannot be its own candidate.")
        trace, window, warmup = data.get("trace"), data.get("window_s"), data.get("warmup_s") or 0.0
        if trace is not None and trace.span_s is not None:
            if window is not None and warmup + window > trace.span_s:
                self.add_error("window_s", f"The trace is {trace.span_s:.0f} s long.")
            elif warmup >= trace.span_s:
                self.add_error("warmup_s", f"The trace is {trace.span_s:.0f} s long.")
        return data

    @property
    def runs(self) -> int:
        """How many runs it launches."""
        return self.cleaned_data["replicates"] * (1 + len(self.cleaned_data["candidates"]))

    @property
    def run_s(self) -> float:
        """Seconds of load of one run, the drain apart."""
        data = self.cleaned_data
        span = data["trace"].span_s or 0.0
        return data["warmup_s"] + data["window_s"] if data["window_s"] else span

    @property
    def least_s(self) -> float:
        """Seconds of the campaign when nothing has to drain."""
        return self.runs * self.run_s

    @property
    def most_s(self) -> float | None:
        """The same when every drain takes as long as it may; None where it has no limit."""
        drain = self.cleaned_data["drain_s"]
        return None if drain is None else self.runs * (self.run_s + drain)
