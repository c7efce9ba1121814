"""`loadstone compare`: two or more results beside each other.

Knows which form goes where and what a gate is. Computes nothing.
"""

from __future__ import annotations

import json as encoder
import re
import sys
from pathlib import Path
from typing import Annotated

from loadstone import exitcodes
from loadstone.cli import talk
from loadstone.cli.arguments import COMMAND_LINE, Flag, Unverified
from loadstone.cli.finish import PIPE_WIDTH
from loadstone.errors import InputError, Where

CODES = {"passed": exitcodes.DONE, "regression": exitcodes.REGRESSION, "no_data": exitcodes.NOT_VALID}


def compare(
    *results: Path,
    html: Path | None = None,
    markdown: Annotated[bool, Flag] = False,
    json: Annotated[bool, Flag] = False,
    gate: Annotated[bool, Flag] = False,
    tolerance: str | None = None,
    unverified: Unverified = False,
) -> int:
    """Compare results with the first of them: differences, how sure they are, and what else differs.

    Parameters
    ----------
    results
        Directories of runs or of studies, two or more; repeats in a study count as repeats.
    html
        Write the comparison as a page to this file, too.
    markdown
        Print Markdown instead of a table.
    json
        Print one JSON document instead of a table.
    gate
        End with exit code 97 when something became significantly worse, 98 when nothing could be tested.
    tolerance
        Let the gate pass what became worse by less than this, as 5%.
    """
    allowed = _tolerance(tolerance, gate=gate)
    if markdown and json:
        raise InputError("--markdown and --json exclude each other", where=Where(COMMAND_LINE))
    if html is not None:
        from loadstone import output

        output.check(html)
    from loadstone.api import comparing
    from loadstone.report import compare as shown

    compared = comparing.compare(*results, unverified=unverified)
    made, audits = compared.made, compared.audits
    found = compared.gate(allowed) if gate else None
    if json:
        sys.stdout.write(encoder.dumps(shown.document(made, audits, found), indent=2) + "\n")
    elif markdown:
        sys.stdout.write(shown.markdown(made, audits))
    else:
        from loadstone.screen import Screen

        width = None if sys.stdout.isatty() else PIPE_WIDTH
        shown.terminal(made, audits, Screen(highlight=False, width=width))
    if html is not None:
        _write(html, shown.page(made, audits))
    if found is None:
        return exitcodes.DONE
    talk.say(f"gate: {found.replace('_', ' ')}")
    return CODES[found]


def _tolerance(text: str | None, *, gate: bool) -> float:
    if text is None:
        return 0.0
    where = Where(COMMAND_LINE, option="--tolerance")
    if not gate:
        raise InputError("has no effect without --gate", where=where)
    match = re.fullmatch(r"(\d+(?:\.\d+)?)%", text)
    if match is None:
        raise InputError(f"found {text!r}, expected a percentage such as 5%", where=where)
    return float(match[1]) / 100


def _write(path: Path, text: str) -> None:
    from loadstone import output

    output.write(path, text)
    talk.say(f"comparison: {path}")
