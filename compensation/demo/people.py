"""Who lives in the demo: two tenants, and in each a different person for every role."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True, slots=True)
class Person:
    """A user of one tenant: ``<tenant>-<login>``; a key is issued under ``key`` when the demo hands one out."""

    login: str
    role: str
    first_name: str
    last_name: str
    key: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Company:
    """A tenant of the demo."""

    slug: str
    name: str
    colour: str
    people: tuple[Person, ...]


def _staff(*names: str) -> tuple[Person, ...]:
    """One person for each of `LOGINS`, named in that order as "First Last"."""
    people = []
    for (login, role, key), name in zip(LOGINS, names, strict=True):
        first, _, last = name.partition(" ")
        people.append(Person(login=login, role=role, first_name=first, last_name=last, key=key))
    return tuple(people)


LOGINS: Final = (
    ("operator", "operator", "operator"),
    ("lead", "lead", "lead"),
    ("approver", "approver", "approver"),
    ("approver2", "approver", ""),
    ("auditor", "auditor", "auditor"),
    ("admin", "admin", ""),
    ("viewer", "viewer", ""),
    ("service", "service", "service"),
)

COMPANIES: Final = (
    Company(
        slug="acme",
        name="Acme Trading",
        colour="indigo",
        people=_staff(
            *("Olga Okafor", "Lena Lindqvist", "Amir Aslan", "Beatriz Barros"),
            *("Tomas Tanaka", "Nadia Novak", "Vikram Vance", "Order Engine"),
        ),
    ),
    Company(
        slug="globex",
        name="Globex Travel",
        colour="teal",
        people=_staff(
            *("Oscar Osei", "Lucia Lombardi", "Anneke Adler", "Bruno Bianchi"),
            *("Tessa Thorne", "Noor Nasser", "Viola Varga", "Booking Engine"),
        ),
    ),
)
