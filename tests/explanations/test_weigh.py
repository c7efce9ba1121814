from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from loadstone.explanations.cells import cells_of, densities
from loadstone.explanations.choice import Candidate, entropy_bits, worth
from loadstone.explanations.job_facts import JobFacts
from loadstone.explanations.names import EXPLANATIONS, UNEXPLAINED, possible
from loadstone.explanations.open_questions import open_part, open_questions
from loadstone.explanations.predictions import ANY_DEPTH, IN_REGIMES, LEAST_ERROR, PLENTY, READINGS, REGIMES
from loadstone.explanations.readings import Probed, ProbeReading, Tried
from loadstone.explanations.strangeness import FAR, strangeness
from loadstone.explanations.weigh import at_a_limit, cause_named, hypotheses_of, weigh

READER = JobFacts(
    reads=True,
    writes=False,
    in_order=False,
    paced=False,
    depth=32,
    targets=1,
    partial=False,
    off_grid=False,
    repeats_payload=False,
    in_tree=False,
)


def probed(*readings: tuple[str, float, float]) -> Probed:
    made = tuple(
        ProbeReading(name=name, value=value, error=error, count=1000) for name, value, error in readings
    )
    tried = Tried(name="some", bundle="probes/001-some", seconds=1, written_bytes=0, result="", readings=made)
    return Probed(stage=0, budget_s=20, tried=(tried,), left_out=(), ended="")


def chances(told: Probed | None, job: JobFacts = READER) -> dict[str, float]:
    return {one.explanation.name: one.probability for one in weigh(job, told)}


def test_the_probabilities_are_of_all_that_can_hold_and_the_unexplained_is_always_among_them() -> None:
    found = chances(None)
    assert sum(found.values()) == pytest.approx(1)
    assert UNEXPLAINED in found
    assert not {"write_cache", "reduction", "shared_limit", "misaligned", "job_rate"} & set(found)


@pytest.mark.parametrize(
    ("readings", "name"),
    [
        (
            [
                ("depth.half", 0, 0.01),
                ("depth.twice", 0, 0.01),
                ("size.half", 0.693, 0.01),
                ("size.twice", -0.693, 0.01),
            ],
            "bandwidth_limit",
        ),
        (
            [
                ("depth.half", 0, 0.01),
                ("size.half", 0, 0.01),
                ("size.twice", 0, 0.01),
                ("one.evenness", -2, 0.1),
            ],
            "iops_limit",
        ),
        (
            [("depth.half", -0.69, 0.01), ("depth.twice", 0.66, 0.01), ("one.scaling", 0.98, 0.01)],
            "job_depth",
        ),
        ([("again.own", 1.8, 0.05), ("again.second", 1.7, 0.05), ("again.repeat", 0, 0.05)], "cache"),
        (
            [("longer.drop", -1.2, 0.02), ("longer.main", -1.2, 0.02), ("again.now", -1.0, 0.02)],
            "burst_credits",
        ),
        ([("generator.null", 0.05, 0.02)], "generator"),
        ([("run.dips", -1.4, 0.3), ("heartbeat.worst", 3.5, 0.2)], "background"),
    ],
)
def test_what_is_measured_as_a_part_would_make_it_is_named(
    readings: list[tuple[str, float, float]], name: str
) -> None:
    found = chances(probed(*readings))
    assert max(found, key=lambda one: found[one]) == name


def test_a_medium_at_its_own_bandwidth_and_a_limit_of_that_number_are_both_left() -> None:
    """Regression: each such medium was told to be limited by something else."""
    flat = [("depth.half", 0, 0.01), ("depth.twice", 0, 0.01), ("one.knee", 0.3, 0.05)]
    weighed = weigh(READER, probed(*flat, ("size.half", 0.69, 0.01), ("size.twice", -0.69, 0.01)))
    found = {one.explanation.name: one.probability for one in weighed}
    assert found["bandwidth_limit"] + found["medium"] > 0.9
    assert min(found["bandwidth_limit"], found["medium"]) > 0.2
    assert at_a_limit(weighed) > 0.9
    scaling = weigh(READER, probed(("depth.half", -0.69, 0.01), ("depth.twice", 0.66, 0.01)))
    assert at_a_limit(scaling) < 0.1


