"""fio's command line: its own options apart from the options of jobs and the job files.

Knows how fio reads arguments (getopt_long_only: one or two dashes, unambiguous prefixes,
files anywhere) and what each of fio's own options asks for. Knows no job option but by
its name, and runs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError, RefusedError, Where
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

COMMAND_LINE: Final = "command line"

FORMATS: Final = {
    "normal": frozenset({"normal"}),
    "json": frozenset({"json"}),
    "json+": frozenset({"json", "json+"}),
    "terse": frozenset({"terse"}),
    "minimal": frozenset({"terse"}),
    "csv": frozenset({"terse"}),
}
DEBUG_AREAS: Final = (
    "process",
    "file",
    "io",
    "mem",
    "blktrace",
    "verify",
    "random",
    "parse",
    "diskutil",
    "job",
    "mutex",
    "profile",
    "time",
    "net",
    "rate",
    "compress",
    "steadystate",
    "helperthread",
    "zbd",
)
_ETA: Final = ("always", "never", "auto")
_IDLE: Final = ("calibrate", "system", "percpu")

NONE, OPTIONAL, REQUIRED = range(3)

_ELSEWHERE = "run it on each host by itself"
OWN_OPTIONS: Final[dict[str, int]] = {
    "output": REQUIRED, "latency-log": REQUIRED, "bandwidth-log": NONE, "minimal": NONE,
    "output-format": REQUIRED, "append-terse": OPTIONAL, "version": NONE, "help": NONE, "cmdhelp": OPTIONAL,
    "enghelp": OPTIONAL, "showcmd": NONE, "readonly": NONE, "eta": REQUIRED, "eta-interval": REQUIRED,
    "eta-newline": REQUIRED, "debug": REQUIRED, "parse-only": NONE, "section": REQUIRED,
    "inflate-log": REQUIRED, "alloc-size": REQUIRED, "profile": REQUIRED, "warnings-fatal": NONE,
    "max-jobs": REQUIRED, "terse-version": REQUIRED, "server": OPTIONAL, "daemonize": REQUIRED,
    "client": REQUIRED, "remote-config": REQUIRED, "cpuclock-test": NONE, "crctest": OPTIONAL,
    "memcpytest": OPTIONAL, "idle-prof": REQUIRED, "status-interval": REQUIRED, "trigger-file": REQUIRED,
    "trigger-timeout": REQUIRED, "trigger": REQUIRED, "trigger-remote": REQUIRED, "aux-path": REQUIRED,
    "merge-blktrace-only": NONE,
}  # fmt: skip
"""fio's own options and whether they take a value."""

LETTERS: Final = {
    "o": "output", "l": "latency-log", "b": "bandwidth-log", "m": "minimal", "F": "output-format",
    "f": "append-terse", "v": "version", "h": "help", "c": "cmdhelp", "i": "enghelp", "s": "showcmd",
    "r": "readonly", "e": "eta", "O": "eta-interval", "E": "eta-newline", "d": "debug", "P": "parse-only",
    "x": "section", "X": "inflate-log", "a": "alloc-size", "p": "profile", "w": "warnings-fatal",
    "j": "max-jobs", "V": "terse-version", "S": "server", "D": "daemonize", "C": "client",
    "R": "remote-config", "T": "cpuclock-test", "G": "crctest", "M": "memcpytest", "I": "idle-prof",
    "L": "status-interval", "W": "trigger-file", "B": "trigger-timeout", "H": "trigger",
    "J": "trigger-remote", "K": "aux-path", "A": "merge-blktrace-only",
}  # fmt: skip
"""What a dash and one letter stand for; scripts use them though fio's manual does not tell them."""

REFUSED: Final[dict[str, str]] = {
    "server": _ELSEWHERE,
    "daemonize": _ELSEWHERE,
    "client": "the same file goes to `loadstone run JOB --hosts FILE`, which reaches the hosts by ssh",
    "remote-config": _ELSEWHERE,
    "trigger-remote": _ELSEWHERE,
    "profile": "write the profile's jobs out, or see `loadstone workloads`",
    "latency-log": "fio dropped it too: use write_lat_log in the jobs",
    "cpuclock-test": "the engine checks its clock at every start; see `loadstone doctor`",
    "crctest": "it measures fio's checksums: use fio for it",
    "memcpytest": "it measures fio's memory copies: use fio for it",
    "merge-blktrace-only": "traces are not read yet: use fio for it",
}
"""fio's own options that are not done, and the remedy."""


