"""A real TCP server that answers as badly as a test wants, and remembers what reached it."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, ParamSpec, Self

P = ParamSpec("P")


def in_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test in an event loop of its own."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


@dataclass(frozen=True)
class Received:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Exchanged:
    """One request as it arrived, with the means to answer it."""

    request: Received
    writer: asyncio.StreamWriter
    number: int
    stopping: asyncio.Event

    async def answer(
        self,
        body: bytes = b"{}",
        *,
        status: int = 200,
        headers: dict[str, str] | None = None,
        length: int | None = None,
    ) -> None:
        lines = {"Content-Length": str(len(body) if length is None else length), **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        await self.write(f"HTTP/1.1 {status} Words\r\n{head}\r\n".encode() + body)

    async def answer_json(self, value: object, *, status: int = 200, headers: dict[str, str] | None = None) -> None:
        await self.answer(json.dumps(value).encode(), status=status, headers=headers)

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def goes_on(self, *, after_seconds: float) -> bool:
        """Pace a slow answer; false as soon as the server stops."""
        await asyncio.wait({asyncio.ensure_future(self.stopping.wait())}, timeout=after_seconds)
        return not self.stopping.is_set()

    async def hang(self) -> None:
        await self.stopping.wait()

    def reset(self) -> None:
        self.writer.transport.abort()


Respond = Callable[[Exchanged], Awaitable[None]]


async def applied(exchanged: Exchanged) -> None:
    """What a healthy downstream says."""
    await exchanged.answer_json({"receiptId": "r-1", "state": "applied"})


@dataclass
class Downstream:
    """`async with Downstream(respond) as server`: listens on a free loopback port until the block ends."""

    respond: Respond = applied
    on_connect: Callable[[asyncio.StreamWriter], None] | None = None
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    async def __aenter__(self) -> Self:
        self._stopping = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopping.set()
        self._server.close()
        await asyncio.gather(*self._tasks)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            if self.on_connect is not None:
                self.on_connect(writer)
            while not writer.is_closing() and (request := await self._read(reader)) is not None:
                self.received.append(request)
                await self.respond(Exchanged(request, writer, len(self.received), self._stopping))
        except ConnectionError:
            return
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Received | None:
        stopped = asyncio.ensure_future(self._stopping.wait())
        reading = asyncio.ensure_future(_read_request(reader))
        done, _ = await asyncio.wait({stopped, reading}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if reading in done:
            return reading.result()
        reading.cancel()
        return None


async def _read_request(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head.rstrip("\r\n").split("\r\n")
        headers = {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    method, target, _ = line.split(" ")
    return Received(method, target, headers, body)
