"""What an agent may say: the shape of each of its messages.

Knows fields and types, and no order among them. What a shell prints on the way in may be JSON, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypeGuard

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loadstone.bundle import schemas
from loadstone.hosts.work import SeenTarget

if TYPE_CHECKING:
    from collections.abc import Mapping

Count = Annotated[int, Field(ge=0, lt=2**63)]
Number = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class _Said(BaseModel):
    """Fields that are not named may be anything: nothing reads them."""

    model_config = ConfigDict(extra="allow")


class _Told(_Said):
    error: str
    hint: str | None = None
    code: Number = 1


class _Hello(_Said):
    version: str
    host_name: str | None = None


class _Noted(_Said):
    text: str


class _Examined(_Said):
    name: str
    state: str
    found: str


class _Checked(_Said):
    targets: list[SeenTarget]
    plan: str
    notes: list[_Noted]
    doctor: list[_Examined]


class _Armed(_Said):
    plan: str
    environment: dict[str, Any] | None = None


class _Started(_Said):
    class Event(_Said):
        """The engine's `start`."""

        monotonic_ns: Number
        first_ns: Number = 0

    event: Event


class _Event(_Said):
    event: dict[str, Any]


class _Row(_Said):
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


class _Tick(_Said):
    t_ns: Number
    interval: Count
    rows: list[_Row]


class _Layout(_Said):
    done_bytes: Count
    total_bytes: Count


class _Alive(_Said):
    cpu_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0


class _Ended(_Said):
    status: str
    exit_code: Number | None = None
    error: _Told | None = None


class _Lost(_Said):
    why: str


SHAPES: Final[dict[str, type[_Said]]] = {
    "hello": _Hello,
    "checked": _Checked,
    "armed": _Armed,
    "started": _Started,
    "event": _Event,
    "alive": _Alive,
    "ended": _Ended,
    "refused": _Told,
    "lost": _Lost,
}
"""Of the messages that say more than that they came."""
SHOWN: Final[dict[str, type[_Said]]] = {"tick": _Tick, "layout": _Layout}
"""Of the events that are shown while a run goes on."""


OURS: Final = frozenset({"clocked", "collected", "lost"})
"""What the coordinator says to itself."""


def is_message(value: object) -> TypeGuard[dict[str, Any]]:
    """Tell what an agent may say from whatever else is JSON."""
    return isinstance(value, dict) and isinstance(value.get("type"), str) and value["type"] not in OURS


def flaw(message: Mapping[str, Any]) -> str | None:
    """Return what of a message cannot be understood; None: nothing."""
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
        return "event: it is none of the engine's"
    return None


def in_short(error: ValidationError) -> str:
    """Return where a document is wrong, and how."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where or 'all of it'}: {first['msg']}"[:200]
