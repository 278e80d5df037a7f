"""What an operator fills in to register an endpoint, and the configuration it serves."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from typing import Any

from django import forms

from records.errors import FieldError
from records.models import Configuration, Project
from records.models.choices import Api
from records.selectors import registry
from records.services.endpoint import check_url, check_variable

LONGEST_TUPLE = 100_000


class EndpointForm(forms.Form):
    """An address and its limits; the service says what else is wrong, field by field."""

    name = forms.CharField(max_length=120, label="Name")
    url = forms.CharField(max_length=500, label="Address")
    api = forms.ChoiceField(choices=Api.choices, initial=Api.CHAT, label="API")
    model = forms.CharField(max_length=200, label="Model")
    configuration = forms.ModelChoiceField(
        Configuration.objects.none(), required=False, label="Configuration",
        empty_label="none of these",
    )  # fmt: skip
    configuration_name = forms.CharField(
        max_length=120, required=False, label="Name of a new configuration"
    )
    configuration_tuple = forms.CharField(
        max_length=LONGEST_TUPLE, required=False, label="Its fields, as JSON or TOML"
    )
    api_key_env = forms.CharField(max_length=120, required=False, label="Variable with the key")
    metrics_url = forms.CharField(max_length=500, required=False, label="Metrics address")
    max_rate_per_s = forms.FloatField(required=False, label="Rate at most")
    max_concurrency = forms.IntegerField(required=False, label="At once at most")

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["configuration"].queryset = registry.configuration_list(project)

    def clean_url(self) -> str:
        """An address that load may be sent to."""
        return self._checked("url", lambda given: check_url(given, "url"))

    def clean_metrics_url(self) -> str:
        """An address, or "" for none."""
        return self._checked("metrics_url", lambda url: url and check_url(url, "metrics_url"))

    def clean_api_key_env(self) -> str:
        """The name of a variable, or "" for none."""
        return self._checked("api_key_env", check_variable)

    def _checked(self, field: str, check: Callable[[str], str]) -> str:
        """As the service checks it; here too, so that all that is wrong is said at once.

        A refused value is not sent back where it may hold a pasted key or a password.
        """
        given = self.cleaned_data[field]
        try:
            return check(given)
        except FieldError as error:
            if field == "api_key_env" or "@" in given:
                self.data = self.data.copy()
                self.data[field] = ""
            raise forms.ValidationError(said(error)) from error

    def clean_configuration_tuple(self) -> dict[str, Any] | None:
        """The pasted tuple as a document; None for an empty field."""
        text = self.cleaned_data["configuration_tuple"].strip()
        return read_tuple(text) if text else None

    def clean(self) -> dict[str, Any]:
        """One configuration or a new one with a name, not both and not half of one."""
        data = super().clean() or {}
        given, name = data.get("configuration_tuple"), data.get("configuration_name")
        if given is not None and data.get("configuration"):
            self.add_error("configuration", "Choose one, or give the fields of a new one: not both")
        if given is not None and not name:
            self.add_error("configuration_name", "A new configuration needs a name")
        if name and given is None and "configuration_tuple" not in self.errors:
            self.add_error("configuration_tuple", "A new configuration needs its fields")
        return data


def said(error: FieldError) -> str:
    """What would have been right, for the place beside the field."""
    return f"Needed is {error.expected}"


def read_tuple(text: str) -> dict[str, Any]:
    """A configuration tuple from JSON (which begins with a brace) or TOML.

    ValidationError says where it does not parse.
    """
    try:
        document = json.loads(text) if text.startswith("{") else tomllib.loads(text)
    except (json.JSONDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        kind = "JSON" if text.startswith("{") else "TOML"
        raise forms.ValidationError(f"This is not {kind}: {error}") from error
    if not isinstance(document, dict):
        raise forms.ValidationError("A configuration is an object of fields")
    return document
