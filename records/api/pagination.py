"""Lists come in pages by cursor, so that page 1,000 costs what page 1 costs."""

from __future__ import annotations

from django.core.exceptions import ValidationError as BadValue
from django.db import DataError
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import CursorPagination


class Cursor(CursorPagination):
    """Newest first; `page_size` up to 200."""

    ordering = "-pk"
    page_size_query_param = "page_size"
    page_size_query_description = "Rows per page, 1 to 200."
    cursor_query_description = "From `next` or `previous` of another page."
    max_page_size = 200
    # DRF stops at 1,000 rows of one sort value, and would give that page for ever.
    offset_cutoff = 10**9

    def paginate_queryset(self, queryset, request, view=None):
        try:
            return super().paginate_queryset(queryset, request, view)
        except (ValueError, OverflowError, BadValue, DataError) as error:
            # A cursor made up or kept from another ordering: its position has another type.
            raise NotFound(self.invalid_cursor_message) from error

    def get_page_size(self, request) -> int:
        given = request.query_params.get(self.page_size_query_param)
        # A number of thousands of digits is not even read.
        whole = given is not None and given.isascii() and given.isdigit() and len(given) < 19
        if given is not None and not (whole and int(given) > 0):
            raise ValidationError({self.page_size_query_param: "A whole number from 1 is needed"})
        return super().get_page_size(request)
