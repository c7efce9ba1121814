"""What must be true after a fault: of what was said, kept and left running."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab.hosts.trial import HostsTrial

LATE_MS = 100
"""So long after it went on may a host's last write be that nobody waits for, on a busy machine."""


STALL_S = 4.0
"""An I/O over a link that is down for 5 s takes longer than this."""


ROOM_S = 4.0
"""Engines must be gone 2 s after their coordinator; here with room for a machine that does other work."""


def clock_is_told(trial: HostsTrial) -> bool:
    """Whether the watched host's clock is said to be three seconds ahead, within its error."""
    words = next(
        (note for note in trial.notes if note.startswith("clock of nas")), "0 0 0 0 0 0 0 0 9"
    ).split()
    return complete(trial) and abs(float(words[5]) - 3) <= float(words[8]) + 0.1


def wrote_no_more(trial: HostsTrial) -> bool:
    """Whether nothing but what was under way was written by a host that nobody waits for."""
    note = next((note for note in trial.notes if note.startswith("wrote for ")), "wrote for 9999 ms")
    return int(note.split()[2]) <= LATE_MS and "NEVER" not in note


def stalled_and_went_on(trial: HostsTrial) -> bool:
    slowest = next((float(note.split()[2]) for note in trial.notes if note.startswith("slowest")), 0.0)
    return complete(trial) and slowest > STALL_S


def not_begun(trial: HostsTrial) -> bool:
    return trial.code in {1, 2} and trial.kept() == "nothing was begun" and "h2" in trial.said


def refused_early(trial: HostsTrial) -> bool:
    return trial.code in {1, 2} and trial.kept() == "nothing was begun" and bool(trial.said.strip())


def watch_refused(trial: HostsTrial) -> bool:
    return trial.code in {1, 2} and trial.kept() == "nothing was begun" and "nas" in trial.said


def failed_with_figures(trial: HostsTrial) -> bool:
    return (
        trial.code == 1
        and "h2" in trial.said
        and trial.kept().startswith("failed: ")
        and " 0 I/Os" not in trial.kept()
    )


def complete(trial: HostsTrial) -> bool:
    return trial.code == 0 and trial.kept().startswith("complete: ") and "h1, h2" in trial.kept()


def ended_quickly(trial: HostsTrial) -> bool:
    gone = next((note for note in trial.notes if "engines gone after" in note), "")
    return bool(gone) and float(gone.split()[3]) < ROOM_S and "2 of 2" in trial.kept()
