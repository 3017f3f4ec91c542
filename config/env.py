"""Everything the environment may say, read and checked in one place. All of it is optional outside production."""

import base64
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

from config import embedded

BASE_DIR = Path(__file__).resolve().parent.parent

_env = environ.Env()


def text(name: str, default: str = "") -> str:
    """An empty variable counts as absent, as in `DATABASE_URL= make demo`."""
    return str(_env.str(name, default="")) or default


def flag(name: str, *, default: bool) -> bool:
    return bool(_env.bool(name)) if text(name) else default


def words(name: str, default: list[str]) -> list[str]:
    return list(_env.list(name, default=[])) or default


def number(name: str, default: int, *, least: int = 1) -> int:
    """An integer of at least `least`; ImproperlyConfigured names the variable otherwise."""
    raw = text(name) or str(default)
    if not raw.isascii() or not raw.isdigit() or int(raw) < least:
        raise ImproperlyConfigured(f"{name}={raw!r} is not valid: expected an integer of at least {least}.")
    return int(raw)


def require(*names: str) -> None:
    """Refuse to start, naming every one of `names` that the environment leaves empty."""
    missing = [name for name in names if not text(name)]
    if missing:
        raise ImproperlyConfigured(f"These environment variables are required here and missing: {', '.join(missing)}.")


def data_dir() -> Path:
    """Where everything the project writes lives: the embedded database, the broker's folder, generated keys."""
    return Path(text("DATA_DIR") or BASE_DIR / ".data").expanduser().resolve()


def database(directory: Path) -> dict[str, Any]:
    """Django's connection settings: DATABASE_URL, or the embedded server of `directory`."""
    if not text("DATABASE_URL"):
        return {"ENGINE": "django.db.backends.postgresql", "OPTIONS": {}, **embedded.connection_settings(directory)}
    parsed: dict[str, Any] = _env.db_url("DATABASE_URL")
    if parsed["ENGINE"] != "django.db.backends.postgresql":
        raise ImproperlyConfigured("DATABASE_URL must be a postgresql:// URL: no other database is supported.")
    return {**parsed, "OPTIONS": parsed.get("OPTIONS", {})}


def generated(path: Path, make: Callable[[], str] = lambda: secrets.token_urlsafe(50)) -> str:
    """The secret kept in `path` (mode 0600), made on first use. Processes that race agree on one: link() picks it."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(make())
        try:
            os.link(aside, path)
        except FileExistsError:
            pass  # another process was first, and its secret is the one to use
        finally:
            aside.unlink()
    return path.read_text()


def new_credential_key() -> str:
    """A key that seals stored credentials: base64 of 32 random bytes."""
    return base64.b64encode(secrets.token_bytes(32)).decode()
