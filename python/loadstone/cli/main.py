"""The program `loadstone`: from argv to an exit code.

Knows which words never reach the argument parser (`fio`, `--version`) so that they start
fast, and that an error ends as a message, a hint and a code, never as a traceback.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

from loadstone import crash_note, exitcodes, uncaught
from loadstone.cli import help_page
from loadstone.errors import MORE_FILES, LoadstoneError, RunError, told
from loadstone.garbage import collect_from_now_on
from loadstone.printable import message, standard_streams
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


COMPLETE: Final = "__complete"
"""The word with which completion scripts of the argument parser call the program."""
ADDRESSES_BYTES: Final = 1 << 30
"""Of libraries that are mapped, hardly of memory that is used; with a report it is twice that."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line (without the program's name) and return the exit code."""
    if argv is None:
        _be_there_for_signals(sys.argv[1:])
        from loadstone.cli.process import supervisor

        return supervisor.run(_program)
    try:
        _have_descriptors()
        # What answers a shell's Tab is for the shell, control characters and all.
        with contextlib.nullcontext() if argv[:1] == [COMPLETE] else standard_streams():
            return _answered(list(argv))
    except MemoryError as error:
        show(_in_words(error))
        return exitcodes.FAILED


def _answered(words: list[str]) -> int:
    try:
        _refuse_too_little_memory()
        return _final_code(_dispatch(words))
    except LoadstoneError as error:
        show(error)
        return error.exit_code
    except BrokenPipeError:
        # Whoever read our output has gone, as `| head` does. Nothing more can be written,
        # and the interpreter must not try again when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exitcodes.FAILED
    except KeyboardInterrupt:
        return _interrupted()
    except (MemoryError, OSError, ImportError) as error:
        show(_in_words(error))
        if figures := crash_note.read():
            sys.stderr.write(f"measured until then:\n{figures}\n")
        return exitcodes.FAILED
    except Exception as error:
        if not uncaught.hides_interrupt(error):
            raise
        return _interrupted()


def _interrupted() -> int:
    sys.stderr.write("loadstone: interrupted\n")
    return exitcodes.INTERRUPTED


def _refuse_too_little_memory() -> None:
    """Refuse a limit under which a library does not fail but spins for ever, as OpenBLAS does."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < ADDRESSES_BYTES:
        raise RunError(
            f"the limit on address space is {limit >> 20} MiB and {ADDRESSES_BYTES >> 20} MiB are needed",
            hint="ulimit -v unlimited; to limit memory, use a control group",
        )


def _in_words(error: MemoryError | OSError | ImportError) -> LoadstoneError:
    if isinstance(error, ImportError):
        remedy = "raise the limit on memory (ulimit -v unlimited), or install the program anew"
        return RunError(f"a part of the program cannot be loaded: {error.__cause__ or error}", hint=remedy)
    if isinstance(error, MemoryError):
        remedy = "free memory, or raise the limit on it (ulimit -v, memory.max of the control group)"
        return RunError("out of memory", hint=remedy)
    if error.errno == errno.ENOENT and not error.filename and not _is_somewhere():
        return RunError("the working directory was removed", hint="cd to a directory that exists")
    where = f"{error.filename}: " if error.filename else ""
    hint = MORE_FILES if error.errno in (errno.EMFILE, errno.ENFILE) else None
    return RunError(f"{where}{error.strerror or error}", hint=hint)


def _is_somewhere() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 # only whether it can be told
    except OSError:
        return False
    return True


def _program() -> int:
    """Run the command line with an output that may be full or closed."""
    from loadstone.cli.process import standard_output

    uncaught.install()
    closed = sys.stdout is None
    _have_descriptors()
    out = standard_output.guarded(closed=closed)
    code = main(sys.argv[1:])
    with contextlib.suppress(BrokenPipeError):
        out.flush()
    return code or exitcodes.FAILED if out.failed is not None else code


def _be_there_for_signals(words: Sequence[str]) -> None:
    """Hear an interrupt also where a shell had it ignored, as for `loadstone ... &` in a script."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if words[:1] == ["fio"]:
        # As fio, which tells how far it is; before there is anything to tell it must not die of it.
        signal.signal(signal.SIGUSR1, lambda *_: None)


def _final_code(code: int) -> int:
    """Keep the code of an interrupted run from who insists once more while the interpreter closes."""
    if code == exitcodes.INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code


def _have_descriptors() -> None:
    """Open /dev/null where we were started without standard input, output or error (`>&-`).

    The next file that is opened would take its number, and what is printed would go there.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, mode))


def show(error: LoadstoneError) -> None:
    """Print an error to standard error: what, and on a line of its own what to do."""
    # Not through rich: a message must come out as it is, brackets and all, and fast.
    for one in told(error):
        sys.stderr.write(message(f"loadstone: {one}") + "\n")
        if one.hint:
            sys.stderr.write(message(f"hint: {one.hint}") + "\n")
    sys.stderr.flush()


def _dispatch(words: list[str]) -> int:
    if words == ["--version"]:
        sys.stdout.write(f"loadstone {__version__}\n")
        return exitcodes.DONE
    if words[:1] != ["fio"] and help_page.shown(words):
        return exitcodes.DONE if words else exitcodes.USAGE
    program = _program_of(words)
    collect_from_now_on()  # From here on work is done (see `start`).
    return program()


def _program_of(words: list[str]) -> Callable[[], int]:
    if words[:1] == ["fio"]:
        from loadstone.cli.fio.program import main as fio

        return partial(fio, words[1:])
    if words == ["hosts", "agent"]:
        from loadstone.hosts.agent import main as agent

        return agent
    if words == ["hosts", "worker"]:
        from loadstone.hosts.dask_worker import main as worker

        return worker
    from loadstone.cli import app

    return partial(app.run, words)


if __name__ == "__main__":
    sys.exit(main())
