from django.apps import AppConfig


class RunnersConfig(AppConfig):
    """Load runs: the tasks that send requests and watch the serving side."""

    name = "runners"
