"""Runs the benchmarks and prints them beside the facts of the machine."""

import argparse
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from django.db import connection

from tests.bench import latency, throughput
from tests.bench.stage import set_up


def main() -> None:
    options = _options()
    set_up()
    _print(_machine())
    if options.samples:
        _print(latency.measure(samples=options.samples).lines())
    for delay_ms in options.delays:
        _print(throughput.drain(runs=options.runs, delay_ms=delay_ms, profile=options.profile).lines())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make bench", description="Set BENCH to pass options: make bench BENCH=--help"
    )
    parser.add_argument("--samples", type=int, default=60, help="hand-overs to time (default: 60)")
    parser.add_argument("--runs", type=int, default=2_000, help="runs to unwind at each delay (default: 2000)")
    parser.add_argument("--delays", type=int, nargs="*", default=[0, 50], help="sandbox delays in ms (default: 0 50)")
    parser.add_argument("--profile", metavar="FILE", help="drain in this process instead, and write its cProfile here")
    return parser.parse_args()


def _machine() -> Iterator[str]:
    load = os.getloadavg()[0]
    yield f"{_processor()}, {os.cpu_count()} cores, load before the start {load:.1f}, {platform.system()}"
    with connection.cursor() as cursor:
        cursor.execute("select current_setting('server_version'), current_setting('fsync'),"
                       " current_setting('synchronous_commit')")  # fmt: skip
        version, fsync, synchronous = cursor.fetchone() or ("?", "?", "?")
    yield f"Python {platform.python_version()}, PostgreSQL {version}, fsync {fsync}, synchronous_commit {synchronous}"


def _processor() -> str:
    try:
        facts = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.partition(":")[2].strip() for line in facts if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _print(lines: Iterator[str] | list[str]) -> None:
    print("\n".join(lines), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
