"""What the documents say is what the code does."""

import re
import tomllib
from pathlib import Path

import pytest

from impakt_web.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]


def _read(name: str) -> str:
    return (ROOT / name).read_text()


def test_every_setting_is_documented_and_every_documented_one_is_read():
    """docs/settings.md lists exactly the IMPAKT_ variables that the code reads."""
    read = set()
    for room in ("impakt_web", "records", "runners"):
        for path in (ROOT / room).rglob("*.py"):
            read |= set(re.findall(r"[\"'](IMPAKT_[A-Z_]+)[\"']", path.read_text()))
    documented = set(re.findall(r"^\| `(IMPAKT_[A-Z_]+)`", _read("docs/settings.md"), re.M))
    assert read == documented


def test_readme_first_screen_shows_both_commands_and_a_picture():
    """The first screen of the README holds make up, make test and a screenshot that exists."""
    head = "\n".join(_read("README.md").splitlines()[:25])
    assert "make up" in head
    assert "make test" in head
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", head)
    assert (ROOT / picture).is_file()


def test_readme_names_only_commands_that_exist():
    """Each `impakt X` of the README is in the command table."""
    named = set(re.findall(r"(?:^|`)impakt ([a-z-]+)", _read("README.md"), re.M))
    assert named - {"up"} <= set(COMMANDS)


def test_links_in_documents_lead_somewhere():
    """Every relative link of the documents points at a file of the repository."""
    broken = []
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
            if not (path.parent / target).exists():
                broken.append(f"{path.relative_to(ROOT)} -> {target}")
    assert broken == []


def test_each_dependency_has_its_reason():
    """Every direct dependency in pyproject.toml carries a comment."""
    text = _read("pyproject.toml")
    names = tomllib.loads(text)["project"]["dependencies"]
    reasoned = re.findall(r'^  "([^"]+)",\s+#\s+\S', text, re.M)
    assert set(names) <= set(reasoned)


@pytest.mark.parametrize("name", ["runtime", "dev"])
def test_every_locked_version_has_a_hash(name):
    """No line of the lock goes without a hash."""
    text = _read(f"requirements/{name}.txt")
    pins = re.findall(r"^([a-z0-9_.\[\]-]+)==", text, re.M)
    assert len(pins) > 30
    assert len(re.findall(r"^[a-z0-9_.\[\]-]+==[^\n]*\\\n\s+--hash=sha256:", text, re.M)) == len(
        pins
    )
