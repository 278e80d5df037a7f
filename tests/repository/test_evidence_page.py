"""docs/methods/evidence.md lists the columns as the code defines them."""

import re
from pathlib import Path

from records.evidence.columns import TABLES

PAGE = Path(__file__).resolve().parents[2] / "docs/methods/evidence.md"


def test_the_page_lists_each_column_with_its_type_unit_and_meaning():
    """Every column of every table is a row of the page, in order, and no other is."""
    told = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]*) \| ([^|]+) \|$", PAGE.read_text(), re.M)
    wanted = [
        (
            field.name,
            str(field.type).replace("element: ", ""),
            field.metadata[b"unit"].decode(),
            field.metadata[b"doc"].decode(),
        )
        for schema in TABLES.values()
        for field in schema
    ]
    assert [tuple(part.strip() for part in row) for row in told] == wanted
