"""A Celery worker's program for the tests of brokers: the project's own app with one more task."""

from pathlib import Path

from config.celery import app


@app.task
def note(path: str, word: str) -> None:
    """Append `word` to the file, so that a test sees what ran and how often."""
    with Path(path).open("a") as file:
        file.write(f"{word}\n")
