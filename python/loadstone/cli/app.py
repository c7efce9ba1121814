"""The verbs, as one table, and how a command line that cannot be read is answered.

A verb is imported when it is used. Adding one is a file in `verbs/` and a line of `VERBS`.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Final, get_args

from cyclopts import App, CycloptsError, UnusedCliTokensError

from loadstone import exitcodes
from loadstone.errors import InputError, Where
from loadstone.messages import say
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

VERBS: Final = {
    "run": "Run a job file or a named workload, and report.",
    "probe": "Run a load on a target, and tell what lies behind its number.",
    "curve": "Measure latency against load; find the knee and a limit's load.",
    "sweep": "Run a load at every combination of depths, sizes and shares.",
    "plan": "Print what would run; touch nothing.",
    "experiment": "Vary settings of load and machine, and tell which makes the difference.",
    "rerun": "Run a bundle's Plan again, or all of a study's.",
    "verify": "Read back what a run with a journal wrote.",
    "report": "Write the report of a bundle.",
    "compare": "Compare results, with statistics.",
    "audit": "Tell what results are worth, whoever measured them.",
    "export": "Write a bundle's results in another format.",
    "runs": "List what was measured before, with its verdicts.",
    "workloads": "List the named workloads, or show one.",
    "controls": "List what can be set on this machine, and its value.",
    "restore": "Put back settings that a killed run left changed.",
    "hosts": "Check the hosts of --hosts, install on them, or make their certificates.",
    "doctor": "Tell whether this host is fit to generate load.",
    "fio": "Take fio's command line and write what fio writes.",
    "completion": "Print the completion script of a shell.",
}
"""A verb is the function of its name in `verbs/NAME.py`, and what the list of verbs says of it."""

HELP = "Storage load testing that can be believed."
EPILOGUE = (
    "Exit codes: 0 done, 1 the run failed, 2 bad input or refused, 130 interrupted. See docs/exit-codes.md."
)


def build(described: Collection[str] = ()) -> App:
    """Return the application; verbs of `described` are imported, and tell all of what they do."""
    app = App(
        name="loadstone",
        help=HELP,
        help_epilogue=EPILOGUE,
        help_format="plaintext",
        version=f"loadstone {__version__}",
        exit_on_error=False,
        print_error=False,
        help_on_error=False,
        result_action="return_value",
        # `main` says that it was interrupted.
        suppress_keyboard_interrupt=False,
    )
    for name, meaning in VERBS.items():
        where = f"loadstone.cli.verbs.{name}:{name}"
        app.command(where, name=name, help=None if name in described else meaning)
    return app


def usage(app: App, verb: str) -> str:
    """Return what goes behind a verb, as `[OPTIONS] JOB`."""
    words = []
    places = signature(function).parameters.values() if (function := app[verb].default_command) else ()
    if any(place.kind is place.KEYWORD_ONLY for place in places):
        words.append("[OPTIONS]")
    for place in places:
        name = place.name.upper().replace("_", "-")
        if place.kind is place.VAR_POSITIONAL:
            words.append(f"[{name}...]")
        elif place.kind is not place.KEYWORD_ONLY:
            words.append(name if place.default is place.empty else f"[{name}]")
    return " ".join(words)


def run(words: Sequence[str]) -> int:
    """Run one command line and return its exit code; raise `InputError` when it makes no sense."""
    app = build(words[:1])
    if words[1:2] == ["-"]:
        # Standard input as the job: the parser takes a lone dash for an option unless told otherwise.
        words = [words[0], *words[2:], "--", "-"]
    # An option whose value may be left out: the parser knows none.
    words = [f"{word}=20s" if word == "--probe" and words[0] in {"run", "rerun"} else word for word in words]
    try:
        result = app(list(words))
    except CycloptsError as error:
        reason = str(error)
        if isinstance(error, UnusedCliTokensError):
            more = ", ".join(map(repr, error.unused_tokens or ()))
            reason = say("cli.option.too_many", verb=words[0], more=more)
        raise InputError(reason, where=Where("command line"), hint=_hint(words)) from error
    return result if isinstance(result, int) else exitcodes.DONE


def _hint(words: Sequence[str]) -> str:
    from loadstone.api.export_formats import Kind

    verb, *arguments = words
    if verb == "export" and arguments and arguments[0] in get_args(Kind):
        return say("cli.option.directory_first", format=arguments[0])
    return say("cli.option.see_verb", verb=verb) if verb in VERBS else say("cli.option.see_help")
