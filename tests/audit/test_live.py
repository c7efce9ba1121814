"""Some of the labelled runs of `make verdicts`, with real parts: the quick ones of each kind."""

from __future__ import annotations

import pytest
from lab.verdicts.scenarios import SCENARIOS, Scenario
from lab.verdicts.score import BUSY, STOLEN, score

from lab import parts
from tests.e2e.program import needs_engine

LIES = (
    "loop_through_the_page_cache",
    "holes_below_a_loop",
    "data_in_the_journal",
    "one_hang",
    "stalls_at_regular_times",
    "stopped_generator",
    "think_time",
    "cached_reads",
    "sparse_disk",
    "zeros_on_zram",
    "cgroup_read_iops",
    "second_reader",
    "too_short",
    "compressed_reads_in_memory",
    "sixteen_pieces",
    "never_written_zram",
    "a_third_fails",
)
HONEST = ("paced_reads", "slow_random_reads", "small_depth_of_a_long_queue")

ABSENT = parts.missing()
pytestmark = [
    pytest.mark.serial,
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(ABSENT is not None, reason=f"cannot stage parts: {ABSENT}"),
]


def chosen(names: tuple[str, ...]) -> list[Scenario]:
    found = {one.name: one for one in SCENARIOS}
    return [found[name] for name in names]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("scenario", chosen(LIES), ids=lambda one: one.name)
def test_a_lie_is_named(scenario: Scenario) -> None:
    needs_engine()
    scored = score(scenario)
    if scored.absent is not None:
        pytest.skip(scored.absent)
    assert scored.verdict is not None
    assert scored.named, scored.verdict.sentences
    assert scored.verdict.kind != "measures_storage"


@pytest.mark.drawn(1)
@pytest.mark.parametrize("scenario", chosen(HONEST), ids=lambda one: one.name)
def test_an_honest_run_is_not_accused(scenario: Scenario) -> None:
    needs_engine()
    scored = score(scenario)
    assert scored.verdict is not None
    if scored.busy:
        others = f"others used {100 * BUSY:.0f} % of the CPUs or the hypervisor took {100 * STOLEN:.0f} %"
        pytest.skip(f"{others} or more, which is a finding by itself")
    assert scored.passed, scored.verdict.sentences


def test_labels_are_enough_and_are_named_once() -> None:
    assert len({one.name for one in SCENARIOS}) == len(SCENARIOS)
    assert sum(one.expected is not None for one in SCENARIOS) >= 20
    assert sum(one.expected is None for one in SCENARIOS) >= 10
