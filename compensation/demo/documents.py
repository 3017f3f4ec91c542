"""The example definitions the demo registers, and a way for a script to get at them.

`python -m compensation.demo.documents node-types SANDBOX_URL` prints one JSON document a line.
"""

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

from compensation.sandbox.node_types import node_types

WORKFLOWS: Final = Path(__file__).with_name("workflows")
USAGE: Final = "usage: python -m compensation.demo.documents node-types SANDBOX_URL | workflow ID"


@cache
def workflows() -> dict[str, dict[str, Any]]:
    """The example workflow definitions by id: OpenWOP v1 documents."""
    documents = (json.loads(path.read_text()) for path in sorted(WORKFLOWS.glob("*.json")))
    return {document["id"]: document for document in documents}


def main(words: list[str]) -> int:
    match words:
        case ["node-types", url]:
            documents = node_types(url)
        case ["workflow", name] if name in workflows():
            documents = [workflows()[name]]
        case _:
            print(USAGE, file=sys.stderr)
            return 2
    for document in documents:
        print(json.dumps(document))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
