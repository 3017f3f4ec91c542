"""`make bench`: what the engine does on this machine, with real processes, HTTP and disk. Prints; asserts nothing."""

import argparse
import os
import tempfile


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--samples", type=int, default=60, help="hand-overs to time (default: 60)")
    parser.add_argument("--runs", type=int, default=2_000, help="runs to unwind at each delay (default: 2000)")
    parser.add_argument("--delays", type=int, nargs="*", default=[0, 50], help="sandbox delays in ms (default: 0 50)")
    parser.add_argument("--profile", metavar="FILE", help="drain in this process instead, and write its cProfile here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recourse-bench-") as folder:
        # Before Django is imported: the benchmark has a server, a broker and keys of its own.
        os.environ |= {"DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "config.settings.dev", "LOG_LEVEL": "WARNING"}
        from tests.bench.report import run_all

        run_all(options)


if __name__ == "__main__":
    main()
