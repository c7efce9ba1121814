"""`loadstone workloads`: the named workloads, with their meaning and source.

Knows how they are shown; what they are is in `api.named`.
"""

from __future__ import annotations

import json as json_format
import sys
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from loadstone import exitcodes
from loadstone.cli.options import suggestions
from loadstone.cli.options.arguments import SHELL, Flag
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.api.named import NamedEntry


def workloads(
    name: Annotated[str | None, Parameter(completer=suggestions.workloads)] = None,
    /,
    *,
    json: Annotated[bool, Flag] = False,
) -> int:
    """List the named workloads, or show one.

    Parameters
    ----------
    name
        Show this one with its parameters.
    json
        Print one JSON document.
    """
    from loadstone.api import named

    with SHELL.given():
        entries = named.named_workloads(name)
    if json:
        documents = [entry.document() for entry in entries]
        sys.stdout.write(json_format.dumps(documents, indent=2) + "\n")
    elif name is not None:
        _show(entries[0])
    else:
        for group, listed in named.grouped_workloads().items():
            sys.stdout.write(f"{group}\n")
            source = ""
            for entry in listed:
                sys.stdout.write(f"  {entry.name}\n    {entry.meaning}\n")
                source_text = "as above" if entry.source == source else entry.source
                sys.stdout.write(f"    source: {source_text}\n")
                source = entry.source
    return exitcodes.DONE


def _show(entry: NamedEntry) -> None:
    sys.stdout.write(f"{entry.name}\n  {entry.meaning}\n  source: {entry.source}\n")
    if entry.is_procedure:
        runs = str(len(entry.runs()))
        line = (
            say("cli.workloads.rounds", count=runs, most=str(entry.rounds.most))
            if entry.rounds
            else say("cli.workloads.runs", count=runs)
        )
        sys.stdout.write(f"  {line}\n")
    elif len(jobs := entry.workload().jobs) > 1:
        sys.stdout.write(f"  jobs, for --section: {', '.join(job.name for job in jobs)}\n")
    for parameter in entry.parameters:
        shown = f"{parameter.name}={parameter.default}"
        sys.stdout.write(f"  --set {shown}: {parameter.meaning}\n")
