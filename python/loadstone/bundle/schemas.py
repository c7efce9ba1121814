"""What the documents of a bundle look like, as far as anything is read from them.

Knows types and bounds of fields, which of them must be there, and how a document that breaks them
is made one that does not: by leaving out what is wrong, and saying so. Knows no meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError, model_validator

from loadstone.messages import say
from loadstone.path.layers import DataPath
from loadstone.path.spec import Spec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.plan.model import Plan

TEN_YEARS_NS: Final = 10 * 366 * 86_400 * 10**9
ROUNDS: Final = 16
"""What is left out may break what held it: a list its length, an object a field it must have."""

Time = Annotated[int, Field(ge=0, le=TEN_YEARS_NS)]
Count = Annotated[int, Field(ge=0, lt=2**63)]
Index = Annotated[int, Field(ge=0, lt=2**32)]
Finite = Annotated[float, Field(ge=0, allow_inf_nan=False, lt=1e300)]
UNIX: Final = Field(ge=0, lt=2**62)
Text = str | None
Number = Annotated[str, Field(pattern=r"^[0-9]{1,9}$")]


class _Shape(BaseModel):
    """Fields that are not named may be anything: nothing reads them."""

    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)


class Options(_Shape):
    """Options of the command line that change how a run is read."""

    ramp_until_steady: bool | None = None
    job: Text = None


class Request(_Shape):
    """`request.json`."""

    argv: list[str] = []
    cwd: Text = None
    front_end: Text = None
    options: Options = Options()


class HostCpu(_Shape):
    """The CPUs of a host."""

    model: Text = None
    online: Annotated[int, Field(ge=1, lt=2**20)] | None = None
    governors: list[str] = []


class RecordedHost(_Shape):
    """A host."""

    host_name: Text = None
    kernel: Text = None
    cpu: HostCpu = HostCpu()


class RecordedMount(_Shape):
    """Where a target is mounted."""

    file_system: Text = None


class RecordedTarget(_Shape):
    """A target as it was found."""

    path: str = ""
    devices: list[str] = []
    size_bytes: Count | None = None
    allocated_bytes: Count | None = None
    mount: RecordedMount = RecordedMount()


class Queue(_Shape):
    """A block device's queue, as the kernel's files say it."""

    nr_requests: Number | None = None
    rotational: Text = None
    write_cache: Text = None


class DeviceQueue(_Shape):
    """What stands behind it."""

    queue_depth: Number | None = None


class Device(_Shape):
    """A block device."""

    queue: Queue = Queue()
    device: DeviceQueue = DeviceQueue()
    hardware_queues: Annotated[int, Field(ge=0, lt=2**20)] | None = None


class RecordedEnvironment(_Shape):
    """`environment.json`."""

    host: RecordedHost = RecordedHost()
    targets: list[RecordedTarget] = []
    devices: dict[str, Device] = {}
    paths: list[DataPath] | None = None
    spec: Spec | None = None
    same_sequence: list[str] | None = None


class RequestedTarget(_Shape):
    """A target of a job."""

    path: str = ""
    written: Text = None


class RequestedPlacement(_Shape):
    """Where a job goes."""

    targets: list[RequestedTarget] = []


class RequestedJob(_Shape):
    """A job as the front end named it."""

    name: str = "job"
    own_options: dict[str, str] = {}
    placement: RequestedPlacement = RequestedPlacement()


class RequestedWorkload(_Shape):
    """`workload.json`, as far as its front end's own words are told again."""

    name: str = "run"
    global_options: dict[str, str] = {}
    jobs: list[RequestedJob] = []


class NotePlace(_Shape):
    """Where in what the user gave."""

    file: Text = None
    line: int | None = None
    option: Text = None


class NoteObject(_Shape):
    """One of `notes.json`."""

    kind: Text = None
    text: str
    where: NotePlace | Text = None


class _Event(_Shape):
    """Any event."""

    type: str


class _Hello(_Event):
    pid: Count = 0


class _Start(_Event):
    unix_ns: Annotated[int, UNIX]


class _Timed(_Event):
    """With the engine's account of its CPU time."""

    t_ns: Time = 0
    cpu_user_ns: Count = 0
    cpu_system_ns: Count = 0
    spun_ns: Count = 0
    voluntary_switches: Count = 0
    involuntary_switches: Count = 0
    major_faults: Count = 0
    minor_faults: Count = 0


class _EndEvent(_Timed):
    t_ns: Time
    reason: str = ""


