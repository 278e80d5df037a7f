from django.apps import AppConfig


class ImpaktWebConfig(AppConfig):
    """The application around the rooms: settings, addresses, commands, start-up checks."""

    name = "impakt_web"

    def ready(self) -> None:
        # Services send tasks through Celery's current application: this makes it ours.
        from impakt_web import celery, checks  # noqa: F401 - imported for what they register
