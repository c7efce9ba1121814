"""The named workloads, listed and looked up.

Knows no file of theirs; the catalogue does.
"""

from __future__ import annotations

from loadstone.errors import InputError
from loadstone.messages import make_error, say
from loadstone.messages.suggest import nearest
from loadstone.workload import catalogue

NamedEntry = catalogue.CatalogueEntry


def workloads() -> dict[str, str]:
    """Return the named workloads that `run` takes, and what each does."""
    return {entry.name: entry.meaning for entry in named_workloads() if not entry.is_procedure}


def named_workloads(name: str | None = None) -> list[NamedEntry]:
    """Return all named workloads and procedures, or one. Raises `InputError` where there is none so named."""
    known = catalogue.names()
    if name is not None and name not in known:
        hint = nearest(name, known) or say("api.job.listed")
        raise make_error(InputError, "api.job.no_workload", hint=hint, name=repr(name))
    return [catalogue.load(one) for one in ([name] if name else known)]


def grouped_workloads() -> dict[str, list[NamedEntry]]:
    """Return all named workloads and procedures under the headings they are listed under."""
    every = named_workloads()
    return {group: [one for one in every if one.group == group] for group in catalogue.GROUPS}
