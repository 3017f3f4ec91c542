"""DATA_DIR/demo.json: the addresses, passwords and keys of the demo, for people and scripts (wire.md, Command line).

Keys and passwords are stored hashed, so this file is the only place that still knows them.
"""

import json
import os
from pathlib import Path
from typing import Final, TypedDict

NAME: Final = "demo.json"


class Login(TypedDict):
    username: str
    password: str
    roles: list[str]


class TenantHandout(TypedDict):
    id: str
    apiKeys: dict[str, str]
    users: list[Login]


class Handout(TypedDict):
    url: str
    sandboxUrl: str
    tenants: list[TenantHandout]


def read(data_dir: Path) -> Handout | None:
    """What an earlier start handed out; None when there was none."""
    try:
        text = (data_dir / NAME).read_text()
    except FileNotFoundError:
        return None
    handout: Handout = json.loads(text)
    return handout


def write(data_dir: Path, handout: Handout) -> Path:
    """Replace the file in one step, readable by its owner only."""
    path, aside = data_dir / NAME, data_dir / f".{NAME}.{os.getpid()}"
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(handout, file, indent=2)
        file.write("\n")
    aside.rename(path)
    return path
