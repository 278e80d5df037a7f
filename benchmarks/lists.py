"""How fast is the run list at 100,000 runs, against the same page at 100?

SQLite in a temporary folder; the query of the list page with its joins, first
page, newest first, sorted by a figure, filtered by state, and searched.
"""

from __future__ import annotations

import os
import tempfile

from benchmarks.table import Row, row, timed

RUNS, FEW, PAGE = 100_000, 100, 50
CASES: dict[str, dict[str, str]] = {
    "newest first": {},
    "by accepted goodput": {"sort": "-accepted_per_s"},
    "failed only": {"state": "failed"},
    "search": {"q": "batching"},
}


def rows() -> list[Row]:
    """Milliseconds for a page of 50 rows."""
    with tempfile.TemporaryDirectory() as data:
        os.environ |= {"DJANGO_SETTINGS_MODULE": "impakt_web.settings", "IMPAKT_DATA": data}
        os.environ.pop("IMPAKT_DATABASE_URL", None)
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        few, many = _project("few", FEW), _project("many", RUNS)
        return [_row(name, filters, few, many) for name, filters in CASES.items()]


def _row(name, filters, few, many) -> Row:
    small, large = _page_ms(few, filters), _page_ms(many, filters)
    return row(f"{RUNS:,} runs, {name}", large, "ms", (f"{FEW} runs", small))


def _page_ms(project, filters) -> list[float]:
    from records.selectors.run import run_list

    seconds = timed(lambda: list(run_list(project=project, filters=filters)[:PAGE]), 7)
    return [s * 1e3 for s in seconds]


def _project(slug: str, runs: int):
    from records.models import Configuration, Project, Run

    project = Project.objects.create(slug=slug, name=slug)
    configurations = [
        Configuration.objects.create(
            project=project, name=f"{kind} batching", fingerprint=kind, document={"batching": kind}
        )
        for kind in ("static", "continuous")
    ]
    Run.objects.bulk_create(
        [
            Run(
                project=project, number=i + 1, kind="external", configuration=configurations[i % 2],
                state="failed" if i % 50 == 0 else "completed", attempted=1000,
                accepted_per_s=(i * 7919 % 1000) / 100,
            )
            for i in range(runs)
        ],
        batch_size=2000,
    )  # fmt: skip
    return project
