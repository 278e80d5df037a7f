"""The framework-free rooms really are free of frameworks."""

import subprocess
import sys

import pytest

PURE = [
    "records.errors",
    "records.statistics.intervals",
    "records.evidence.folder",
    "records.traces.reading",
    "records.acceptance.judging",
    "records.analysis.record",
    "records.analysis.comparison",
    "records.charts",
    "runners.load",
    "runners.endpoint",
]


@pytest.mark.parametrize("module", PURE)
def test_a_pure_room_loads_no_django(module):
    """Importing a pure room in a fresh interpreter brings in neither Django nor Celery."""
    code = f"import sys, {module}; print([m for m in ('django', 'celery') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("command", ["load", "analyze", "trace", "judge", "verify"])
def test_headless_help_needs_no_django(command):
    """The headless commands start without Django, settings or a database, and show an example."""
    code = (
        "import sys\n"
        "from impakt_web.cli.main import run\n"
        f"code = run(['{command}', '--help'])\n"
        "assert 'django' not in sys.modules, 'django was loaded'\n"
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "xample" in done.stdout
