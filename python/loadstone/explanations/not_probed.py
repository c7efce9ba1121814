"""Why nothing of a phase can be tried again: what the verdict then names no probe for.

Knows the Plan of the phase only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.plan.model import TargetKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.plan.model import Plan, Stream

BACKENDS: Final = frozenset({"io_uring", "libaio", "psync", "sim"})
KINDS: Final = frozenset({TargetKind.FILE, TargetKind.BLOCK, TargetKind.VIRTUAL})
MOST_FILES: Final = 64
MOST_STREAMS: Final = 256


def why_not_probed(plan: Plan, streams: Sequence[Stream]) -> str | None:
    """Say why nothing can be probed of a phase with these streams; None when it can."""
    targets = [plan.targets[index] for index in sorted({use.target for one in streams for use in one.files})]
    backends = {plan.workers[stream.worker].backend.type for stream in streams}
    reasons = (
        (
            any(stream.tree is not None for stream in streams),
            "operations on files by name cannot be probed",
        ),
        (
            any(stream.pattern.trim_percent or stream.pattern.trim_then_write for stream in streams),
            "a load that trims cannot be probed: trims cannot be undone",
        ),
        (
            any(stream.headers is not None or stream.pattern.rows is not None for stream in streams),
            "a load of verified headers or of rows cannot be probed",
        ),
        (bool(backends - BACKENDS), f"a load on {', '.join(sorted(backends))} cannot be probed"),
        (
            any(target.unlink for target in targets),
            "the files of the run are gone: it removes them (unlink=1)",
        ),
        (
            any(target.kind not in KINDS for target in targets),
            "only files and block devices can be probed",
        ),
        (
            any(len(stream.files) > MOST_FILES for stream in streams) or len(streams) > MOST_STREAMS,
            "so many files or clones cannot be probed: name one section with --section",
        ),
    )
    return next((why for holds, why in reasons if holds), None)
