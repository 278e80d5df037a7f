"""Static files as whole answers, the same under every server."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile


class StaticFiles(WhiteNoiseMiddleware):
    """WhiteNoise with its compression, caching and ranges, but for the streaming.

    It hands Django a file to iterate, which Django reads whole under ASGI, with
    a warning for each request. Our largest file is 0.4 MB compressed.
    """

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        """The answer WhiteNoise would give, its body read and its file closed."""
        answer = static_file.get_response(request.method, request.META)
        body = b""
        if answer.file is not None:
            with answer.file as file:
                body = file.read()
        response = HttpResponse(body, status=int(answer.status))
        # WhiteNoise says the type where there is one, and nothing else of Django's.
        del response["Content-Type"]
        for name, value in answer.headers:
            response[name] = value
        return response
