"""`loadstone audit`: what a result is worth, whoever measured it.

Knows what a person types and sees; `loadstone.audit_results` does it.
"""

from __future__ import annotations

import json as encoder
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import loadstone
from loadstone import exitcodes
from loadstone.cli.display import console
from loadstone.cli.display.run_summary import validity
from loadstone.cli.options.arguments import SHELL, Flag, Unverified
from loadstone.errors import BundleError, InputError, Where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.api.auditing import Searched

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
        Bundles, studies, published figures (TOML), or directories of those. Results of other tools: fio's
        JSON, terse and text, vdbench's output directories, Iometer's CSV and DISKSPD's XML.
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
        raise SHELL.error("cli.audit.nothing")
    if json and markdown:
        raise SHELL.error("cli.option.exclude_markdown")
    if limit is not None and limit < 1:
        raise SHELL.error("cli.audit.limit")
    with _as_gate(spec, wanted=require_valid), _shown() as tell:
        audited = loadstone.audit_results(*results, spec=spec, limit=limit, unverified=unverified, tell=tell)
    if json:
        sys.stdout.write(encoder.dumps(audited.document(), indent=2, ensure_ascii=False) + "\n")
    elif markdown:
        sys.stdout.write(audited.markdown())
    else:
        audited.print(console.data())
    if audited.has_broken:
        return exitcodes.NOT_VALID if require_valid else exitcodes.USAGE
    return validity(exitcodes.DONE, audited.verdict) if require_valid else exitcodes.DONE


@contextmanager
def _as_gate(spec: Path | None, *, wanted: bool) -> Iterator[None]:
    """Let what cannot be read end as a gate does: it is not known to be valid. A data sheet is no result."""
    try:
        yield
    except (InputError, BundleError) as error:
        of_the_sheet = (
            spec is not None and error.where is not None and error.where.file == Where(str(spec)).file
        )
        if wanted and not of_the_sheet:
            error.exit_code = exitcodes.NOT_VALID
        raise


@contextmanager
def _shown() -> Iterator[Callable[[Searched, Path], None] | None]:
    """Show on a terminal how far the search has come."""
    if not sys.stderr.isatty():
        yield None
        return
    from loadstone.screen import Screen

    with Screen(stderr=True).status("looking for results") as status:
        shown = time.monotonic()

        def tell(at: Searched, path: Path) -> None:
            nonlocal shown
            if time.monotonic() - shown >= REFRESH_S:
                shown = time.monotonic()
                status.update(f"{at.files} files looked at, {at.results} results: {path.name}")

        yield tell
