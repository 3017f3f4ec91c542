"""A real sandbox downstream as a process of its own, for tests that talk to it over HTTP."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from compensation.sandbox.node_types import node_types

REPOSITORY = Path(__file__).resolve().parents[2]
START_SECONDS = 20
STOP_SECONDS = 10
ANSWER_SECONDS = 20


@dataclass(frozen=True)
class Answer:
    """What came back: `headers` by lower-case name, `text` as received."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class SandboxProcess:
    """`with SandboxProcess() as sandbox:` runs one on a free port; it is stopped by its pid at the end.

    The ledger lives in `data_dir`, a temporary directory of its own unless one is given, so that `kill()` and
    `restart()` show what a crash leaves behind. Restarts keep the port.
    """

    def __init__(self, *, data_dir: Path | None = None, delay_ms: int = 0) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="sandbox-") if data_dir is None else None
        self.data_dir = data_dir or Path(str(self._temporary and self._temporary.name))
        self._delay_ms = delay_ms
        self._port = 0
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._signal(signal.SIGKILL)
        if self._temporary is not None:
            self._temporary.cleanup()

    def start(self) -> None:
        """Start the process and wait for the line that says where it listens."""
        command = [sys.executable, "-m", "compensation.sandbox", "--port", str(self._port)]
        command += ["--data-dir", str(self.data_dir), "--delay-ms", str(self._delay_ms)]
        self._process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
        line = self._first_line()
        if "http://" not in line:
            self._signal(signal.SIGKILL)
            raise RuntimeError(f"the sandbox did not say within {START_SECONDS} s where it listens: {line!r}")
        self.url = line.split()[-1]
        self._port = urlsplit(self.url).port or 0

    def kill(self) -> None:
        """SIGKILL: no goodbye, no flush."""
        self._signal(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; the exit code. Raises subprocess.TimeoutExpired when it does not end."""
        return self._signal(signal.SIGTERM)

    def restart(self) -> None:
        """Start again on the same ledger and the same port."""
        self.start()

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("the sandbox is not running")
        return self._process.pid

    def request(self, method: str, path: str, *, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """One exchange on a connection of its own. `body`: bytes go out as they are, anything else as JSON."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=ANSWER_SECONDS)
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, body=raw, headers=dict(headers or {}))
            response = connection.getresponse()
            received = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, received, response.read().decode())
        finally:
            connection.close()

    def post(self, path: str, body: Any = None, *, key: str | None = None) -> Answer:
        """POST to a system, such as `post("/payments/refund", {"chargeId": "ch_1"}, key="k")`."""
        headers = {"Idempotency-Key": key} if key is not None else {}
        return self.request("POST", path, body={} if body is None else body, headers=headers)

    def faults(
        self, match: str, mode: str, *, times: int | None = None, ms: int | None = None, status: int | None = None
    ) -> list[dict[str, Any]]:
        """Inject a fault; the active ones."""
        asked = {"match": match, "mode": mode, "times": times, "ms": ms, "status": status}
        answer = self.request("POST", "/faults", body=asked)
        assert answer.status == 201, answer.text
        return list(answer.json["faults"])

    def clear_faults(self) -> None:
        """No fault is active afterwards."""
        assert self.request("DELETE", "/faults").status == 200

    def stats(self, *, key: str | None = None) -> dict[str, Any]:
        """`{requests, effects, duplicates, byKey}`; with `key`, byKey holds that one only."""
        query = f"?{urlencode({'key': key})}" if key is not None else ""
        return dict(self.request("GET", f"/stats{query}").json)

    def effect(self, key: str) -> dict[str, Any] | None:
        """The effect applied under a key, read back over HTTP."""
        answer = self.request("GET", f"/effects/{quote(key, safe='')}")
        return dict(answer.json) if answer.status == 200 else None

    def effects(self, *, key: str | None = None, system: str | None = None) -> list[dict[str, Any]]:
        """All effects, newest first, over as many pages as there are."""
        wanted = {name: value for name, value in (("key", key), ("system", system)) if value is not None}
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            query = urlencode(wanted | ({"cursor": cursor} if cursor else {}))
            listed = self.request("GET", f"/effects?{query}").json
            found += listed["effects"]
            cursor = listed["nextCursor"]
            if cursor is None:
                return found

    def node_types(self) -> list[dict[str, Any]]:
        """The registry documents whose requests go to this process."""
        return node_types(self.url)

    def _first_line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], START_SECONDS)
        return self._process.stdout.readline() if readable else ""

    def _signal(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            raise RuntimeError("the sandbox is not running")
        if process.poll() is None:
            os.kill(process.pid, number)
        try:
            return process.wait(STOP_SECONDS)
        finally:
            if process.stdout is not None:
                process.stdout.close()
