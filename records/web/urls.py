"""Addresses of the pages."""

from django.urls import URLPattern, path

from records.web import (
    comparison,
    configuration,
    endpoint,
    evidence,
    home,
    longer,
    run,
    run_charts,
    run_live,
    runs,
    sign_in,
    tokens,
    trace,
    workload,
)

_RUN = "p/<slug:slug>/runs/<int:number>/"

urlpatterns: list[URLPattern] = [
    path("", home.home, name="home"),
    path("sign-in/", sign_in.sign_in, name="sign_in"),
    path("sign-in/link/<str:token>/", sign_in.sign_in_link, name="sign_in_link"),
    path("sign-out/", sign_in.sign_out, name="sign_out"),
    path("p/<slug:slug>/", home.project, name="project"),
    path("p/<slug:slug>/alerts/<int:pk>/resolve", home.alert_resolve, name="alert_resolve"),
    path("p/<slug:slug>/runs/", runs.runs, name="runs"),
    path(_RUN, run.run, name="run"),
    path(_RUN + "record.json", run.record_json, name="run_record"),
    path(_RUN + "events", run_live.run_events, name="run_events"),
    path(_RUN + "progress", run_live.run_progress, name="run_progress"),
    path(_RUN + "stop", run_live.run_stop, name="run_stop"),
    path(_RUN + "verify", evidence.run_verify, name="run_verify"),
    path(_RUN + "evidence/<int:pk>/", evidence.download, name="evidence"),
    path(_RUN + "charts/<slug:name>.json", run_charts.chart_json, name="run_chart"),
    path(_RUN + "charts/<slug:name>.csv", run_charts.chart_csv, name="run_chart_csv"),
    path(
        "p/<slug:slug>/configurations/<int:pk>/",
        configuration.configuration, name="configuration",
    ),
    path("p/<slug:slug>/traces/<int:pk>/", trace.trace, name="trace"),
    path("p/<slug:slug>/endpoints/", endpoint.endpoints, name="endpoints"),
    path("p/<slug:slug>/endpoints/<int:pk>/", endpoint.endpoint, name="endpoint"),
    path("p/<slug:slug>/workloads/", workload.workloads, name="workloads"),
    path("p/<slug:slug>/workloads/<int:pk>/", workload.workload, name="workload"),
    path("p/<slug:slug>/workloads/<int:pk>/campaign", workload.campaign, name="campaign_launch"),
    path("p/<slug:slug>/workloads/<int:pk>/longer", longer.campaign_longer, name="campaign_longer"),
    path("p/<slug:slug>/comparisons/", comparison.comparisons, name="comparisons"),
    path("p/<slug:slug>/comparisons/<int:number>/", comparison.comparison, name="comparison"),
    path(
        "p/<slug:slug>/comparisons/<int:number>/document.json",
        comparison.comparison_json, name="comparison_json",
    ),
    path(
        "p/<slug:slug>/comparisons/<int:number>/stop",
        comparison.comparison_stop, name="comparison_stop",
    ),
    path("p/<slug:slug>/tokens/", tokens.tokens, name="tokens"),
    path("p/<slug:slug>/tokens/<int:pk>/revoke", tokens.token_revoke, name="token_revoke"),
]  # fmt: skip
