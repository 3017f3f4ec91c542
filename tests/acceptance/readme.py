"""The commands README.md shows, as they stand there."""

import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"
WALK = re.compile(r"<!-- walk -->\n```bash\n(.*?)```\n<!-- /walk -->", re.DOTALL)


def walk() -> str:
    """The one block of bash between the marks of the walk."""
    [commands] = WALK.findall(README.read_text())
    return str(commands)
