"""What `run` and `rerun` say when a run is over.

Knows which of summary, JSON document, report and error go where. Computes nothing.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

from loadstone import exitcodes
from loadstone.bundle.disk import reason
from loadstone.cli.display import console
from loadstone.cli.main import show
from loadstone.errors import LoadstoneError, RunError

if TYPE_CHECKING:
    from loadstone.analysis.summary import Summary
    from loadstone.bundle.read import Bundle
    from loadstone.cli.display.live_progress import LiveProgress
    from loadstone.cli.options.run_options import OutputOptions
    from loadstone.session import Outcome
    from loadstone.verdict import Audited

REPORT: Final = "report.html"
PIPE_WIDTH: Final = 120


def live(*, wanted: bool) -> LiveProgress | None:
    """Return a live display when it is wanted and standard error is a terminal."""
    if not wanted or not sys.stderr.isatty():
        return None
    from loadstone.cli.display.live_progress import LiveProgress

    return LiveProgress()


class RunSummary:
    """The run added up, once: for `result.json`, the summary on the terminal and the report."""

    made: Summary
    audited: Audited
    told: dict[str, Any] | None = None
    """The document; None, and the others missing, until `document` was called, which sealing does."""

    def document(self, bundle: Bundle) -> dict[str, Any]:
        """Compute `result.json`, which is the document of `--json`."""
        from loadstone.analysis.summary import summarise
        from loadstone.audit.run import audit

        self.made = summarise(bundle)
        self.audited = audit(self.made)
        self.told = self.made.document(self.audited)
        return self.told


def tell(
    outcome: Outcome,
    result: RunSummary,
    told: OutputOptions,
    *,
    require_valid: bool = False,
    judged: bool = True,
) -> int:
    """Print the result and what went wrong, write the report; return the exit code.

    Without `judged` nothing is said of what the rate is worth: the run was not done for it.
    """
    if outcome.status == "partial":
        console.say(f"left at once; what was measured is in {outcome.bundle_path}")
        return outcome.exit_code
    if result.told is None:
        # Nothing could be made of it: the error has what is known.
        if outcome.error is not None:
            show(outcome.error)
        console.say(f"bundle: {outcome.bundle_path}")
        return outcome.exit_code
    if told.json:
        # As it stands in the bundle: the two never differ.
        sys.stdout.write(json.dumps(result.told, indent=2, ensure_ascii=False) + "\n")
    else:
        from loadstone.report.run import answer, terminal
        from loadstone.report.verdict import words as verdict
        from loadstone.screen import Screen

        # A file or pipe has no width; there the table need not be squeezed into 80 columns.
        width = None if sys.stdout.isatty() else PIPE_WIDTH
        screen = Screen(highlight=False, width=width)
        terminal.summary(result.made, screen)
        if judged:
            verdict.terminal(result.audited, screen)
            answer.terminal(answer.answer(result.made, result.audited), screen)
    sys.stdout.flush()
    if outcome.error is not None:
        show(outcome.error)
    console.say(f"bundle: {outcome.bundle_path}")
    if told.report and not _reported(outcome, result, judged=judged):
        return outcome.exit_code or exitcodes.FAILED
    return validity(outcome.exit_code, result.audited) if require_valid else outcome.exit_code


def _reported(outcome: Outcome, result: RunSummary, *, judged: bool) -> bool:
    """Write the report; tell whether that worked."""
    from loadstone.report.run import files

    try:
        files.write(result.made, outcome.bundle_path / REPORT, result.audited if judged else None)
    except LoadstoneError as error:
        show(error)
        return False
    except (OSError, MemoryError) as error:
        what = f"{outcome.bundle_path / REPORT}: the report cannot be written: {reason(error)}"
        again = f"loadstone report {outcome.bundle_path} -o FILE"
        show(RunError(what, hint=f"the run is whole; `{again}` writes it elsewhere"))
        return False
    console.say(f"report: {outcome.bundle_path / REPORT}")
    return True


def validity(exit_code: int, audited: Audited) -> int:
    """Return the exit code where validity is required: a failure of the run itself goes first."""
    worthless = audited.verdict.kind in ("not_valid", "cannot_tell")
    return exitcodes.NOT_VALID if worthless and exit_code == exitcodes.DONE else exit_code
