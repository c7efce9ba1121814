"""The files in which fio keeps how far a verified job came.

Knows where they go and over what they may be written. Their layout is in `plan/verification/verify_state.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone import output
from loadstone.errors import InputError, RefusedError
from loadstone.plan.model import HeaderLayout
from loadstone.plan.verification import verify_state

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.plan.model import Headers, Plan, Stream


def _content(name: str, stream: Stream, headers: Headers, event: Mapping[str, Any]) -> bytes:
    number = int(event["number"])
    depth = 0 if headers.flushed_only else stream.iodepth
    if headers.layout is HeaderLayout.LATER:
        open_writes = [int(one) for one in event["open"] if int(one) < number]
        return verify_state.built(name, headers.thread, depth=depth, number=number, open_writes=open_writes)
    return verify_state.built_for_earlier(
        name,
        headers.thread,
        depth=depth,
        files=len(stream.files),
        number=number,
        done=event["completed"],
    )


def save_state(plan: Plan, event: Mapping[str, Any], aux_directory: str | None) -> None:
    """Write how far a verified job came, where fio would, but over nothing else than such a file."""
    stream = plan.streams[int(event["stream"])]
    if stream.headers is None:
        return
    name = stream.name.rpartition(".")[0]
    path = verify_state.path_of(name, stream.headers.thread, aux_directory)
    content = _content(name, stream, stream.headers, event)
    try:
        output.write(Path(path), content, known=lambda there: verify_state.may_be_replaced(str(there)))
    except RefusedError as error:
        sys.stderr.write(f"fio: state file not written: {error}\n")
    except InputError as error:
        sys.stderr.write(f"fio: state file {error}\n")
