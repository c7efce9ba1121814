"""What results are worth, whoever measured them.

Knows how several are judged together and what is passed over. Which words name a bundle, a study, a
directory of results or a file is known to `audit/find_results.py`.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import polars as pl

from loadstone.audit.document import audited, document, overall
from loadstone.audit.find_results import LIMIT, PassedOver, SearchProgress
from loadstone.audit.spec_case import with_spec
from loadstone.comparison.search import reasons, search
from loadstone.errors import InputError, LoadstoneError, Where
from loadstone.messages import make_error
from loadstone.path.spec import read as read_spec
from loadstone.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadstone.audit.document import AuditedResults
    from loadstone.audit.find_results import Found
    from loadstone.verdict import Verdict

VERDICTS: dict[str, pl.DataType] = {
    "path": pl.String(),
    "format": pl.String(),
    "phase": pl.String(),
    "verdict": pl.String(),
    "confidence": pl.Float64(),
    "causes": pl.List(pl.String()),
}
"""Columns of `Audit.frame`."""
ARGUMENTS: Final = "loadstone.audit_results"


class Searched(Protocol):
    """How far a search has come."""

    @property
    def files(self) -> int:
        """Names in directories that were looked at."""

    @property
    def results(self) -> int:
        """Results that were found."""


class Audit:
    """The verdict on results: on all of them, on each, and on each of its phases."""

    def __init__(self, every: list[AuditedResults], passed: list[PassedOver], looked: SearchProgress) -> None:
        self._every = every
        self._passed = passed
        self._looked = looked

    def __repr__(self) -> str:
        return f"<loadstone.Audit of {len(self._every)} results>"

    @property
    def verdict(self) -> Verdict:
        """What all of them together are worth."""
        return overall(self._every).verdict

    @property
    def passed_over(self) -> dict[Path, str]:
        """What was not read, and why."""
        return {one.path: one.why for one in self._passed}

    @property
    def has_broken(self) -> bool:
        """Whether something that is a result, or may be one, could not be read."""
        return any(one.broken for one in self._passed)

    def document(self) -> dict[str, Any]:
        """Return the document of `loadstone audit --json`."""
        json_document: dict[str, Any] = json.loads(document(self._every, self._passed).model_dump_json())
        return json_document

    def markdown(self) -> str:
        """Return the verdicts as tables in Markdown."""
        from loadstone.report.verdict import audit_text

        return audit_text.markdown(self._every, self._passed)

    def print(self, screen: Screen | None = None) -> None:
        """Print the verdicts as the command line does."""
        from loadstone.report.verdict import audit_text

        audit_text.terminal(
            self._every, screen or Screen(highlight=False), self._passed, unrelated=self._looked.unrelated
        )

    def frame(self) -> pl.DataFrame:
        """Return a row for each phase of each result."""
        rows = [
            {
                "path": one.path,
                "format": one.results.format,
                "phase": phase.name,
                "verdict": str(phase.verdict.kind),
                "confidence": phase.verdict.confidence,
                "causes": [cause.rule for cause in phase.verdict.causes],
            }
            for one in self._every
            for phase in one.audited.phases
        ]
        return pl.DataFrame(rows, schema=pl.Schema(VERDICTS), orient="row")


def audit_results(
    *results: Path | str,
    spec: Path | str | None = None,
    limit: int | None = None,
    unverified: bool = False,
    tell: Callable[[Searched, Path], None] | None = None,
) -> Audit:
    """Tell what results are worth: bundles, studies, other tools' results, or directories of those.

    `spec` is a data sheet of the storage that was measured (TOML), `limit` how many files are looked at
    in directories [default: 20000]. `tell` hears how far the search has come. Raises `InputError` where
    nothing is found, and for a single result that cannot be read.
    """
    if not results:
        raise make_error(InputError, "api.audit.nothing", where=Where(ARGUMENTS))
    if limit is not None and limit < 1:
        where = Where(ARGUMENTS, option="limit")
        raise make_error(InputError, "api.audit.limit", where=where, limit=limit)
    looked = SearchProgress(limit=limit or LIMIT, unverified=unverified, tell=tell)
    paths = [Path(one) for one in results]
    sheet = read_spec(Path(spec)) if spec is not None else None
    every: list[AuditedResults] = []
    passed: list[PassedOver] = []
    for path in paths:
        for candidate in _results_below(path, looked, alone=len(paths) == 1):
            if isinstance(candidate, PassedOver):
                passed.append(candidate)
                continue
            name, read = candidate
            cases = read.cases if sheet is None else tuple(with_spec(case, sheet) for case in read.cases)
            every.append(audited(str(name), replace(read, cases=cases)))
    if not every:
        raise _nothing(paths, passed, looked)
    return Audit(every, passed, looked)


def _results_below(path: Path, looked: SearchProgress, *, alone: bool) -> Iterator[Found]:
    """Search a path; beside others a broken one is passed over, as in a directory."""
    try:
        yield from search(path, looked)
    except LoadstoneError as error:
        if alone or not os.path.lexists(path):
            raise
        yield PassedOver(path, str(error).partition("\n")[0].removeprefix(f"{path}: "))


def _nothing(paths: Sequence[Path], passed: list[PassedOver], looked: SearchProgress) -> InputError:
    """Say why there is no result at all."""
    where = Where(str(paths[0]) if len(paths) == 1 else "command line")
    if not passed and not looked.files:
        return make_error(InputError, "api.audit.none", where=where)
    if not passed:
        return make_error(InputError, "api.audit.unknown", where=where, files=looked.files)
    if len(passed) == 1 and passed[0].path in paths:
        return InputError(passed[0].why, where=Where(str(passed[0].path)))
    root = paths[0] if len(paths) == 1 else None
    return make_error(InputError, "api.audit.broken", where=where, reasons=reasons(root, passed))
