"""What a verdict says after probes, where they left something open."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from loadstone.audit.belief import CREDIBLE, DECIDE
from loadstone.audit.explained import AfterProbes, as_told, with_explanations
from loadstone.audit.judge import in_order, judge_case
from loadstone.audit.rule import Finding, Rule
from loadstone.audit.rules.probes import judge as judge_probes
from loadstone.explanations.job_facts import JobFacts
from loadstone.explanations.names import BY_NAME, UNEXPLAINED
from loadstone.explanations.readings import Probed, ProbeReading, Tried
from loadstone.explanations.weights import FITTED
from loadstone.verdict import Cause, Verdict
from tests.audit.cases import run

if TYPE_CHECKING:
    from loadstone.verdict import Effect, RuleName

READS = JobFacts(
    reads=True, writes=False, in_order=False, paced=False, depth=16, targets=1,
    partial=False, off_grid=False, repeats_payload=False, in_tree=False,
)  # fmt: skip
ALL_AGREE = {
    **dict.fromkeys(("size.half", "size.twice", "again.own", "again.second", "again.repeat"), 0.0),
    **dict.fromkeys(("again.tiny", "longer.drop", "longer.main"), 0.0),
    "depth.half": -0.69,
    "depth.twice": 0.69,
    "one.scaling": 1.0,
}


def after(zeros: float, name: str = "run", **readings_by_name: float) -> Verdict:
    """Seed 191303: what all readings say of a device that was never written, and how many zeros it gave."""
    readings = tuple(
        ProbeReading(name=name, value=value, error=0.02, count=1000)
        for name, value in (ALL_AGREE | {"contents.zeros": zeros} | readings_by_name).items()
    )
    tried = Tried(name="all", bundle="probes/001", seconds=9, written_bytes=0, result="", readings=readings)
    probed = Probed(stage=0, budget_s=20, tried=(tried,), left_out=(), ended="")
    plain = Verdict(
        kind="measures_storage", limited_by=None, confidence=0.7, sentences="", causes=(), missing=(),
        checked=("throttled", "short_stroke", "time_structure"), advice=(),
    )  # fmt: skip
    case = replace(run(job_facts=READS, probed=probed), name=name)
    return with_explanations(plain, case, AfterProbes.of(plain, case))


def test_blocks_of_nothing_but_zeros_are_named_as_what_no_probe_showed() -> None:
    """Regression: without an explanation for them, such reads were believed with 99 %."""
    full, empty = after(0.0), after(1.0)
    assert full.kind == "measures_storage"
    assert full.confidence > 0.9
    assert "No probe showed" not in full.sentences
    assert empty.confidence < 0.7 or empty.kind == "cannot_tell"
    assert empty.sentences.endswith(
        "No probe showed whether the blocks of zeros that it read were ever stored."
    )


def test_the_load_of_several_jobs_begins_a_sentence_or_stands_in_it() -> None:
    """Regression: `Cannot tell whether The load of a, b measures` and `whether a and others measures`."""
    agreed, open_ = after(0.0, "a, b"), after(1.0, "a and others", **{"again.tiny": 2.0, "depth.half": 0.0})
    assert agreed.sentences.startswith("The load of a, b measures the storage")
    assert open_.sentences.startswith("Cannot tell whether the load of a and others measures the storage.")


def test_what_probes_alone_point_at_is_as_sure_as_it_is_with_all_evidence() -> None:
    """Regression: beside a rule that had decided, 98 % were told of what was right 7 times in 12."""
    readings = tuple(
        ProbeReading(name=name, value=value, error=0.02, count=1000)
        for name, value in (("run.dips", -1.4), ("heartbeat.worst", 3.5))
    )
    tried = Tried(name="all", bundle="probes/001", seconds=9, written_bytes=0, result="", readings=readings)
    probed = Probed(stage=0, budget_s=20, tried=(tried,), left_out=(), ended="")
    case = run(job_facts=READS, probed=probed)
    alone = judge_probes(case)
    assert isinstance(alone, tuple)
    quota = Cause(
        rule="generator_cpu", confidence=0.96, effect="limited", layer="the load generator", text="",
        evidence={}, advice="", about="run",
    )  # fmt: skip
    points = quota.model_copy(
        update={
            "rule": "probes",
            "confidence": alone[0].confidence,
            "evidence": alone[0].evidence,
        }
    )
    plain = Verdict(
        kind="limited", limited_by="the load generator", confidence=0.96, sentences="",
        causes=(quota, points), missing=(), checked=("throttled", "short_stroke"), advice=(),
    )  # fmt: skip
    evidence = AfterProbes.of(plain, case)
    told = as_told(plain.causes, evidence)
    listed = with_explanations(plain.model_copy(update={"causes": tuple(told)}), case, evidence)
    chances = {one.says: one.probability for one in listed.explanations}
    assert told[0] == quota
    assert told[1].confidence == round(chances[str(alone[0].evidence["points_at"])], 2)
    assert told[1].confidence != alone[0].confidence


def test_a_suspicion_with_a_name_comes_before_one_that_has_none() -> None:
    """Regression: *something unexplained* with 68 % hid that reads stayed within a part of the device."""
    named = Cause(
        rule="short_stroke", confidence=0.5, effect="suspect", layer="the device", text="", evidence={},
        advice="", about="run",
    )  # fmt: skip
    nameless = named.model_copy(
        update={"rule": "probes", "confidence": 0.68, "evidence": {"points_at": BY_NAME[UNEXPLAINED].says}}
    )
    deciding = nameless.model_copy(update={"rule": "throttled", "effect": "limited"})
    assert in_order([nameless, named, deciding]) == [deciding, named, nameless]


RARELY_RIGHT = [
    (key.split(), share)
    for key, share in FITTED.findings.items()
    if share < CREDIBLE and key.split()[1] in DECIDE
]


@pytest.mark.parametrize(("sort", "share"), RARELY_RIGHT, ids=[" ".join(sort) for sort, _ in RARELY_RIGHT])
def test_a_finding_that_was_rarely_right_decides_nothing(sort: list[str], share: float) -> None:
    """Regression: `limited by something above vda (confidence 12 %)`."""
    rule, effect, sure = sort
    finding = Finding(
        effect=cast("Effect", effect), confidence=float(sure), text="A limit.", evidence={}, advice="",
        layer="the device",
    )  # fmt: skip
    asked = [Rule(name=cast("RuleName", rule), asks="?", basis="", judge=lambda _: (finding,))]
    own = judge_case(run(), asked)
    assert own.kind not in DECIDE
    assert [(one.effect, one.confidence) for one in own.causes] == [("suspect", share)]
    # How often such findings are right of other people's results was not counted.
    assert judge_case(replace(run(), source="fio"), asked).kind == effect
