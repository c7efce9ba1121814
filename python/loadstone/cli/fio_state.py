"""The files in which fio keeps how far a verified job came.

Knows where they go and over what they may be written. Their layout is in `plan/verify_state.py`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from loadstone.plan import verify_state

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.plan.model import Plan


def save_state(plan: Plan, event: Mapping[str, Any], aux_directory: str | None) -> None:
    """Write how far a verified job came, where fio would, but over nothing else than such a file."""
    stream = plan.streams[int(event["stream"])]
    if stream.headers is None:
        return
    name = stream.name.rpartition(".")[0]
    path = verify_state.path_of(name, stream.headers.thread, aux_directory)
    if not verify_state.may_be_replaced(path):
        sys.stderr.write(f"fio: state file {path} not written: another file is there\n")
        return
    content = verify_state.built(
        name,
        stream.headers.thread,
        depth=0 if stream.headers.flushed_only else stream.iodepth,
        files=len(stream.files),
        number=int(event["number"]),
        done=event["completed"],
    )
    try:
        with open(path, "wb") as file:  # noqa: PTH123 - text, as fio has it
            file.write(content)
    except OSError as error:
        sys.stderr.write(f"fio: state file {path}: {error.strerror}\n")
