"""A real Chromium against the real WSGI app, served by a thread of this process on a free port."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.conf import settings
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.wsgi import get_wsgi_application
from django.db import connections
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from audit.principals import Principal
from tests.support.stage import Stage
from tests.support.staging import *  # noqa: F403
from tests.support.world import user_of

# Playwright's synchronous API keeps an event loop in this thread, which Django takes for asynchronous code.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE_MS = 10_000

Open = Callable[..., Page]


class QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        """Nothing: what matters of a request is asserted."""


class Server(ThreadedWSGIServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser hangs up when its page closes, which is no error of ours."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The console's address."""
    running = Server(("127.0.0.1", 0), QuietHandler)
    running.set_app(get_wsgi_application())
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a module: its event loop must be gone from this thread before other tests run in it."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("THE BROWSER TESTS ARE NOT RUN: there is no Chromium here")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def troubles() -> list[str]:
    """What the pages of a test complained about: script errors and everything the CSP refused."""
    return []


@pytest.fixture
def open_as(stage: Stage, server: str, chromium: Browser, troubles: list[str]) -> Iterator[Open]:
    """`open_as(principal, path)`: a page of somebody signed in; keywords are the browser context's."""
    contexts: list[BrowserContext] = []

    def open_page(principal: Principal | None, path: str, **options: Any) -> Page:
        context = chromium.new_context(base_url=server, **options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        if principal is not None:
            context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session_of(principal), "url": server}])
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda line: troubles.append(line.text) if "Content Security Policy" in line.text else None)
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()


def session_of(principal: Principal) -> str:
    client = Client()
    client.force_login(user_of(principal), backend="django.contrib.auth.backends.ModelBackend")
    return str(client.cookies[settings.SESSION_COOKIE_NAME].value)


def work(stage: Stage) -> None:
    """Run what is due. The runner has an event loop of its own, so it needs a thread without one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(_work_and_close, stage).result()


def _work_and_close(stage: Stage) -> None:
    stage.work()
    connections.close_all()
