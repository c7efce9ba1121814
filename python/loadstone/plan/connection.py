"""A clone that closes its target and opens it again after so many I/Os.

Knows what must stay open meanwhile, and which engines can open again. Knows no open file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.plan import model as plan
from loadstone.plan.backends import of_engine

if TYPE_CHECKING:
    from loadstone.plan.planning_notes import Notes
    from loadstone.workload.model import Job

FIELD: Final = "engine.ios_per_connection"
_NEED_IT_OPEN: Final = ("search", "verify", "headers")
"""Parts of a stream that go on from one I/O to the next and count on an open file."""


def check_engine(job: Job, engine: str) -> None:
    """Refuse an engine that cannot open a target again. Raises RefusedError."""
    if job.engine.ios_per_connection and not of_engine(engine).reopens:
        raise job.refusal("plan.connection.engine", FIELD, engine=engine)


def connected(job: Job, stream: plan.Stream, files: int, notes: Notes) -> plan.Stream:
    """Return the stream with the connection it was asked for; of `files` targets.

    Raises RefusedError where something of it needs the target open all the time.
    """
    ios = job.engine.ios_per_connection
    if not ios:
        return stream
    if files != 1:
        raise job.refusal("plan.connection.files", FIELD, files=files)
    for name in _NEED_IT_OPEN:
        if getattr(stream, name) is not None:
            raise job.refusal("plan.connection.open", FIELD, part=say(f"plan.connection.{name}"))
    if stream.flush.on_close:
        raise job.refusal("plan.connection.open", FIELD, part=say("plan.connection.on_close"))
    notes.info(job, FIELD, say("plan.connection.kept"))
    return stream.model_copy(update={"connection": plan.Connection(ios=ios)})
