"""`loadstone audit`: what a result is worth, whoever measured it.

Knows which words name a bundle, a study, a directory of results or a file. Reads no format itself.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from loadstone import exitcodes
from loadstone.cli.arguments import COMMAND_LINE, Flag
from loadstone.cli.finish import PIPE_WIDTH, validity
from loadstone.errors import InputError, Where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.audit.document import AuditedResults
    from loadstone.audit.foreign.reader import Results


def audit(
    *results: Path,
    json: Annotated[bool, Flag] = False,
    markdown: Annotated[bool, Flag] = False,
    spec: Path | None = None,
    require_valid: Annotated[bool, Flag] = False,
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
        End with exit code 98 when the verdict on any of them is 'not valid' or 'cannot tell'.
    """
    if not results:
        hint = "name a bundle, a file or a directory"
        raise InputError("nothing to audit", where=Where(COMMAND_LINE), hint=hint)
    if json and markdown:
        hint = "keep one of the two"
        raise InputError("--json and --markdown exclude each other", where=Where(COMMAND_LINE), hint=hint)
    from loadstone.audit.document import document, overall
    from loadstone.report import audit as words

    every = [one for path in results for one in _audited(path, spec)]
    if json:
        sys.stdout.write(document(every).model_dump_json(indent=2) + "\n")
    elif markdown:
        sys.stdout.write(words.markdown(every))
    else:
        from rich.console import Console

        width = None if sys.stdout.isatty() else PIPE_WIDTH
        words.terminal(every, Console(highlight=False, width=width))
    return validity(exitcodes.DONE, overall(every)) if require_valid else exitcodes.DONE


def _audited(path: Path, spec: Path | None) -> Iterator[AuditedResults]:
    """Read and judge what a path names."""
    from dataclasses import replace

    from loadstone.audit.declare import with_spec
    from loadstone.audit.document import audited
    from loadstone.path.spec import read as read_spec

    sheet = read_spec(spec) if spec is not None else None
    for name, found in _read(path):
        cases = found.cases if sheet is None else tuple(with_spec(case, sheet) for case in found.cases)
        yield audited(str(name), replace(found, cases=cases))


def _read(path: Path) -> Iterator[tuple[Path, Results]]:
    from loadstone.audit import foreign
    from loadstone.bundle.layout import MANIFEST
    from loadstone.bundle.study import is_study

    if not path.exists():
        raise InputError("there is no such file or directory", where=Where(str(path)))
    if (path / MANIFEST).is_file():
        yield path, _bundle(path)
    elif is_study(path):
        yield from _study(path)
    elif path.is_dir() and foreign.recognise(path) is None:
        yield from _directory(path)
    elif path.is_dir() or path.is_file():
        yield path, foreign.read(path)
    else:
        raise InputError("is neither a file nor a directory", where=Where(str(path)))


def _study(path: Path) -> Iterator[tuple[Path, Results]]:
    """Read the runs of a study, which know their repeats."""
    from dataclasses import replace

    from loadstone.audit.repeats import with_repeats
    from loadstone.bundle.study import read as read_study

    points = [point for point in read_study(path).points if point.bundle and point.role != "prepare"]
    if not points:
        raise InputError("no run of the study has measured anything", where=Where(str(path)))
    runs = [path / str(point.bundle) for point in points]
    read = [_bundle(run) for run in runs]
    repeated = with_repeats([(point.factors, one.cases) for point, one in zip(points, read, strict=True)])
    for run, one, cases in zip(runs, read, repeated, strict=True):
        yield run, replace(one, cases=cases)


def _bundle(path: Path) -> Results:
    from loadstone.analysis.summary import summarise
    from loadstone.audit.foreign.reader import Results
    from loadstone.audit.from_bundle import cases
    from loadstone.bundle.read import Bundle

    return Results("bundle", tuple(cases(summarise(Bundle.open(path)))))


def _directory(path: Path) -> Iterator[tuple[Path, Results]]:
    """Read every result that lies in a directory; what is none is passed over, but not all of it."""
    where = Where(str(path))
    try:
        inside = sorted(one for one in path.iterdir() if _is_result(one))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=where) from error
    if not inside:
        hint = "a bundle has a manifest.json, an output of vdbench a flatfile.html"
        raise InputError("holds no result that is known", where=where, hint=hint)
    for one in inside:
        yield from _read(one)


def _is_result(path: Path) -> bool:
    from loadstone.audit import foreign
    from loadstone.bundle.layout import MANIFEST
    from loadstone.bundle.study import is_study

    if path.is_dir() and ((path / MANIFEST).is_file() or is_study(path)):
        return True
    return (path.is_dir() or path.is_file()) and foreign.recognise(path) is not None
