"""Errors that nobody catches: of a thread, of an object that is put away, or a mistake of the program's own.

The interpreter would print a traceback. Here each is told in one line and kept, so that the run in
which it happened can say so. Knows no run and no verb.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.printable import line

if TYPE_CHECKING:
    from types import TracebackType

MOST: Final = 100
"""Distinct errors that are kept."""
TRACEBACK: Final = "LOADSTONE_TRACEBACK"
"""Set in the environment: tracebacks as well, for whoever mends the program."""
_HERE: Final = str(Path(__file__).parent)

_told: list[str] = []
_lock = threading.RLock()


def install() -> None:
    """From now on; for programs, not for whoever imports us."""
    sys.excepthook = _ended
    threading.excepthook = _in_thread
    sys.unraisablehook = _put_away


def so_far() -> int:
    """Return how many were told until now."""
    return len(_told)


def since(number: int) -> list[str]:
    """Return in words what was told after so many."""
    return _told[number:]


def tell(where: str, error: BaseException | None) -> None:
    """Say that something failed where nobody waits for it, each thing once."""
    text = line(f"failed in the background: {where}: {_placed(error)}; what was measured may be incomplete")
    with _lock:
        if text in _told or len(_told) >= MOST:
            return
        _told.append(text)
    _say(f"warning: {text}", error)


def words(error: BaseException | None) -> str:
    """Say what an error is."""
    if error is None or isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"{type(error).__name__}: {error}"


def hides_interrupt(error: Exception) -> bool:
    """Tell whether it is an interrupt in the words of pydantic, which was building a model when it came."""
    return type(error).__name__ == "SchemaError" and KeyboardInterrupt.__name__ in str(error)


def _placed(error: BaseException | None) -> str:
    """Say the same, and of a mistake in the program where it was made."""
    if error is None or isinstance(error, MemoryError | OSError):
        return words(error)
    trace = error.__traceback__
    own_frames = [one for one in traceback.extract_tb(trace) if one.filename.startswith(_HERE)]
    if not own_frames:
        return words(error)
    return (
        f"{words(error)} ({Path(own_frames[-1].filename).relative_to(_HERE)}, line {own_frames[-1].lineno})"
    )


def _ended(_kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> None:
    """Tell what ends the program; the interpreter goes on to end it with code 1."""
    if isinstance(error, KeyboardInterrupt):
        _say("interrupted", None)
        return
    if isinstance(error, MemoryError | OSError):
        _say(words(error), error)
        return
    _say(f"a mistake in the program: {_placed(error)}\nhint: report this line, and what you typed", error)


def _in_thread(hook_args: threading.ExceptHookArgs) -> None:
    if hook_args.exc_type is not SystemExit:
        tell(hook_args.thread.name if hook_args.thread else "a thread", hook_args.exc_value)


def _put_away(hook_args: sys.UnraisableHookArgs) -> None:
    one = hook_args.object
    name = getattr(one, "__qualname__", None) or type(one).__qualname__
    tell(f"putting {name} away", hook_args.exc_value)


def _say(text: str, error: BaseException | None) -> None:
    # Without memory, or while the interpreter closes, even this may fail: then nothing more can be said.
    with contextlib.suppress(Exception):
        message = f"loadstone: {text}\n"
        if error is not None and os.environ.get(TRACEBACK):
            message += "".join(traceback.format_exception(error))
        try:
            sys.stderr.write(message)
            sys.stderr.flush()
        except (AttributeError, ValueError, OSError):
            os.write(2, message.encode(errors="replace"))