def test_a_generator_that_could_do_more_says_nothing_against_slow_storage() -> None:
    """Without a device it does a thousand times what a disk lets it: that is no sign of anything."""
    before, after = chances(None), chances(probed(("generator.null", PLENTY, 0.02)))
    assert after["medium"] >= before["medium"]
    assert after[UNEXPLAINED] <= before[UNEXPLAINED]
    assert strangeness(READER, probed(("generator.null", PLENTY, 0.02))) == 0


def test_the_storage_and_the_unexplained_are_no_cause_with_a_name() -> None:
    def named(*readings: tuple[str, float, float]) -> bool:
        return cause_named(hypotheses_of(READER, probed(*readings), {}, ()))

    assert not named()
    assert not named(("size.half", -1.4, 0.02), ("size.twice", 1.5, 0.02), ("position.end", 1.3, 0.02))
    assert named(("again.own", 1.8, 0.05), ("again.second", 1.7, 0.05), ("again.repeat", 0.0, 0.05))


def test_a_reading_with_a_large_error_tells_less() -> None:
    sure = chances(probed(("size.twice", -0.693, 0.01)))["bandwidth_limit"]
    unsure = chances(probed(("size.twice", -0.693, 0.8)))["bandwidth_limit"]
    before = chances(None)["bandwidth_limit"]
    assert sure > unsure > 0.5 * before


def test_what_nothing_predicts_is_unexplained_not_the_storage() -> None:
    found = chances(probed(("size.half", -1.4, 0.02), ("size.twice", 1.5, 0.02), ("position.end", 1.3, 0.02)))
    assert max(found, key=lambda one: found[one]) == UNEXPLAINED


def test_evidence_is_told_for_and_against_with_what_decided() -> None:
    seen = (("again.own", 1.8, 0.05), ("again.second", 1.7, 0.05), ("again.repeat", 0.0, 0.05))
    first = weigh(READER, probed(*seen))[0]
    assert first.decided_by == "some"
    assert any("6.05×" in text for text in first.for_)
    medium = next(
        one for one in weigh(READER, probed(("again.own", 1.8, 0.05))) if one.explanation.name == "medium"
    )
    assert medium.against
    assert not medium.for_


def test_a_finding_of_a_rule_raises_what_it_points_at_and_a_clear_one_lowers_it() -> None:
    before = chances(None)["generator"]
    found = {one.explanation.name: one for one in weigh(READER, None, {"generator_cpu": 0.9})}["generator"]
    clear = {one.explanation.name: one for one in weigh(READER, None, {}, ["generator_cpu"])}["generator"]
    assert found.probability > 3 * before > 3 * clear.probability
    assert found.for_ == ("generator_cpu was found with 90%",)


def test_the_probe_that_tells_most_per_second_comes_first() -> None:
    cells = hypotheses_of(READER, None, {}, ())
    told = worth(
        cells,
        [
            Candidate("little", 1.0, ("payload.own",)),
            Candidate("dear", 40.0, ("size.half", "size.twice")),
            Candidate("cheap", 2.0, ("size.half", "size.twice")),
        ],
    )
    bits = {one.candidate.name: one.bits for one in told}
    assert told[0].candidate.name == "cheap"
    assert bits["cheap"] == pytest.approx(bits["dear"])
    # What all known explanations predict alike tells them from the unknown only.
    assert bits["cheap"] > 3 * bits["little"] >= 0


def test_entropy_is_of_each_row() -> None:
    assert entropy_bits(np.array([[0.5, 0.5], [1.0, 0.0]])) == pytest.approx([1.0, 0.0])


def test_every_prediction_is_a_distribution_and_of_an_explanation_there_is() -> None:
    names = {one.name for one in EXPLANATIONS}
    every = [parts for row in READINGS.values() for parts in (row.others, *row.under.values())]
    every += [parts for regime in REGIMES.values() for parts in regime.values()]
    for parts in every:
        assert sum(weight for weight, _, _ in parts) == pytest.approx(1)
        assert all(deviation > 0 for _, _, deviation in parts)
    assert all(set(row.under) <= names for row in READINGS.values())
    for regimes in (ANY_DEPTH, *IN_REGIMES.values()):
        assert sum(weight for weight, _ in regimes) == pytest.approx(1)
        assert {name for _, name in regimes} <= set(REGIMES)
    assert set(IN_REGIMES) <= names


