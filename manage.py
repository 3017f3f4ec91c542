#!/usr/bin/env python
"""The command line of the project."""

import os
import sys

from django.core.management import execute_from_command_line

from config.services import ensure_database

OFFLINE = {"help", "version", "--help", "-h", "--version"}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.dev")
    if len(sys.argv) > 1 and not OFFLINE.intersection(sys.argv):
        ensure_database()
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
