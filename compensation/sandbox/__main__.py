"""`python -m compensation.sandbox`: the sandbox without Django."""

import argparse
import sys

from compensation.sandbox.process import add_arguments, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m compensation.sandbox", description="Run the sandbox downstream.")
    add_arguments(parser)
    options = parser.parse_args()
    return run(host=options.host, port=options.port, data_dir=options.data_dir, delay_ms=options.delay_ms)


if __name__ == "__main__":
    sys.exit(main())
