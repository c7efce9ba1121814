"""`make safety`: try to have everything overwritten, and write docs/safety.md.

Knows the page. Ends with 1 when anything happened that should not, with 130 when it was stopped: what was
staged is taken down first.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from lab.safety import draws, trial, trials
from lab.safety.page import HEAD, TEXT

from lab import parts

AT_ONCE = 4
DRAWS = 140
"""Of each kind of content."""
PAGE = Path(__file__).resolve().parents[2] / "docs" / "safety.md"


def main() -> int:
    """Try all, or the cases whose names have a word in them."""
    why = parts.missing()
    if why is not None:
        sys.stderr.write(f"nothing can be staged here: {why}\n")
        return 2
    chosen = [
        number
        for number, case in enumerate(trials.cases())
        if not sys.argv[1:] or any(word in f"{case.target} {case.holds}" for word in sys.argv[1:])
    ]
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    # Not forked off this process, whose libraries have threads: they would not be there, nor let go of locks.
    apart = multiprocessing.get_context("spawn")
    stop = apart.Event()
    with ProcessPoolExecutor(AT_ONCE, apart, trial.on_a_host_of_its_own, (stop,)) as pool:
        try:
            rows = [row for some in pool.map(trials.rows, chosen) for row in some]
            if not sys.argv[1:]:
                kinds, layouts = pool.submit(draws.tried_in_memory, DRAWS).result()
        except KeyboardInterrupt:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            stop.set()
            sys.stderr.write("stopping: what is staged is taken down\n")
            pool.shutdown(cancel_futures=True)
            return 130
    wrong = sum(not row.right for row in rows)
    if sys.argv[1:]:
        sys.stderr.write(f"{len(rows)} trials, {wrong} wrong\n")
        return 1 if wrong else 0
    beyond = sum(not tally.right for tally in (*kinds.values(), *layouts.values()))
    table = draws.table(kinds, layouts)
    PAGE.write_text(
        TEXT + table + HEAD.format(rows=len(rows), wrong=wrong) + "".join(row.line() for row in rows)
    )
    sys.stderr.write(f"{len(rows)} trials, {wrong} wrong; {beyond} kinds missed more often than stated\n")
    return 1 if wrong or beyond else 0


if __name__ == "__main__":
    sys.exit(main())
