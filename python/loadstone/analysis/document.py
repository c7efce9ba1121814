"""The shape of `result.json`, which is also what `--json` prints.

Knows names, types and units; docs/result-json.md says them in words and
contract/result.schema.json is made from here. Computes no figure. `null` always means 'not
known' or 'too few samples', never zero.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, InstanceOf, PlainSerializer, WithJsonSchema
from typing_extensions import TypeAliasType

from loadstone.analysis.latency import Latency
from loadstone.analysis.totals import PERCENTILES
from loadstone.bundle.layout import OPS, OpName
from loadstone.frozen_model import FrozenModel
from loadstone.verdict import Phase, Verdict

FORMAT: Final = 1


LATENCY_SCHEMA: Final[dict[str, Any]] = {
    "additionalProperties": False,
    "description": "Latency of the I/Os that completed without error, in nanoseconds.",
    "properties": {
        "mean": {"title": "Mean", "type": "number"},
        "mean_error": {
            "anyOf": [{"type": "number"}, {"type": "null"}],
            "description": "one standard error; null with under 5 intervals",
            "title": "Mean Error",
        },
        "min": {"title": "Min", "type": "integer"},
        "max": {"title": "Max", "type": "integer"},
        "stddev": {"title": "Stddev", "type": "number"},
        "percentiles": {
            "additionalProperties": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "description": "percent to latency; null with fewer than 10 samples beyond it",
            "title": "Percentiles",
            "type": "object",
        },
    },
    "required": ["mean", "mean_error", "min", "max", "stddev", "percentiles"],
    "title": "LatencyNs",
    "type": "object",
}


def _latency(latency: Latency) -> dict[str, Any]:
    percentiles = latency.percentiles(PERCENTILES)
    return {
        "mean": latency.mean_ns,
        "mean_error": latency.mean_error_ns,
        "min": latency.min_ns,
        "max": latency.max_ns,
        "stddev": latency.stddev_ns,
        "percentiles": {f"{percent:g}": value for percent, value in percentiles.items()},
    }


LatencyNs = TypeAliasType(
    "LatencyNs",
    Annotated[Latency, InstanceOf(), PlainSerializer(_latency), WithJsonSchema(LATENCY_SCHEMA)],
)
"""A latency as it is written; the schema has it under this name."""


class ResultCpu(FrozenModel):
    """CPU time of the load generator, kernel workers included, per I/O."""

    user_ns_per_io: float | None
    system_ns_per_io: float | None
    user_ns: int
    system_ns: int
    shared: bool = Field(description="true: other jobs ran at the same time, and have the same figures")


class ResultStats(FrozenModel):
    """Counts, rates and latencies over the measured time, ramps left out."""

    operations: int = Field(description="completed without error")
    bytes: int
    errors: int = Field(description="completed with an error; not among the operations")
    shorts: int = Field(description="moved fewer bytes than asked; among the operations")
    iops: float | None
    iops_error: float | None = Field(description="one standard error; null with under 5 intervals")
    bandwidth_bytes_per_s: float | None
    bandwidth_error: float | None
    latency_ns: LatencyNs | None = Field(description="from when an I/O should have started to its end")
    slat_ns: LatencyNs | None = Field(description="from its pick-up to the kernel")
    clat_ns: LatencyNs | None = Field(description="from the kernel's door to its reaping")
    wait_ns: LatencyNs | None = Field(description="how late the engine was: intended start to pick-up")


class ResultLine(ResultStats):
    """A line of the result: what was asked for together, and each operation that happened.

    Reads, writes and trims are asked for together. Of work in a tree only the operation that was
    asked for is in the line's own numbers; the opens, closes and writes on the way to it are not.
    Nor are a connection and its open and close.
    """

    name: str
    measured_s: float = Field(description="time in which at least one of its streams was measured")
    cpu: ResultCpu | None
    commit_ns: float | None = Field(
        default=None,
        description="mean time of a commit: the writes between two flushes, and the flush; null where "
        "nothing is flushed on the way, or several writes were in flight between two flushes",
    )
    read: ResultStats | None = None
    write: ResultStats | None = None
    trim: ResultStats | None = None
    sync: ResultStats | None = None
    mkdir: ResultStats | None = None
    rmdir: ResultStats | None = None
    create: ResultStats | None = None
    open: ResultStats | None = None
    close: ResultStats | None = None
    delete: ResultStats | None = None
    getattr: ResultStats | None = None
    setattr: ResultStats | None = None
    access: ResultStats | None = None
    copy_: ResultStats | None = Field(default=None, alias="copy")
    move: ResultStats | None = None
    connection: ResultStats | None = Field(
        default=None,
        description="from before a target is opened until it is closed, where a job does so again and again",
    )


class ResultPacing(FrozenModel):
    """What the schedule of one operation asked for in the measured time, and what was done."""

    op: OpName
    unit: Literal["ops", "bytes"]
    process: str = Field(
        description="linear: evenly spaced; poisson: random gaps; "
        "uniform: gaps drawn evenly up to twice their mean; spike: all of a second at its beginning"
    )
    asked_per_s: float = Field(description="mean of what was due, all clones together")
    achieved_per_s: float = Field(description="I/Os that failed included")
    held: bool = Field(description="false: it stayed below by more than 1 % and more than chance")


class ResultStage(FrozenModel):
    """How near a stage came to what the engine can do at most."""

    stage: int
    ceiling_iops: float
    iops: float | None
    share: float | None


class ResultTool(FrozenModel):
    """What measuring itself cost and how far the load generator was from its limit."""

    stages: list[ResultStage]
    share_of_ceiling: float | None = Field(description="of the stage that came nearest")
    user_ns_per_io_null: float | None = Field(description="engine's user time per I/O without a device")
    system_ns_per_io_null: float | None
    monitor_cpu_share: float | None = Field(description="of one CPU")
    monitors: dict[str, float] = Field(description="each monitor's reading, share of one CPU")
    skipped: str | None = Field(description="why there was no calibration")


class ResultVerified(FrozenModel):
    """Blocks that were read back and compared with what should be there."""

    checked: int = Field(description="blocks that could be judged, the damaged among them")
    damaged: int = Field(description="blocks that are not what was written, as often as they were read")
    unverified: int = Field(description="blocks of which nothing could be said")


class ResultJob(ResultLine):
    """A job section, all its clones together."""

    group: int
    stages: list[int]
    clones: int
    iodepth: list[int] = Field(description="each depth its clones have, once")
    backends: list[str] = Field(description="what really ran")
    pacing: list[ResultPacing] = Field(description="one for each operation with a rate")
    verified: ResultVerified | None = Field(description="null: it did not come to the end of checking")
    units: list[ResultLine] | None = Field(default=None, description="each clone, when they are kept apart")


class ResultGroup(ResultLine):
    """A reporting group."""

    group: int


class ResultHost(FrozenModel):
    """One host of a run on several."""

    name: str
    status: str = Field(description="as of the run, or `lost`")
    error: str | None
    ops: int = Field(description="completed without error, in the measured time")
    bytes: int
    errors: int
    iops: float | None
    iops_error: float | None
    bandwidth_bytes_per_s: float | None
    latency: LatencyNs | None
    cpu: ResultCpu | None = Field(description="of its load generator")
    start_skew_ns: int | None = Field(description="its first I/O after the first I/O of all")
    clock_offset_ns: int | None = Field(description="its wall clock minus the coordinator's")
    clock_error_ns: int | None = Field(description="bound of the error of the comparison of clocks")
    agent_cpu_share: float | None = Field(description="what its agent took of one CPU during the load")
    bundle: str | None = Field(description="its own bundle, below this one; null: it did not come")


class ResultStageLines(FrozenModel):
    """One stage of a run of several: jobs that ran at the same time, and their targets and hosts."""

    stage: int
    jobs: list[str]
    total: ResultLine
    targets: list[ResultLine]
    hosts: list[ResultLine]


class SpecLine(FrozenModel):
    """A figure of the data sheet, with all jobs that ran at the same time held against it."""

    name: str = Field(description="the job, or the jobs")
    op: Literal["read", "write", "mixed"]
    quantity: Literal["iops", "bytes_per_s"]
    kind: Literal["specified", "link"]
    measured: float
    measured_error: float | None
    specified: float
    share: float = Field(description="measured over specified")
    share_error: float | None = Field(description="one standard error, from the measurement alone")
    source: str


class ResultNote(FrozenModel):
    """Something the user should know that is not an error."""

    kind: str
    text: str
    where: str | None


class ResultError(FrozenModel):
    """One kind of failure, where it was first met and how often it was told."""

    kind: Literal[
        "io_error",
        "short",
        "hung",
        "damage",
        "rate_minimum",
        "latency",
        "fatal",
        "engine",
        "program",
        "bundle",
    ]
    message: str
    count: int
    t_ns: int | None
    target: str | None
    op: str | None
    offset_bytes: int | None
    errno: int | None


class ResultWatchedQuantity(FrozenModel):
    """One quantity of a watched host over the time of the load."""

    name: str = Field(description="in words")
    unit: Literal["percent", "bytes_per_s", "bytes", "per_s", "count", "celsius"]
    mean: float
    mean_error: float | None = Field(description="one standard error; null with under 5 rows")
    max: float = Field(description="the largest of the rows")


class ResultWatchGap(FrozenModel):
    """A time in which a watched host did not answer."""

    from_s: float = Field(description="since the first I/O")
    to_s: float | None = Field(description="null: it did not come back")
    why: str


class ResultWatched(FrozenModel):
    """A host that was watched, over the time of the load, ramps at its ends left out."""

    kind: Literal["ssh", "snmp", "http", "local"]
    url: str = Field(description="without secrets")
    host: str | None = Field(description="what it calls itself")
    system: str | None
    same_host: bool | None = Field(description="it is the machine that made the load; null: not known")
    seconds: float = Field(description="time that its rows stand for")
    rows: int
    gaps: list[ResultWatchGap] = Field(description="of the whole run")
    clock_offset_s: float | None = Field(description="how far its clock is ahead; null: it does not tell")
    clock_error_s: float | None = Field(description="how far that may be off")
    aligned_within_s: float | None = Field(description="error of the rows' times, of 95 % of them")
    cpu_share_here: float | None = Field(description="what watching took of a CPU of this host")
    cpu_share_there: float | None = Field(description="and of the watched one; null: not known")
    quantities: dict[str, ResultWatchedQuantity]


class ResultDocument(FrozenModel):
    """The result of one run."""

    format: Literal[1]
    loadstone_version: str
    bundle: str = Field(description="path of the bundle's directory")
    status: Literal["complete", "interrupted", "failed", "partial"]
    verified: bool | None = Field(
        description="every file is the one that was sealed; null: not sealed, false: read with --unverified"
    )
    exit_code: int | None = Field(description="docs/exit-codes.md; null for a run that was never sealed")
    started: str | None = Field(description="time of the first I/O, RFC 3339 in UTC")
    duration_s: float
    total: ResultLine
    groups: list[ResultGroup]
    jobs: list[ResultJob]
    targets: list[ResultLine]
    hosts: list[ResultHost] = Field(default=[], description="each host of a run on several")
    by_stage: list[ResultStageLines] = Field(
        default=[], description="each stage of a run of several; rates of all stages together have no meaning"
    )
    cpu: ResultCpu | None
    tool: ResultTool
    notes: list[ResultNote]
    errors: list[ResultError]
    spec: list[SpecLine] = Field(description="share of the data sheet that was reached; empty without one")
    watched: dict[str, ResultWatched] = Field(
        default={}, description="hosts named with --watch, by their names"
    )
    verdict: Verdict | None = Field(description="null: the result was not audited")
    phases: list[Phase] = Field(description="the verdict on each stage")


def schema() -> dict[str, Any]:
    """Return the JSON schema."""
    return ResultDocument.model_json_schema(mode="serialization")


def dump(document: ResultDocument) -> dict[str, Any]:
    """Return plain JSON; operations that did not happen have no key."""
    plain: dict[str, Any] = document.model_dump(mode="json", by_alias=True)
    lines = [plain["total"], *plain["groups"], *plain["jobs"], *plain["targets"]]
    for stage in plain["by_stage"]:
        lines += [stage["total"], *stage["targets"], *stage["hosts"]]
    for line in lines:
        for one in [line, *(line.get("units") or [])]:
            for name in (*OPS, "units"):
                if one.get(name, ...) is None:
                    del one[name]
    return plain
