"""What is written is what is read, and cycles keep their rules, for any configuration."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadstone.errors import LoadstoneError, Where
from loadstone.formats.iometer import CommandLineChanges, read_icf, runs
from loadstone.formats.iometer.run_cycle import steps
from loadstone.formats.iometer.setup import TEST_TYPES, Cycling, Setup
from tests.support.work import rows_of

NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters=",\"'", exclude_categories=("C", "Z")),
    min_size=1,
    max_size=12,
).filter(lambda name: name.lower() != "idle" and not name.lower().startswith("version"))
SIZES = st.integers(1, 4096).map(lambda sectors: 512 * sectors)
PERCENT = st.integers(0, 100)


@dataclass(frozen=True)
class Line:
    size: int
    percent: int
    read: int
    random: int
    burst: int
    align: int


@dataclass(frozen=True)
class DrawnWorker:
    name: str
    depth: int
    transactions: int | None
    """Of each connection; None: its rate is not tested."""
    spec: int
    targets: tuple[str, ...]


@st.composite
def lines(draw: st.DrawFn) -> list[Line]:
    """Up to six lines that add up to 100 %."""
    cuts = sorted(draw(st.sets(st.integers(1, 99), max_size=5)))
    shares = [high - low for low, high in zip([0, *cuts], [*cuts, 100], strict=True)]
    return [
        Line(
            draw(SIZES),
            share,
            draw(PERCENT),
            draw(PERCENT),
            draw(st.integers(1, 64)),
            draw(st.just(0) | SIZES),
        )
        for share in shares
    ]


SPECS = st.lists(st.tuples(NAMES, lines()), min_size=1, max_size=3, unique_by=lambda spec: spec[0].lower())
WORKERS = st.lists(
    st.builds(
        DrawnWorker,
        NAMES,
        st.integers(1, 256),
        st.none() | st.integers(1, 2**31 - 1),
        st.integers(0, 2),
        st.lists(
            NAMES.map(lambda name: f"/dev/mapper/d{name.replace('/', '_').replace('[', '(')}"),
            min_size=1,
            max_size=3,
            unique=True,
        ).map(tuple),
    ),
    min_size=1,
    max_size=3,
)


def written(
    specs: list[tuple[str, list[Line]]], workers: list[DrawnWorker], seconds: int, newline: str
) -> bytes:
    text = ["Version 1.1.0 ", "'TEST SETUP ====", "'Run Time", "'\thours minutes seconds", f"\t0 0 {seconds}"]
    text += ["'END test setup", "'ACCESS SPECIFICATIONS ===="]
    for name, rows in specs:
        text += ["'Access specification name,default assignment", f"\t{name},NONE"]
        text += ["'size,% of size,% reads,% random,delay,burst,align,reply"]
        text += [f"\t{r.size},{r.percent},{r.read},{r.random},0,{r.burst},{r.align},0" for r in rows]
    text += ["'END access specifications", "'MANAGER LIST ====", "'Manager ID, manager name", "\t1,host"]
    text += ["'Manager network address", "\t"]
    for worker in workers:
        text += [
            "'Worker",
            f"\t{worker.name}",
            "'Worker type",
            "\tDISK",
            "'Default target settings for worker",
        ]
        text += ["'Number of outstanding IOs,test connection rate,transactions per connection"]
        rate = f"ENABLED,{worker.transactions}" if worker.transactions else "DISABLED,1"
        text += [f"\t{worker.depth},{rate}", "'End default target settings for worker"]
        text += [
            "'Assigned access specs",
            f"\t{specs[worker.spec % len(specs)][0]}",
            "'End assigned access specs",
        ]
        text += ["'Target assignments"]
        for target in worker.targets:
            text += ["'Target", f"\t{target}", "'Target type", "\tDISK", "'End target"]
        text += ["'End target assignments", "'End worker"]
    text += ["'End manager", "'END manager list", "Version 1.1.0 ", ""]
    return newline.join(text).encode()


@pytest.mark.in_turn
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(SPECS, WORKERS, st.integers(1, 10**6), st.sampled_from(["\n", "\r\n"]))
def test_what_is_written_is_what_is_run(
    specs: list[tuple[str, list[Line]]], workers: list[DrawnWorker], seconds: int, newline: str
) -> None:
    (run,) = runs(read_icf(written(specs, workers, seconds, newline), "made.icf"))
    jobs = iter(run.workload.jobs)
    for worker in workers:
        name, rows = specs[worker.spec % len(specs)]
        for target in worker.targets:
            job = next(jobs)
            assert (job.engine.iodepth, job.limits.runtime_ns) == (worker.depth, seconds * 10**9)
            assert (job.placement.targets[0].path, job.own_options["worker"]) == (target, worker.name)
            assert job.own_options["access_specification"] == name
            assert job.engine.ios_per_connection == worker.transactions
            found = [(r.bytes, r.percent, r.read_percent, r.random_percent, r.burst) for r in rows_of(job)]
            assert found == [(r.size, r.percent, r.read, r.random, r.burst) for r in rows]
            assert [r.align_bytes for r in rows_of(job)] == [r.align or None for r in rows]
    assert next(jobs, None) is None


CYCLING = st.builds(Cycling, st.integers(1, 5), st.integers(1, 4), st.booleans(), st.integers(1, 40))


@pytest.mark.in_turn
@settings(max_examples=300)
@given(
    st.sampled_from(TEST_TYPES),
    CYCLING,
    CYCLING,
    CYCLING,
    st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 2)), st.integers(1, 6), min_size=1),
)
def test_cycles_grow_and_end(
    kind: str, workers: Cycling, targets: Cycling, depth: Cycling, whole: dict[tuple[int, int], int]
) -> None:
    setup = Setup(workers=workers, targets=targets, depth=depth, test_type=kind)
    found = steps(setup, dict(sorted(whole.items())), Where("made"))
    for step in found:
        assert all(0 < count <= whole[place] for place, count in step.active.items())
        assert (step.depth is not None) == ("OUTSTANDING" in kind)
    if kind == "CYCLE_OUTSTANDING_IOS":
        depths = [step.depth or 0 for step in found]
        assert depths == sorted(set(depths))
        assert all(value <= (depth.end or 0) for value in depths)
        assert bool(depths) == (depth.start <= (depth.end or 0))
    elif kind in ("CYCLE_TARGETS", "CYCLE_WORKERS", "INCREMENT_TARGETS_PARALLEL", "INCREMENT_TARGETS_SERIAL"):
        counts = [sum(step.active.values()) for step in found]
        assert counts == sorted(set(counts))
        if not (workers if kind == "CYCLE_WORKERS" else targets).exponential:
            assert counts[-1] == sum(whole.values())
    elif kind == "NORMAL":
        assert [step.active for step in found] == [whole]


@pytest.mark.in_turn
@settings(max_examples=300)
@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: f"Version 1.1.0\n{text}".encode()))
def test_anything_else_is_refused_or_empty(source: bytes) -> None:
    try:
        configuration = read_icf(source, "x")
        if configuration.managers or configuration.specs:
            runs(configuration, CommandLineChanges(targets=("/x",), runtime_ns=1))
    except LoadstoneError as error:
        place = error.where
    else:
        place = Where("x")
    assert place is not None
