"""What `run` and `rerun` say when a run is over.

Knows which of summary, JSON document, report and error go where. Computes nothing.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import TYPE_CHECKING

from loadstone import exitcodes
from loadstone.cli.display import console
from loadstone.cli.main import show
from loadstone.errors import LoadstoneError
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loadstone.api.results import Result
    from loadstone.cli.display.live_progress import LiveProgress
    from loadstone.cli.options.run_options import OutputOptions
    from loadstone.verdict import Verdict


def live(*, wanted: bool) -> LiveProgress | None:
    """Return a live display when it is wanted and standard error is a terminal that can be drawn on."""
    screen = console.console()
    if not wanted or not sys.stderr.isatty() or not screen.is_terminal or screen.is_dumb_terminal:
        return None
    from loadstone.cli.display.live_progress import LiveProgress

    return LiveProgress()


def tell(
    result: Result, output_options: OutputOptions, *, require_valid: bool = False, judged: bool = True
) -> int:
    """Print the result and what went wrong, write the report; return the exit code.

    Without `judged` nothing is said of what the rate is worth: the run was not done for it.
    """
    if result.status == "partial":
        console.say(say("cli.run.left", path=result.path))
        return result.exit_code
    if not result.has_figures:
        # Nothing could be made of it: the error has what is known.
        if result.error is not None:
            show(result.error)
        console.say(f"bundle: {result.path}")
        return result.exit_code
    from loadstone.api import drawing

    # Nothing is measured any more: the charts may have a CPU.
    with drawing.early(wanted=output_options.report):
        return _shown(result, output_options, require_valid=require_valid, judged=judged)


def _shown(result: Result, output_options: OutputOptions, *, require_valid: bool, judged: bool) -> int:
    if output_options.json:
        # As it stands in the bundle: the two never differ.
        sys.stdout.write(json.dumps(result.document(), indent=2, ensure_ascii=False) + "\n")
    else:
        result.print(console.data(), judged=judged)
    sys.stdout.flush()
    if result.error is not None:
        show(result.error)
    console.say(f"bundle: {result.path}")
    if output_options.report and not reported(partial(result.report, judged=judged)):
        return result.exit_code or exitcodes.FAILED
    return validity(result.exit_code, result.verdict) if require_valid else result.exit_code


def reported(write: Callable[[], Path]) -> bool:
    """Write the report of what was run; tell whether that worked: the code of the run goes before."""
    try:
        where = write()
    except LoadstoneError as error:
        show(error)
        return False
    console.say(f"report: {where}")
    return True


def validity(exit_code: int, verdict: Verdict) -> int:
    """Return the exit code where validity is required: a failure of the run itself goes first."""
    worthless = verdict.kind in ("not_valid", "cannot_tell")
    return exitcodes.NOT_VALID if worthless and exit_code == exitcodes.DONE else exit_code
