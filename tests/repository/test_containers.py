"""The container files are whole: what they name exists and is started the same way here."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def test_compose_has_every_service_with_a_health_check(compose):
    """Web, both workers, beat, PostgreSQL and Redis are there, each with a health check."""
    services = compose["services"]
    assert set(services) == {
        "postgres", "redis", "migrate", "web", "worker", "loadgen", "beat",
    }  # fmt: skip
    for name in set(services) - {"migrate"}:
        assert services[name]["healthcheck"]["test"], name


def test_compose_has_no_secret_of_its_own(compose):
    """Passwords and keys come from the environment and have no default."""
    text = (ROOT / "docker-compose.yml").read_text()
    for variable in ("IMPAKT_SECRET_KEY", "POSTGRES_PASSWORD"):
        assert re.search(rf"\$\{{{variable}:\?", text)
        assert not re.search(rf"\$\{{{variable}:-", text)


def test_our_services_share_one_image_and_environment(compose):
    """Web, workers, beat and migrate differ in their command only."""
    ours = [compose["services"][n] for n in ("migrate", "web", "worker", "loadgen", "beat")]
    assert len({s["image"] for s in ours}) == 1
    assert all(s["environment"] == ours[0]["environment"] for s in ours)


def test_every_setting_of_the_compose_file_is_documented(compose):
    """Each IMPAKT_ variable the compose file sets is in docs/settings.md."""
    documented = (ROOT / "docs/settings.md").read_text()
    for name in compose["services"]["web"]["environment"]:
        assert f"`{name}`" in documented


def test_the_queues_of_the_workers_are_those_tasks_are_sent_to(compose):
    """Between them the workers consume every queue that a task is routed to."""
    from impakt_web import celery_settings

    consumed = set()
    for name in ("worker", "loadgen"):
        command = compose["services"][name]["command"]
        consumed |= set(command[command.index("-Q") + 1].split(","))
    routed = {route["queue"] for route in celery_settings.task_routes.values()}
    assert routed | {celery_settings.task_default_queue} == consumed


def test_dockerfile_copies_only_what_exists_and_runs_as_nobody_special():
    """Every COPY source exists, the image runs as its own user, the lock is used with hashes."""
    text = (ROOT / "Dockerfile").read_text()
    for line in re.findall(r"^COPY (.+)$", text, re.M):
        for source in shlex.split(line)[:-1]:
            assert (ROOT / source).exists(), source
    assert re.search(r"^USER impakt$", text, re.M)
    assert "--require-hashes -r requirements/runtime.txt" in text
