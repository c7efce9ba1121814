"""What a shell offers after Tab beside verbs and options: workloads by name, and their parameters.

Knows where the catalogue's files are, and reads them alone: a shell waits for it. Changes nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import loadstone

if TYPE_CHECKING:
    from cyclopts.completion import CompletionContext

CATALOGUE: Final = Path(loadstone.__file__).parent / "workload" / "catalogue"


def workloads(_context: CompletionContext) -> dict[str, str]:
    """Return the named workloads and what each does."""
    names = sorted(path.stem for path in CATALOGUE.glob("*.toml"))
    return {name: str(_content(name)["meaning"]) for name in names}


def jobs_and_files(context: CompletionContext) -> dict[str, str]:
    """Return the named workloads, and files beside what is typed so far."""
    typed = Path(context.incomplete or ".")
    folder = typed if context.incomplete.endswith("/") or not context.incomplete else typed.parent
    try:
        # A name with a line break would be two for the shell.
        entries = sorted(one for one in folder.iterdir() if one.name.isprintable())
    except OSError:
        entries = []
    shown = context.incomplete.startswith("./")
    files = {f"{'./' if shown else ''}{one}{'/' if one.is_dir() else ''}": "" for one in entries}
    return {**workloads(context), **files}


def parameters(context: CompletionContext) -> dict[str, str]:
    """Return the parameters of the workload that was named, as NAME=."""
    rows = _content(_job(context)).get("parameters", {})
    return {f"{name}=": str(row["meaning"]) for name, row in rows.items()}


def sections(context: CompletionContext) -> list[str]:
    """Return the jobs of the workload that was named."""
    return [str(job["name"]) for job in _content(_job(context)).get("jobs", ())]


def _job(context: CompletionContext) -> str:
    job = context.get("job")
    return "" if job is None else job.raw or ""


def _content(name: str) -> dict[str, Any]:
    import tomllib

    path = CATALOGUE / f"{name}.toml"
    return (
        tomllib.loads(path.read_text(encoding="utf-8")) if name and "/" not in name and path.is_file() else {}
    )
