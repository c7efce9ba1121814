"""`loadstone compare`: two or more results beside each other.

Knows which form goes where and what a gate's answer ends with. Computes nothing.
"""

from __future__ import annotations

import json as encoder
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from cyclopts import Parameter

from loadstone import exitcodes
from loadstone.cli.display import console
from loadstone.cli.options.arguments import COMMAND_LINE, SHELL, Flag, Unverified
from loadstone.errors import BundleError, InputError, Where
from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.api.comparing import Comparison


def compare(
    *results: Path,
    output: Annotated[list[Path] | None, Parameter(name=["--output", "-o"], negative="")] = None,
    html: Path | None = None,
    markdown: Annotated[bool, Flag] = False,
    json: Annotated[bool, Flag] = False,
    gate: Annotated[bool, Flag] = False,
    detect: str | None = None,
    tolerance: str | None = None,
    alpha: str | None = None,
    unverified: Unverified = False,
) -> int:
    """Compare results with the first of them: differences, how sure they are, and what else differs.

    Parameters
    ----------
    results
        Bundles, studies, other tools' results (what `loadstone audit` reads), or directories of those, two
        or more; repeats are found and count as repeats.
    output
        File to write the comparison to: .html, .md or .pdf (repeat for several).
    html
        The same as --output FILE.html.
    markdown
        Print Markdown instead of a table.
    json
        Print one JSON document instead of a table.
    gate
        End with exit code 97 when something became worse. 98: a side is not valid or has no data, the sides
        have no load in common, or a regression like --detect could be missed.
    detect
        The regression that the gate must be able to see, as 5% [default: 5%].
    tolerance
        Let the gate pass what became worse by less than this, as 2%.
    alpha
        How often chance may tell equal results apart, in either direction together [default: 5%].
    """
    level, sizes = _share(alpha, "--alpha", "5%", 0.05), _gate_sizes(detect, tolerance, gate, json)
    if markdown and json:
        raise SHELL.error("cli.option.exclude_markdown")
    files = [*(output or []), *([html] if html is not None else [])]
    from loadstone.api import drawing

    with drawing.early(wanted=html is not None or drawing.is_page(files)):
        compared = _compared(results, files, html, alpha=level, gate=gate, unverified=unverified)
        _print(compared, compared.document(**sizes, gated=gate) if json else None, markdown=markdown)
        for path in files:
            console.say(f"comparison: {compared.report(path)}")
    return _exit_code(compared, sizes, gate=gate)


def _print(compared: Comparison, document: dict[str, Any] | None, *, markdown: bool) -> None:
    """Print the document, where one is wanted, or else a table."""
    if document is not None:
        sys.stdout.write(encoder.dumps(document, indent=2) + "\n")
    elif markdown:
        sys.stdout.write(compared.markdown())
    else:
        compared.print(console.data())
    sys.stdout.flush()


class _GateSizes(TypedDict):
    """Shares of a figure."""

    detect: float
    tolerance: float


def _gate_sizes(detect: str | None, tolerance: str | None, gate: bool, json: bool) -> _GateSizes:
    """Read what a gate must be able to see, and what it lets pass; the document tells the chances, too."""
    from loadstone.api import comparing

    allowed = _share(tolerance, "--tolerance", "2%", 0.0, gate=gate)
    size = _share(detect, "--detect", "5%", comparing.least_detected(allowed), gate=gate or json)
    if size <= allowed:
        raise SHELL.error("cli.compare.detect", "detect")
    return _GateSizes(detect=size, tolerance=allowed)


def _compared(
    results: Sequence[Path],
    files: Sequence[Path],
    html: Path | None,
    *,
    alpha: float,
    gate: bool,
    unverified: bool,
) -> Comparison:
    """Compare, once it is known that the files can be written."""
    from loadstone.api import comparing

    for path in files:
        comparing.check_report(path, any_ending=path is html)
    comparing.check_sides(results)
    try:
        return comparing.compare(*results, unverified=unverified, alpha=alpha)
    except (InputError, BundleError) as error:
        if gate:
            error.exit_code = exitcodes.NOT_VALID  # A side has no data: it could not have seen anything.
        raise


def _exit_code(compared: Comparison, sizes: _GateSizes, *, gate: bool) -> int:
    """Say what a gate decides; return the exit code of that."""
    if not gate:
        return exitcodes.USAGE if compared.has_broken else exitcodes.DONE
    for line in compared.gate_sentences(**sizes):
        console.say(line)
    outcome = compared.decide(**sizes).outcome
    return {"passed": exitcodes.DONE, "regression": exitcodes.REGRESSION}.get(outcome, exitcodes.NOT_VALID)


def _share(text: str | None, option: str, example: str, default: float, *, gate: bool = True) -> float:
    """Read a percentage."""
    if text is None:
        return default
    where = Where(COMMAND_LINE, option=option)
    if not gate:
        raise make_error(InputError, "cli.compare.no_gate", where=where)
    match = re.fullmatch(r"(\d+(?:\.\d+)?)%", text) or re.fullmatch(r"(0?\.\d+)", text)
    if match is None:
        raise make_error(InputError, "cli.compare.percentage", where=where, found=repr(text), example=example)
    share = float(match[1]) / (100 if text.endswith("%") else 1)
    if option == "--alpha" and not 0 < share <= 0.5:
        raise make_error(InputError, "cli.compare.half", where=where, found=repr(text))
    if option == "--tolerance" and share >= 1:
        raise make_error(InputError, "cli.compare.all", where=where, found=repr(text))
    if option == "--detect" and not 0 < share < 1:
        raise make_error(InputError, "cli.compare.whole", where=where, found=repr(text))
    return share