def test_nothing_is_said_of_work_on_files_by_name() -> None:
    assert possible(replace(READER, in_tree=True)) == ()
    assert weigh(replace(READER, in_tree=True)) == []


def test_others_on_the_cpus_cast_doubt_on_every_reading_of_a_probe() -> None:
    told = probed(("size.twice", -0.6, 0.02), ("turns.drift", 0.4, 0.02), ("run.dips", -1.0, 0.3))
    beside = with_taken(told, 0.8).beside_others(0.8)
    errors = {one.name: one.error for one in beside.tried[0].readings}
    assert errors.keys() == {"size.twice", "turns.drift"}
    assert errors["size.twice"] > 0.4 / 2  # what differs between its own ends differs between its arms
    assert with_taken(told, 0.0).beside_others(0.0) == with_taken(told, 0.0)
    assert strangeness(READER, told) > strangeness(READER, beside)


def test_two_targets_at_once_tell_nothing_where_others_take_the_cpus_that_serve_both() -> None:
    told = probed(("together.sum", -0.83, 0.1), ("depth.twice", 0.6, 0.1))
    beside = with_taken(told, 0.8).beside_others(0.8)
    assert [one.name for one in beside.tried[0].readings] == ["depth.twice"]
    alone = with_taken(told, 0.05).beside_others(0.05)
    assert [one.name for one in alone.tried[0].readings] == ["together.sum", "depth.twice"]


def test_what_one_load_differs_from_itself_beside_others_is_a_doubt_of_what_is_held_against_the_run() -> None:
    told = probed(("turns.drift", -2.9, 0.1), ("again.now", -2.0, 0.1), ("longer.main", -2.0, 0.1))
    first, second = told.tried[0], told.tried[0]
    made = told.model_copy(
        update={
            "tried": (
                first.model_copy(update={"taken": 0.7, "readings": first.readings[:2]}),
                second.model_copy(update={"taken": 0.7, "readings": second.readings[2:]}),
            )
        }
    ).beside_others(0.7)
    (now,) = [one for one in made.tried[0].readings if one.name == "again.now"]
    (longer,) = made.tried[1].readings
    assert now.error > 2.9
    assert longer.error > 2.9
    chances = {one.explanation.name: one.probability for one in weigh(READER, made)}
    assert chances["burst_credits"] < 0.2


def test_a_probe_on_another_host_than_the_run_is_not_held_against_the_run() -> None:
    told = probed(("again.now", -0.9, 0.02), ("again.second", 0.0, 0.02))
    alike, other = (with_taken(told, taken).beside_others(0.1) for taken in (0.1, 0.8))
    assert [one.name for one in alike.tried[0].readings] == ["again.now", "again.second"]
    assert [one.name for one in other.tried[0].readings] == ["again.second"]


def test_a_probe_beside_others_is_not_held_against_a_run_that_nobody_watched() -> None:
    told = probed(("again.now", -2.4, 0.3), ("depth.half", 0.0, 0.05))
    starved = with_taken(told, 0.95).beside_others(None)
    assert [one.name for one in starved.tried[0].readings] == ["depth.half"]
    alone = with_taken(told, 0.02).beside_others(None)
    assert [one.name for one in alone.tried[0].readings] == ["again.now", "depth.half"]


def with_taken(told: Probed, taken: float) -> Probed:
    return told.model_copy(update={"tried": (told.tried[0].model_copy(update={"taken": taken}),)})


def test_one_reading_that_the_storage_does_not_make_is_strange_however_many_it_does() -> None:
    usual = [("depth.twice", 0.3, 0.02), ("again.own", 0.01, 0.03), ("longer.drop", 0.0, 0.02)]
    assert strangeness(READER, probed(*usual)) == 0
    for name, value in (("again.own", 0.5), ("written.read", -1.5), ("again.tiny", -1.5), ("run.dips", -0.7)):
        assert strangeness(READER, probed(*usual, (name, value, 0.03))) >= FAR, name
    assert strangeness(READER, probed(*usual, ("run.dips", -8.0, 0.3))) == 0


