"""Running the sandbox as a process: options, listening, a clean stop."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sqlite3
import sys
from pathlib import Path

import uvloop
from aiohttp import web

from compensation.sandbox.digits import whole
from compensation.sandbox.ledger import Ledger
from compensation.sandbox.server import Sandbox

DEFAULT_PORT = 8090
DEFAULT_DATA_DIR = ".data"
LEDGER_FILE = "sandbox.sqlite3"
SHUTDOWN_SECONDS = 1.0


def add_arguments(parser: argparse.ArgumentParser, *, data_dir: str | None = None) -> None:
    """The options of both ways to start it; SANDBOX_PORT and DATA_DIR give the defaults."""
    default_dir = data_dir or os.environ.get("DATA_DIR") or DEFAULT_DATA_DIR
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: loopback only)")
    parser.add_argument(
        "--port", type=_port, default=os.environ.get("SANDBOX_PORT", str(DEFAULT_PORT)),
        help=f"port to listen on, 0 for any free one (default: SANDBOX_PORT or {DEFAULT_PORT})",
    )  # fmt: skip
    parser.add_argument("--data-dir", type=Path, default=default_dir, help=f"directory that holds {LEDGER_FILE}")
    parser.add_argument("--delay-ms", type=_delay, default="0", help="wait this long before every answer")


def run(*, host: str, port: int, data_dir: Path, delay_ms: int) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit code: 0 after a stop, 1 when it could not start."""
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        uvloop.run(_serve(host=host, port=port, ledger_file=data_dir / LEDGER_FILE, delay_ms=delay_ms))
    except (OSError, sqlite3.Error) as failure:
        print(f"The sandbox could not start on {host}:{port} with {data_dir}: {failure}", file=sys.stderr)
        return 1
    return 0


async def _serve(*, host: str, port: int, ledger_file: Path, delay_ms: int) -> None:
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    ledger = Ledger(ledger_file)
    runner = web.AppRunner(
        Sandbox(ledger=ledger, delay_ms=delay_ms).application(), access_log=None, shutdown_timeout=SHUTDOWN_SECONDS
    )
    try:
        await runner.setup()
        await web.TCPSite(runner, host, port, backlog=1024).start()
        print(f"Sandbox ledger: {_url(runner.addresses[0])}", flush=True)
        await stop.wait()
    finally:
        await runner.cleanup()
        await ledger.close()


def _url(address: tuple[str, int] | tuple[str, int, int, int]) -> str:
    host, port = address[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _port(text: str) -> int:
    return _whole(text, maximum=65_535)


def _delay(text: str) -> int:
    return _whole(text, maximum=60_000)


def _whole(text: str, *, maximum: int) -> int:
    number = whole(text)
    if number is None or number > maximum:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to {maximum}")
    return number
