"""`loadstone audit`: what a result is worth, whoever measured it.

Knows what a person types and sees; which words name a bundle, a study, a directory of results or
a file is known to `audit/find_results.py`. Reads no format itself.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from loadstone import exitcodes
from loadstone.cli.display.run_summary import PIPE_WIDTH, validity
from loadstone.cli.options.arguments import COMMAND_LINE, Flag, Unverified
from loadstone.errors import InputError, LoadstoneError, Where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.audit.document import AuditedResults
    from loadstone.audit.find_results import Found, PassedOver, SearchProgress

REFRESH_S: Final = 0.2


def audit(
    *results: Path,
    json: Annotated[bool, Flag] = False,
    markdown: Annotated[bool, Flag] = False,
    spec: Path | None = None,
    require_valid: Annotated[bool, Flag] = False,
    limit: int | None = None,
    unverified: Unverified = False,
) -> int:
    """Tell what results are worth: bundles, other tools' results, published figures.

    Parameters
    ----------
    results
        Bundles, studies, results of fio (JSON, terse or text), output directories of vdbench, result
        files of Iometer (CSV) and DISKSPD (XML), published figures (TOML), or directories of those.
    json
        Print one JSON document instead of text.
    markdown
        Print tables in Markdown instead of text.
    spec
        Data sheet of the storage that was measured (TOML).
    require_valid
        End with exit code 98 when the verdict on any of them is 'not valid' or 'cannot tell', or one
        cannot be read.
    limit
        Files to look at in directories at most; 20000 if not given.
    """
    if not results:
        hint = "name a bundle, a file or a directory"
        raise InputError("nothing to audit", where=Where(COMMAND_LINE), hint=hint)
    if json and markdown:
        hint = "keep one of the two"
        raise InputError("--json and --markdown exclude each other", where=Where(COMMAND_LINE), hint=hint)
    if limit is not None and limit < 1:
        raise InputError("--limit is below 1", where=Where(COMMAND_LINE), hint="give a number of files")
    from loadstone.audit.document import document, overall
    from loadstone.audit.find_results import LIMIT, SearchProgress
    from loadstone.report.verdict import audit as words

    looked = SearchProgress(limit=limit or LIMIT, unverified=unverified)
    with _shown(looked):
        every, passed = _audited(results, spec, looked)
    if not every:
        raise _nothing(results, passed, looked)
    if json:
        sys.stdout.write(document(every, passed).model_dump_json(indent=2) + "\n")
    elif markdown:
        sys.stdout.write(words.markdown(every, passed))
    else:
        from loadstone.screen import Screen

        width = None if sys.stdout.isatty() else PIPE_WIDTH
        words.terminal(every, Screen(highlight=False, width=width), passed, unrelated=looked.unrelated)
    if require_valid and any(one.broken for one in passed):
        return exitcodes.NOT_VALID
    return validity(exitcodes.DONE, overall(every)) if require_valid else exitcodes.DONE


def _audited(
    paths: tuple[Path, ...], spec: Path | None, looked: SearchProgress
) -> tuple[list[AuditedResults], list[PassedOver]]:
    """Read and judge what the paths name. Second: what was passed over."""
    from loadstone.audit.document import audited
    from loadstone.audit.find_results import PassedOver
    from loadstone.audit.spec_case import with_spec
    from loadstone.path.spec import read as read_spec

    sheet = read_spec(spec) if spec is not None else None
    every: list[AuditedResults] = []
    passed: list[PassedOver] = []
    for path in paths:
        for found in _found(path, looked, alone=len(paths) == 1):
            if isinstance(found, PassedOver):
                passed.append(found)
                continue
            name, read = found
            cases = read.cases if sheet is None else tuple(with_spec(case, sheet) for case in read.cases)
            every.append(audited(str(name), replace(read, cases=cases)))
    return every, passed


def _found(path: Path, looked: SearchProgress, *, alone: bool) -> Iterator[Found]:
    """Search a path; beside others a broken one is passed over, as in a directory."""
    from loadstone.audit.find_results import PassedOver, find

    try:
        yield from find(path, looked)
    except LoadstoneError as error:
        if alone or not path.exists():
            raise
        yield PassedOver(path, str(error).partition("\n")[0].removeprefix(f"{path}: "))


def _nothing(paths: tuple[Path, ...], passed: list[PassedOver], looked: SearchProgress) -> InputError:
    """Say why there is no result at all."""
    where = Where(str(paths[0]) if len(paths) == 1 else COMMAND_LINE)
    if not passed:
        hint = "a bundle has a manifest.json, an output of vdbench a flatfile.html"
        return InputError(
            f"holds no result that is known, in {looked.files} files" if looked.files else NO_RESULT,
            where=where,
            hint=hint,
        )
    first = passed[0]
    if first.path == paths[0]:
        return InputError(first.why, where=where)
    more = f"; {len(passed) - 1} more could not be read" if len(passed) > 1 else ""
    return InputError(f"{NO_RESULT}: {first.path}: {first.why}{more}", where=where)


NO_RESULT: Final = "holds no result that is known"


@contextmanager
def _shown(looked: SearchProgress) -> Iterator[None]:
    """Show on a terminal how far the search has come."""
    if not sys.stderr.isatty():
        yield
        return
    from loadstone.screen import Screen

    with Screen(stderr=True).status("looking for results") as status:
        shown = time.monotonic()

        def tell(at: SearchProgress, path: Path) -> None:
            nonlocal shown
            if time.monotonic() - shown >= REFRESH_S:
                shown = time.monotonic()
                status.update(f"{at.files} files looked at, {at.results} results: {path.name}")

        looked.tell = tell
        yield
