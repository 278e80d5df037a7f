"""Lists come in pages by cursor, so that page 1,000 costs what page 1 costs."""

from rest_framework.pagination import CursorPagination


class Cursor(CursorPagination):
    """Newest first; `page_size` up to 200."""

    ordering = "-pk"
    page_size_query_param = "page_size"
    max_page_size = 200
