"""Registering a definition from a file, on behalf of somebody who may."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from audit.commands import MISUSED, add_json, add_tenant, find_tenant, find_user
from audit.principals import Principal
from compensation.domain.canonical import IJsonError, parse_ijson


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="a JSON file")
    add_tenant(parser)
    parser.add_argument("--as", dest="principal", required=True, help="the username of somebody who may register")
    add_json(parser)


def principal_of(options: dict[str, Any]) -> Principal:
    return Principal(tenant=find_tenant(options["tenant"]), user=find_user(options["principal"]))


def read(file: Path) -> dict[str, Any]:
    """The object in a file; what is not I-JSON is refused as the API refuses it."""
    try:
        document = parse_ijson(file.read_bytes())
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}", returncode=MISUSED) from None
    except IJsonError as error:
        raise CommandError(f"{file}: {error}", returncode=MISUSED) from None
    if not isinstance(document, dict):
        raise CommandError(f"{file}: must hold one JSON object", returncode=MISUSED)
    return document