@dataclass(slots=True)
class FioArguments:
    """What a command line asks for. Times are in seconds."""

    job_tokens: list[str] = field(default_factory=list)
    """`--option=value` or `--option`, long names, in order."""
    job_files: list[str] = field(default_factory=list)
    formats: set[str] = field(default_factory=lambda: {"normal"})
    output: str | None = None
    terse_version: int = 3
    eta: str = "auto"
    eta_interval_s: float = 1.0
    eta_newline_s: float = 0.0
    status_interval_s: float = 0.0
    sections: list[str] = field(default_factory=list)
    debug: set[str] = field(default_factory=set)
    read_only: bool = False
    aux_directory: str | None = None
    parse_only: bool = False
    show_command: bool = False
    bandwidth_log: bool = False
    warnings_fatal: bool = False
    idle_prof: str | None = None
    """`calibrate`, `system` or `percpu`."""
    trigger_file: str | None = None
    trigger_timeout_s: float = 0.0
    trigger: str | None = None
    question: tuple[str, str] | None = None
    """`version`, `help`, `cmdhelp`, `enghelp`, `debug` or `inflate-log` and its value: answer and end."""

    @property
    def dry(self) -> bool:
        """Whether nothing is to run."""
        return self.parse_only or self.show_command


def parse(words: Sequence[str]) -> FioArguments:
    """Read a command line. Raises InputError and RefusedError as fio ends with code 1."""
    arguments = FioArguments()
    waiting = list(words)
    while waiting and arguments.question is None:
        word = waiting.pop(0)
        if word == "--":
            arguments.job_files += waiting
            break
        if not word.startswith("-") or word == "-":
            arguments.job_files.append(word)
            continue
        name, takes, text = _taken_apart(word)
        if takes == REQUIRED and text is None:
            if not waiting:
                raise make_error(
                    InputError, "cli.fio.argument_missing", where=Where(COMMAND_LINE, option=f"--{name}")
                )
            text = waiting.pop(0)
        if takes == NONE and text is not None:
            raise make_error(
                InputError, "cli.fio.argument_given", where=Where(COMMAND_LINE, option=f"--{name}")
            )
        if name in OWN_OPTIONS:
            _own(arguments, name, text)
        else:
            arguments.job_tokens.append(f"--{name}" if text is None else f"--{name}={text}")
    return arguments


def _taken_apart(word: str) -> tuple[str, int, str | None]:
    """Return the name of the option a word gives, whether it takes a value, and the value in the word."""
    option, equals, value = word.lstrip("-").partition("=")
    if not word.startswith("--") and word[1] in LETTERS:
        name = LETTERS[word[1]]
        # As in getopt: one letter is that letter, more are a long name where one begins so.
        if len(word) == 2 or (OWN_OPTIONS[name] != NONE and not _begins(option)):
            return name, OWN_OPTIONS[name], word[2:] or None
    name, takes = _resolve(word, option)
    return name, takes, value if equals else None


def _begins(word: str) -> bool:
    from loadstone.formats.fio.table import BY_NAME

    return any(name.startswith(word) for name in ("name", *OWN_OPTIONS, *BY_NAME))


def _resolve(word: str, prefix: str) -> tuple[str, int]:
    """Find the option a word names: exactly, or by a prefix only one option has."""
    if prefix in OWN_OPTIONS:
        return prefix, OWN_OPTIONS[prefix]
    if prefix == "name":
        return prefix, REQUIRED
    from loadstone.formats.fio.table import BY_NAME

    option = BY_NAME.get(prefix)
    if option is not None:
        # fio takes the prefix of a log as the next word, too; only a job file may leave it out.
        needs = not option.flag or (prefix.startswith("write_") and prefix.endswith("_log"))
        return prefix, REQUIRED if needs else OPTIONAL
    names = [name for name in (*OWN_OPTIONS, *BY_NAME) if prefix and name.startswith(prefix)]
    if len({BY_NAME[n].name if n in BY_NAME else n for n in names}) == 1:
        return _resolve(word, names[0])
    raise make_error(
        InputError, "cli.fio.unknown_option", hint=_nearest(prefix, (*OWN_OPTIONS, *BY_NAME)), option=word
    )


def _nearest(name: str, valid: Collection[str]) -> str | None:
    import difflib

    close = difflib.get_close_matches(name[:64], valid, n=1)
    return f"Did you mean {close[0]}?" if close else None


def _own(arguments: FioArguments, name: str, text: str | None) -> None:
    if name in REFUSED:
        raise make_error(
            RefusedError,
            "cli.fio.not_supported",
            where=Where(COMMAND_LINE, option=f"--{name}"),
            hint=REFUSED[name],
        )
    _ACTIONS[name](arguments, text or "")


def _formats(arguments: FioArguments, text: str) -> None:
    arguments.formats = set()
    for word in text.split(","):
        if word not in FORMATS:
            raise make_error(
                InputError,
                "cli.fio.output_format",
                hint=_nearest(word, FORMATS) or say("cli.fio.valid", names=", ".join(FORMATS)),
                found=word,
            )
        arguments.formats |= FORMATS[word]


