"""`make bench`: what the engine does on this machine, with real processes, HTTP and disk. Prints; asserts nothing."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from config.postgres_guardian import is_locked
from tests.waiting import eventually


def main() -> int:
    """Run the report in a process of its own, with a database of its own that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="recourse-bench-") as folder:
        ours = {"DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "config.settings.dev", "LOG_LEVEL": "WARNING"}
        command = [sys.executable, "-m", "tests.bench.report", *sys.argv[1:]]
        code = subprocess.run(command, env={**os.environ, **ours}, check=False).returncode
        eventually(lambda: not is_locked(Path(folder) / "guardian.lock"))
    return code


if __name__ == "__main__":
    sys.exit(main())
