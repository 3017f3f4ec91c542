"""The web process as it is served: uvicorn, the raw ASGI entry, Django in threads behind it."""

import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from config.env import BASE_DIR
from tests.waiting import eventually


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "config.asgi:application", "--port", str(port), "--no-access-log"]
    log = tmp_path / "uvicorn.log"
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings.test"}
    with log.open("w") as output:
        server = subprocess.Popen(command, cwd=BASE_DIR, env=env, stdout=output, stderr=output)
    try:
        eventually(lambda: "Uvicorn running" in log.read_text(), timeout=60)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)
    assert "Traceback" not in log.read_text()


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url) as response:  # noqa: S310 - a URL of our own
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_many_at_once_are_answered_and_the_end_is_clean(url: str) -> None:
    with ThreadPoolExecutor(32) as pool:
        assert set(pool.map(status, [f"{url}/healthz"] * 200)) == {200}


def test_what_is_not_there_is_404_and_carries_the_policy(url: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as missing:
        urllib.request.urlopen(f"{url}/no/such/page")  # noqa: S310
    with missing.value as response:
        assert response.code == 404
        policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
