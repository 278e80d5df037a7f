"""A real server with collected static files, and the machine's own Chromium.

The browser lives in one thread of its own: Playwright keeps an event loop in its
thread, in which Django would refuse every query of the test.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Page, sync_playwright

from records.services import access
from tests import factories
from tests.conftest import ROOT, wait_for, worker_environment

CHROMIUM = os.environ.get("IMPAKT_TEST_CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder needs Chromium."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium() -> Iterator[tuple[ThreadPoolExecutor, Browser]]:
    """The browser and the thread it must be spoken to in."""
    if shutil.which(CHROMIUM) is None:
        why = f"no Chromium at {CHROMIUM} (Debian: apt-get install chromium)"
        # What a user's machine may lack, CI may not.
        pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
    thread = ThreadPoolExecutor(1)
    playwright = thread.submit(lambda: sync_playwright().start()).result()
    browser = thread.submit(
        lambda: playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
    ).result()
    yield thread, browser
    thread.submit(browser.close).result()
    thread.submit(playwright.stop).result()
    thread.shutdown()


@pytest.fixture(scope="session")
def static_files(django_db_setup) -> None:
    """Static files as they are served in earnest: hashed and compressed."""
    environment = worker_environment()
    command = [sys.executable, "manage.py", "collectstatic", "--no-input", "--clear", "-v0"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


@pytest.fixture(scope="session")
def server(chromium, static_files, django_db_setup, tmp_path_factory) -> Iterator[str]:
    """The address of the one web process: it keeps nothing from one test's database to the next."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        os.set_inheritable(listener.fileno(), True)
        command = [sys.executable, "-m", "uvicorn", "impakt_web.asgi:application"]
        command += ["--fd", str(listener.fileno()), "--timeout-graceful-shutdown", "1"]
        log = tmp_path_factory.mktemp("web") / "web.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, cwd=ROOT, env=worker_environment(), stdout=out,
                stderr=subprocess.STDOUT, pass_fds=[listener.fileno()],
            )  # fmt: skip
    try:
        wait_for(lambda: _answers(address), 30, lambda: log.read_text())
        yield address
    finally:
        process.terminate()
        process.wait(10)


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/healthz", timeout=1).status_code == 200
    except httpx.HTTPError:
        return False


class Reader:
    """A person at a browser window; everything is done in the browser's thread."""

    def __init__(self, thread: ThreadPoolExecutor, page: Page, server: str) -> None:
        self.thread, self.page, self.server = thread, page, server
        self.complaints: list[str] = []
        self.do(self._listen)

    def _listen(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def do(self, act: Callable[[Page], Any]) -> Any:
        """What `act` does with the page."""
        return self.thread.submit(lambda: act(self.page)).result(60)

    def open(self, path: str) -> None:
        """Goes to a path and waits until its scripts are done."""
        self.do(lambda page: page.goto(self.server + path, wait_until="domcontentloaded"))
        self.ready()

    def ready(self) -> None:
        """Waits until the page's scripts are done."""
        self.do(lambda page: page.wait_for_selector("body[data-ready]"))

    def sign_in(self, user: Any) -> None:
        """Signs in with a one-time link."""

        def press(page: Page) -> None:
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url("**/p/**")

        self.open(reverse("sign_in_link", args=[access.link_create(user=user)]))
        self.do(press)
        self.ready()


@pytest.fixture
def reader(chromium, server, transactional_db) -> Iterator[Callable[..., Reader]]:
    """Opens windows: `reader(width=390, dark=True)`."""
    thread, browser = chromium
    contexts = []

    def make(width: int = 1280, dark: bool = False) -> Reader:
        scheme = "dark" if dark else "light"
        context = thread.submit(
            lambda: browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True
            )
        ).result()
        contexts.append(context)
        return Reader(thread, thread.submit(context.new_page).result(), server)

    yield make
    for context in contexts:
        thread.submit(context.close).result()


@pytest.fixture
def run(project, tmp_path):
    """A completed run with evidence and a record, large enough for every chart."""
    return factories.make_run(project, folder=factories.sample_folder(tmp_path, requests=60))