@pytest.mark.parametrize(
    ("changes", "readings", "settled"),
    [
        ({}, [("contents.zeros", 1.0, 0.02)], ("written.read", 0.0, 0.05)),
        ({"off_grid": True}, [], ("aligned.own", 0.0, 0.05)),
        ({"writes": True, "repeats_payload": True}, [], ("payload.own", 0.0, 0.05)),
        ({"partial": True}, [], ("position.end", 0.0, 0.05)),
        ({"targets": 2}, [], ("together.sum", 0.0, 0.05)),
    ],
)
def test_what_is_particular_to_a_job_is_an_open_question_until_a_reading_settles_it(
    changes: dict[str, Any], readings: list[tuple[str, float, float]], settled: tuple[str, float, float]
) -> None:
    job = replace(READER, **changes)
    assert len(open_questions(job, probed(*readings))) == 1
    assert open_part(job, probed(*readings)) == 1
    assert open_questions(job, probed(*readings, settled)) == {}
    vague = (settled[0], settled[1], 0.5)
    assert open_part(job, probed(*readings, vague)) == 1


def test_a_span_that_holds_something_and_a_plain_job_have_no_open_question() -> None:
    assert open_questions(READER, probed(("contents.zeros", 0.0, 0.02), ("again.tiny", 0.0, 0.02))) == {}
    assert open_part(READER, probed(("contents.zeros", 0.25, 0.05))) == 0.25
    assert open_part(READER, None) == 0


def test_a_cache_that_answers_a_tiny_span_is_a_question_until_its_part_is_known_to_be_small() -> None:
    """Seed 191395: 0.73 ± 0.74 on its own addresses and 1.3 times on 1 MiB was believed with 95 %."""
    assert open_part(READER, probed(("again.tiny", 0.26, 0.19), ("again.own", 0.73, 0.74))) == 1
    assert open_part(READER, probed(("again.tiny", 2.4, 0.06), ("again.own", 0.16, 0.06))) == 1
    assert open_part(READER, probed(("again.tiny", 2.4, 0.06), ("again.own", 0.0, 0.03))) == 0
    assert open_part(READER, probed(("again.tiny", 0.0, 0.06), ("again.own", 0.1, 0.08))) == 0


def test_what_reads_ahead_is_a_question_where_reads_at_random_are_slower() -> None:
    """Reads of 4 KiB in order through a server's cache of 64 KiB: at random 0.17 times the rate."""
    job = replace(READER, in_order=True)
    assert open_part(job, probed(("order.random", math.log(0.17), 0.3))) == pytest.approx(0.83)
    assert list(open_questions(job, probed(("order.random", math.log(0.17), 0.3)))) == [
        "what of its rate is due to reading ahead of its order"
    ]
    assert open_part(job, probed(("order.random", -0.1, 0.05))) == 0
    assert open_part(job, probed(("order.random", -0.5, 0.4))) == 0
    assert open_part(job, probed()) == 0


def test_densities_are_the_sum_of_their_parts() -> None:
    cells = cells_of(possible(READER))
    values = np.array([-0.7, 0.0, 1.3])
    told, anything = densities(cells, "again.tiny", values, 0.05)
    assert told.shape == (len(cells.every), 3)
    spread = [math.hypot(deviation, 0.05, LEAST_ERROR) for deviation in (0.2, 0.7)]
    at = next(at for at, one in enumerate(cells.every) if one.name == "cache")
    by_hand = [
        0.7 * math.exp(-((value / spread[0]) ** 2) / 2) / (spread[0] * math.sqrt(2 * math.pi))
        + 0.3 * math.exp(-(((value - 0.7) / spread[1]) ** 2) / 2) / (spread[1] * math.sqrt(2 * math.pi))
        for value in values
    ]
    assert told[at] == pytest.approx(by_hand)
    assert anything[1] == pytest.approx(1 / (math.hypot(1.2, 0.05) * math.sqrt(2 * math.pi)))