class _FailedIo(_Event):
    """An I/O that went wrong."""

    t_ns: Time | None = None
    stream: Index | None = None
    target: Index | None = None
    op: str | Index | None = None
    offset: Count | None = None
    bytes: Count | None = None
    errno: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    age_ns: Time | None = None
    message: Text = None


class _Stopped(_Event):
    """The engine did not run for a while; `ops` ended meanwhile all the same."""

    t_ns: Time
    stopped_ns: Time
    ops: Count = 0


class _FineSamples(_Event):
    """Operations that ended in each of a row of short samples, and how long each was."""

    t_ns: Time
    stage: Index
    start_ns: Time
    lengths_us: Annotated[list[Count], Field(max_length=4096)]
    ops: Annotated[list[Count], Field(max_length=4096)]

    @model_validator(mode="after")
    def _one_length_each(self) -> _FineSamples:
        if len(self.lengths_us) != len(self.ops):
            raise ValueError(say("bundle.samples.uneven"))
        return self


class _Depth(_Event):
    stream: Index
    depth: Index
    t_ns: Time = 0


Samples = list[Count]


class _Steady(_Event):
    rule: Index
    attained: bool
    criterion: Finite | None = None
    deviation: Finite | None = None
    slope: float | None = None
    ops_per_second: Samples = []
    bytes_per_second: Samples = []
    lat_mean_ns: Samples = []


class _VerifyEnd(_Event):
    stream: Index
    checked: Count
    damaged: Count
    unverified: Count


class _Verified(_Event):
    found: dict[str, Count] = {}


Counts = Annotated[list[Count], Field(max_length=64)]
Depths = Annotated[list[Count], Field(max_length=7)]


class _StreamEnd(_Event):
    stream: Index
    reason: str = ""
    started_ns: Time | None = None
    ramp_end_ns: Time | None = None
    ended_ns: Time
    t_ns: Time | None = None
    issued: Counts = []
    completed: Counts = []
    failed: Counts = []
    file_ops: dict[str, JsonValue] | None = None
    depth: Depths = []
    submit_batches: Depths = []
    complete_batches: Depths = []
    backend: Text = None


class _TargetState(_Event):
    when: str
    target: Index
    size_bytes: Count
    allocated_bytes: Count
    written_bytes: Count | None = None
    unwritten_bytes: Count | None = None
    hole_bytes: Count = 0
    encoded_bytes: Count | None = None
    shared_bytes: Count | None = None
    extents: Count | None = None
    looked_at_bytes: Count | None = None
    cached_bytes: Count | None = None


class _MonitorCost(_Event):
    cpu_ns: Count
    by_collector: dict[str, Count] = {}
    failed: dict[str, str] = {}


WatchedName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$")]


class _WatchedDisk(_Shape):
    size_bytes: Count | None = None
    rotational: bool | None = None
    over: Annotated[list[str], Field(max_length=4096)] = []


class _WatchedLink(_Shape):
    bits_per_s: Count | None = None
    shaped_bits_per_s: Count | None = None
    mtu_bytes: Count | None = None


class _WatchedFacts(_Shape):
    """What does not change of a watched host."""

    host: Text = None
    system: Text = None
    kernel: Text = None
    cores: Annotated[int, Field(gt=0, lt=2**20)] | None = None
    memory_bytes: Count | None = None
    boot_id: Text = None
    same_host: bool | None = None
    cpu_limit: Annotated[float, Field(gt=0, lt=2**20)] | None = None
    disks: dict[str, _WatchedDisk] = {}
    links: dict[str, _WatchedLink] = {}


class _WatchBegins(_Event):
    name: WatchedName
    kind: Literal["ssh", "snmp", "http", "local"]
    url: str
    interval_ns: Time
    facts: _WatchedFacts


class _WatchMoment(_Event):
    name: WatchedName
    t_ns: Time
    text: Text = None


class _WatchGap(_Shape):
    from_ns: Time
    to_ns: Time | None = None
    why: str


Signed = Annotated[int, Field(gt=-(2**62), lt=2**62)]


class _WatchEnd(_Event):
    """The account of a watched host."""

    name: WatchedName
    rows: Count
    gaps: list[_WatchGap] = []
    seconds: Finite
    cpu_ns: Count
    there_cpu_ns: Count | None = None
    aligned_within_ns: Time | None = None
    clock_offset_ns: Signed | None = None
    clock_error_ns: Time | None = None


class _Ceiling(_Shape):
    """Of one stage, in a calibration."""

    stage: Index
    ceiling_iops: Annotated[float, Field(gt=0, allow_inf_nan=False, lt=1e300)]


