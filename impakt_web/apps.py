from django.apps import AppConfig


class ImpaktWebConfig(AppConfig):
    """The application around the rooms: settings, addresses, commands, start-up checks."""

    name = "impakt_web"
