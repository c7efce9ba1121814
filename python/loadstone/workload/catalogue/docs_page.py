"""The text of `docs/workloads.md`, from the catalogue.

Knows only how the list looks on a page. A test keeps the file fresh.
"""

from __future__ import annotations

from loadstone.workload import catalogue

_HEAD = """# Named workloads

Written by `make docs` from the catalogue; a test keeps it fresh.

```sh
loadstone workloads NAME                                  # what it is, and its parameters
loadstone run NAME --target PATH --set depth=16           # one run, or all of a procedure
loadstone curve NAME --target PATH                        # latency against load
loadstone plan NAME --target PATH --json                  # what would run; touches nothing
```

A name that ends in `-like` approximates, and its source says where. A test holds what each one
really does, I/O by I/O, against its definition: sizes, shares of reads, addresses, arrivals.
Entries of several runs are procedures and run as a study. Those in rounds go on until one of
their runs is steady in SNIA's sense. Their report has SNIA's plots.

"""


def page() -> str:
    """Return the document."""
    parts = [_HEAD]
    for group in catalogue.GROUPS:
        parts.append(f"## {group}\n\n| name | what it does | source | runs |\n|---|---|---|---|\n")
        entries = [entry for name in catalogue.names() if (entry := catalogue.load(name)).group == group]
        parts += [_row(entry) for entry in entries]
        parts.append("\n")
    return "".join(parts).rstrip() + "\n"


def _row(entry: catalogue.CatalogueEntry) -> str:
    count = str(len(entry.runs())) if entry.is_procedure else "1"
    often = f", up to {entry.rounds.most} rounds" if entry.rounds else ""
    return f"| `{entry.name}` | {_cell(entry.meaning)} | {_cell(entry.source)} | {count}{often} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