class _Calibration(_Event):
    ops: Count | None = None
    cpu_user_ns: Count = 0
    cpu_system_ns: Count = 0
    stages: list[_Ceiling] = []
    skipped: Text = None


class _Words(_Event):
    text: Text = None
    why: Text = None
    message: Text = None
    hint: Text = None
    target: Index | None = None
    worker: Index | None = None


class _Layout(_Event):
    target: Index | None = None


class _Tree(_Event):
    target: Index
    files: Count
    foreign: Count | None = None
    first: str | None = None
    newest_ns: Count | None = None


class _ExitCode(_Event):
    code: int | None = None


EVENTS: Final[dict[str, TypeAdapter[Any]]] = {
    name: TypeAdapter(shape)
    for shape, names in (
        (_Hello, ("hello",)),
        (_Start, ("start",)),
        (_Timed, ("tick",)),
        (_EndEvent, ("end",)),
        (_FailedIo, ("io_error", "hung", "damage")),
        (_Stopped, ("stopped",)),
        (_FineSamples, ("fine_samples",)),
        (_Depth, ("depth",)),
        (_Steady, ("steady",)),
        (_VerifyEnd, ("verify_end",)),
        (_Verified, ("verified",)),
        (_StreamEnd, ("stream_end",)),
        (_TargetState, ("target_state",)),
        (_MonitorCost, ("monitor_cost",)),
        (_Calibration, ("calibration",)),
        (_WatchBegins, ("watch",)),
        (_WatchMoment, ("watch_lost", "watch_back")),
        (_WatchEnd, ("watch_end",)),
        (_Words, ("note", "talk", "kill", "silent", "fatal", "stop", "order", "uncaught")),
        (_Layout, ("layout",)),
        (_Tree, ("tree",)),
        (_ExitCode, ("engine_exit",)),
    )
    for name in names
}
ANY_EVENT: Final = TypeAdapter(_Event)
REQUEST: Final = TypeAdapter(Request)
ENVIRONMENT: Final = TypeAdapter(RecordedEnvironment)
NOTES: Final = TypeAdapter(list[NoteObject | Annotated[str, Field(strict=True)]])


def is_event(value: Any, plan: Plan | None) -> bool:
    """Tell whether an event says what an event of its type must, of parts that the Plan has."""
    kind = value.get("type") if isinstance(value, dict) else None
    try:
        (EVENTS.get(kind, ANY_EVENT) if isinstance(kind, str) else ANY_EVENT).validate_python(value)
    except ValidationError:
        return False
    return plan is None or all(
        not isinstance(value.get(name), int) or value[name] < most
        for name, most in (
            ("stream", len(plan.streams)),
            ("target", len(plan.targets)),
            ("worker", len(plan.workers)),
            ("rule", len(plan.steady)),
        )
    )


def pruned(document: Any, shape: TypeAdapter[Any]) -> tuple[Any, list[str]]:
    """Return a document without what breaks its shape, and the places of what was left out.

    None when nothing is left.
    """
    places: list[str] = []
    for _ in range(ROUNDS):
        try:
            # As JSON, because a strict list is no tuple in Python and may be one there.
            shape.validate_python(document)
        except ValidationError as error:
            wrong = {_reachable(document, one["loc"]) for one in error.errors(include_url=False)}
            for place in sorted(wrong, key=_last_first, reverse=True):
                places.append(".".join(map(str, place)) or say("bundle.fault.all"))
                if not place:
                    return None, places
                _leave_out(document, place)
        else:
            return document, places
    return None, [*places, "the rest"]


def _last_first(place: Sequence[int | str]) -> list[tuple[int, str]]:
    """Order places so that, backwards, nothing moves what is still to be left out."""
    return [(step, "") if isinstance(step, int) else (-1, step) for step in place]


def _reachable(document: Any, location: Sequence[int | str]) -> tuple[int | str, ...]:
    """Return the part of an error's place that is there: unions add their branch, and a lack its name."""
    place: list[int | str] = []
    at = document
    for step in location:
        try:
            at = at[step]
        except (KeyError, IndexError, TypeError):
            break
        place.append(step)
    return tuple(place)


def _leave_out(document: Any, place: Sequence[int | str]) -> None:
    at = document
    for step in place[:-1]:
        at = at[step]
    del at[place[-1]]


Loader = Literal["request", "environment", "notes"]
SHAPES: Final[dict[Loader, tuple[TypeAdapter[Any], Callable[[], Any]]]] = {
    "request": (REQUEST, dict),
    "environment": (ENVIRONMENT, dict),
    "notes": (NOTES, list),
}
