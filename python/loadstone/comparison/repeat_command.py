"""The command that measures a side again as repeats.

Knows what a run and a study have kept of the command line they came from. Runs nothing.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.comparison.side import Side

REPEATS: Final = 3
REPLACED: Final = ("--out", "--repeat")
REPEATABLE: Final = ("run", "curve", "sweep")
"""Verbs that take `--repeat`."""


def repeat_command(side: Side) -> str | None:
    """Return the command for a side that one run, curve or sweep made; None for every other side."""
    requests = [dict(record.request) for _, record in side.studies]
    requests += [dict(run.summary.bundle.request) for run in side.runs if run.study is None]
    if len(requests) != 1 or len({phase.path for phase in side.phases}) != len(side.runs):
        return None
    words: list[Any] = requests[0].get("argv", [])
    if not words[1:] or words[1] not in REPEATABLE:
        return None
    kept_words = list(_without_replaced([str(word) for word in words[1:]]))
    return shlex.join(["loadstone", *kept_words, "--repeat", str(REPEATS)])


def _without_replaced(words: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command line but for options that it gets anew, and their values."""
    is_value = False
    for word in words:
        name, separator, _ = word.partition("=")
        if not is_value and name not in REPLACED:
            yield word
        is_value = not is_value and word in REPLACED and not separator
