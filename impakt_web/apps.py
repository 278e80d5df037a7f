from django.apps import AppConfig


class ImpaktWebConfig(AppConfig):
    """The application around the rooms: settings, addresses, commands, start-up checks."""

    name = "impakt_web"

    def ready(self) -> None:
        # Makes our Celery application the current one, so that services can send
        # tasks by name from any process that runs Django.
        from impakt_web import celery  # noqa: F401 - imported for its effect