def _terse_version(arguments: FioArguments, text: str) -> None:
    if text not in {"2", "3", "4", "5"}:
        raise make_error(InputError, "cli.fio.terse_version", found=repr(text))
    arguments.terse_version = int(text)


def _eta(arguments: FioArguments, text: str) -> None:
    if text not in _ETA:
        raise make_error(InputError, "cli.fio.eta", found=repr(text), names=", ".join(_ETA))
    arguments.eta = text


def seconds(option: str, text: str, least_s: float) -> float:
    """Read a time with fio's units; a plain number is seconds."""
    units = {"": 1.0, "us": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0,
             "h": 3600.0, "d": 86400.0}  # fmt: skip
    digits = len(text) - len(text.lstrip("0123456789"))
    unit = units.get(text[digits:].strip().lower())
    if not digits or unit is None:
        raise make_error(
            InputError, "cli.fio.time", where=Where(COMMAND_LINE, option=option), found=repr(text)
        )
    found_s = int(text[:digits]) * unit
    if found_s < least_s:
        raise make_error(
            InputError, "cli.fio.time_short", where=Where(COMMAND_LINE, option=option), least=f"{least_s:g}"
        )
    return found_s


def _section(arguments: FioArguments, text: str) -> None:
    if text == "global":
        raise make_error(InputError, "cli.fio.only_global")
    arguments.sections.append(text)


def _debug(arguments: FioArguments, text: str) -> None:
    if text in {"?", "help"}:
        arguments.question = ("debug", text)
        return
    for word in text.split(","):
        if word.startswith("all"):
            arguments.debug |= set(DEBUG_AREAS)
            continue
        area = next((a for a in DEBUG_AREAS if word.startswith(a)), None)
        if area is None:
            raise make_error(
                InputError,
                "cli.fio.debug_area",
                hint=_nearest(word, DEBUG_AREAS) or say("cli.fio.debug_help"),
                found=word,
            )
        arguments.debug.add(area)


def _question(name: str) -> Callable[[FioArguments, str], None]:
    return lambda arguments, text: setattr(arguments, "question", (name, text))


def _set(field: str) -> Callable[[FioArguments, str], None]:
    return lambda arguments, _: setattr(arguments, field, True)


def _store(field: str) -> Callable[[FioArguments, str], None]:
    return lambda arguments, text: setattr(arguments, field, text)


def _store_seconds(option: str, field: str, least_s: float) -> Callable[[FioArguments, str], None]:
    return lambda arguments, text: setattr(arguments, field, seconds(option, text, least_s))


def _idle_prof(arguments: FioArguments, text: str) -> None:
    if text not in _IDLE:
        raise make_error(
            InputError,
            "cli.fio.idle_prof",
            hint=_nearest(text, _IDLE) or say("cli.fio.valid", names=", ".join(_IDLE)),
            found=text,
        )
    if text == "calibrate":
        arguments.question = ("idle-prof", text)
    arguments.idle_prof = text


def _append_terse(arguments: FioArguments, _: str) -> None:
    arguments.formats.add("terse")


def _nothing(arguments: FioArguments, text: str) -> None:
    """Take an option that asks for nothing here: memory pools and limits Loadstone does not have."""


_ACTIONS: Final[dict[str, Callable[[FioArguments, str], None]]] = {
    "output": _store("output"),
    "output-format": _formats,
    "minimal": lambda arguments, _: setattr(arguments, "formats", {"terse"}),
    "append-terse": _append_terse,
    "terse-version": _terse_version,
    "eta": _eta,
    "eta-interval": _store_seconds("--eta-interval", "eta_interval_s", 0.25),
    "eta-newline": _store_seconds("--eta-newline", "eta_newline_s", 0.001),
    "status-interval": _store_seconds("--status-interval", "status_interval_s", 0.001),
    "section": _section,
    "debug": _debug,
    "readonly": _set("read_only"),
    "parse-only": _set("parse_only"),
    "showcmd": _set("show_command"),
    "bandwidth-log": _set("bandwidth_log"),
    "warnings-fatal": _set("warnings_fatal"),
    "version": _question("version"),
    "help": _question("help"),
    "cmdhelp": _question("cmdhelp"),
    "enghelp": _question("enghelp"),
    "inflate-log": _question("inflate-log"),
    # The pool's size and the most jobs are limits of fio's own making.
    "alloc-size": _nothing,
    "max-jobs": _nothing,
    "aux-path": _store("aux_directory"),
    "idle-prof": _idle_prof,
    "trigger-file": _store("trigger_file"),
    "trigger-timeout": _store_seconds("--trigger-timeout", "trigger_timeout_s", 0.0),
    "trigger": _store("trigger"),
}
