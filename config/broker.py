"""The default Celery broker: a folder of messages, one file each, safe for many readers and writers at once.

A writer writes aside and renames, a reader claims by renaming: nobody ever sees half a message and exactly one reader
wins each. (The stock filesystem transport of kombu writes in place; a reader of half a message kills its worker.)
Queues are the last part of a file's name. There is no fan-out, so no remote control and no gossip either.
"""

import logging
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import virtual
from kombu.utils.json import dumps, loads

POLLING_INTERVAL_S = 0.03

logger = logging.getLogger(__name__)


class Channel(virtual.Channel):
    """Reads and writes the messages of `transport_options["folder"]`, which may vanish at any moment and be remade."""

    @property
    def folder(self) -> Path:
        client: Any = self.connection.client
        return Path(client.transport_options["folder"])

    def _put(self, queue: str, message: dict[str, Any], **_: Any) -> None:
        name = f"{time.time_ns():020}-{uuid.uuid4().hex}"
        aside = self.folder / f".{name}.aside"
        body = dumps(message)
        try:
            aside.write_text(body)
            aside.rename(self.folder / f"{name}.{queue}.msg")
        except FileNotFoundError:  # the folder is not there yet, or was wiped under us
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._put(queue, message)

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        for path in self._messages(queue):
            message = self._take(path)
            if message is not None:
                return message
        raise Empty

    def _take(self, path: Path) -> dict[str, Any] | None:
        """The message of `path`, now ours alone; None when another reader won it or when it is no message."""
        taken = path.with_name(f".{uuid.uuid4().hex}.taken")
        try:
            path.rename(taken)
        except FileNotFoundError:
            return None
        try:
            message = self._decoded(taken.read_bytes())
            taken.unlink()
        except Exception:
            # Whatever somebody put into the folder, it must cost a log line and not the worker.
            logger.exception("a file in the broker's folder is not a message: %s, kept as %s", path.name, taken.name)
            return None
        return message

    def _decoded(self, content: bytes) -> dict[str, Any]:
        """Raises one error or another unless `content` has all that kombu and Celery take for granted."""
        message: dict[str, Any] = loads(content)
        route = message["properties"]["delivery_info"]
        if not all(isinstance(text, str) for text in (message["body"], route["exchange"], route["routing_key"])):
            raise TypeError("body, exchange and routing_key must be text")
        self.Message(message, channel=self)
        return message

    def _messages(self, queue: str) -> Iterator[Path]:
        """Oldest first."""
        try:
            names = sorted(path.name for path in self.folder.iterdir())
        except FileNotFoundError:
            return
        for name in names:
            if name.partition(".")[2] == f"{queue}.msg" and not name.startswith("."):
                yield self.folder / name

    def _size(self, queue: str) -> int:
        return sum(1 for _ in self._messages(queue))

    def _purge(self, queue: str) -> int:
        return sum(1 for path in self._messages(queue) if self._take(path) is not None)


class Transport(virtual.Transport):
    """kombu's entry to the folder; `polling_interval` trades hand-over latency for idle CPU (30 ms: under 1 %)."""

    Channel = Channel
    driver_type = "filesystem"
    driver_name = "filesystem"
    polling_interval = POLLING_INTERVAL_S
    implements = virtual.Transport.implements.extend(exchange_type=frozenset(["direct"]))

    @property
    def default_connection_params(self) -> dict[str, Any]:
        return {}  # a folder has no host to fall back on

    def driver_version(self) -> str:
        return "1"
