"""The ASGI application uvicorn serves."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "impakt_web.settings")
_django = get_asgi_application()

from impakt_web.body_limit import BodyLimit  # noqa: E402 - it reads the settings made above

application = BodyLimit(_django)
