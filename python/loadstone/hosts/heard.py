"""What an agent may say: the shape of each of its messages.

Knows fields and types, and no order among them. What a shell prints on the way in may be JSON, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypeGuard

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loadstone.bundle import schemas
from loadstone.hosts.assignment import SeenTarget
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Mapping

Count = Annotated[int, Field(ge=0, lt=2**63)]
Number = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class _SaidWord(BaseModel):
    """Fields that are not named may be anything: nothing reads them."""

    model_config = ConfigDict(extra="allow")


class _ToldWord(_SaidWord):
    error: str
    hint: str | None = None
    code: Number = 1


class _HelloWord(_SaidWord):
    version: str
    host_name: str | None = None


class _NotedWord(_SaidWord):
    text: str


class _ExaminedWord(_SaidWord):
    name: str
    state: str
    found: str


class _CheckedWord(_SaidWord):
    targets: list[SeenTarget]
    plan: str
    notes: list[_NotedWord]
    doctor: list[_ExaminedWord]


class _ArmedWord(_SaidWord):
    plan: str
    environment: dict[str, Any] | None = None


class _StartedWord(_SaidWord):
    class StartEvent(_SaidWord):
        """The engine's `start`."""

        monotonic_ns: Number
        first_ns: Number = 0

    event: StartEvent


class _AliveWord(_SaidWord):
    """What an agent took of a CPU, and in which time."""

    cpu_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    over_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0


class _EventWord(_AliveWord):
    event: dict[str, Any]


class _RowWord(_SaidWord):
    """What the display of a run shows."""

    cell: Count
    op: str
    ramp: bool
    ops: Count
    bytes: Count
    errors: Count
    p50_ns: Count
    p99_ns: Count
    max_ns: Count
    inflight: Count


class _TickWord(_SaidWord):
    t_ns: Number
    interval: Count
    rows: list[_RowWord]


class _LayoutWord(_SaidWord):
    done_bytes: Count
    total_bytes: Count


class _EndedWord(_SaidWord):
    status: str
    exit_code: Number | None = None
    error: _ToldWord | None = None


class _LostWord(_SaidWord):
    why: str


SHAPES: Final[dict[str, type[_SaidWord]]] = {
    "hello": _HelloWord,
    "checked": _CheckedWord,
    "armed": _ArmedWord,
    "started": _StartedWord,
    "event": _EventWord,
    "alive": _AliveWord,
    "ended": _EndedWord,
    "refused": _ToldWord,
    "lost": _LostWord,
}
"""Of the messages that say more than that they came."""
SHOWN: Final[dict[str, type[_SaidWord]]] = {"tick": _TickWord, "layout": _LayoutWord}
"""Of the events that are shown while a run goes on."""


OURS: Final = frozenset({"clocked", "collected", "lost"})
"""What the coordinator says to itself."""


def is_message(value: object) -> TypeGuard[dict[str, Any]]:
    """Tell what an agent may say from whatever else is JSON."""
    return isinstance(value, dict) and isinstance(value.get("type"), str) and value["type"] not in OURS


def flaw(message: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a message; None where it can be read."""
    shape = SHAPES.get(str(message["type"]))
    if shape is None:
        return None
    try:
        shape.model_validate(message)
        if message["type"] == "event" and (shown := SHOWN.get(str(message["event"].get("type")))) is not None:
            shown.model_validate(message["event"])
    except ValidationError as error:
        return in_short(error)
    if message["type"] == "event" and not schemas.is_event(message["event"], None):
        return say("hosts.agent.foreign_event")
    return None


def in_short(error: ValidationError) -> str:
    """Return where a document is wrong, and how."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where or 'all of it'}: {first['msg']}"[:200]
