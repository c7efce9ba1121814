"""What a shell starts: `loadstone` and `python -m loadstone`.

Knows only that an interrupt may come while the program's parts are read, which takes some hundredths of a
second and far longer on a busy host. Imports next to nothing itself.
"""

from __future__ import annotations

import gc
import signal
import sys


def main() -> int:
    """Run the command line of this process and return the exit code; an interrupt is never a traceback."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    # What is read now stays: to look again and again for what may go took a seventh of a help's time.
    gc.disable()
    try:
        from loadstone.cli.main import main as program

        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return program()
    except KeyboardInterrupt:
        from loadstone import exitcodes

        sys.stderr.write("loadstone: interrupted\n")
        return exitcodes.INTERRUPTED
