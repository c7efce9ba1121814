"""From the rules' answers to a verdict.

Knows how answers weigh against each other, which finding explains which, and words.

Of one phase: a finding that makes the number invalid goes before one that names a limit, and
that before anything essential that is missing; what is left measures the storage. Of a whole
result: the phase that is worst off decides, because a number nobody should use must be seen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from loadstone.audit import belief
from loadstone.audit.belief import CREDIBLE, DECIDE, EVEN
from loadstone.audit.explained import (
    REMAINS,
    AfterProbes,
    as_told,
    capital,
    of_phases,
    subject,
    with_explanations,
)
from loadstone.audit.rule import CannotTell, Clear, Finding, cannot_tell
from loadstone.audit.rules import RULES
from loadstone.explanations.names import BY_NAME, UNEXPLAINED
from loadstone.messages import say
from loadstone.verdict import Audited, Cause, Kind, Missing, Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from loadstone.audit.case import Case
    from loadstone.audit.rule import Rule
    from loadstone.verdict import RuleName

ENOUGH: Final = 3
"""Fewer rules than this that had anything to look at are no ground to believe a number."""
MUCH_LESS: Final = 0.201
"""A reason this much less sure than a suspicion does not take it away."""
GRAVE: Final = 0.85
"""One suspicion this sure leaves the verdict open, however many rules found nothing."""
WORST_FIRST: Final[tuple[Kind, ...]] = ("not_valid", "cannot_tell", "limited", "measures_storage")
EXPLAINED_BY: Final[Mapping[RuleName, tuple[RuleName, ...]]] = {
    "depth_not_reached": (
        "page_cache_read",
        "writeback_absorbed",
        "unwritten_region",
        "io_errors",
        "throttled",
        "generator_cpu",
    ),
    "generator_cpu": ("page_cache_read",),
    "layer_flows": ("io_errors",),
    "not_steady": (
        "time_structure",
        "generator_stopped",
        "throttled",
        "foreign_load",
        "generator_cpu",
        "page_cache_read",
        "writeback_absorbed",
        "first_pass_allocation",
        "unwritten_region",
        "io_errors",
        "too_few_samples",
    ),
    "own_limit": (
        "page_cache_read",
        "writeback_absorbed",
        "unwritten_region",
        "io_errors",
    ),
    "page_cache_read": ("io_errors",),
    "rate_not_reached": (
        "throttled",
        "generator_cpu",
        "foreign_load",
        "io_errors",
    ),
    "resized_on_path": (
        "page_cache_read",
        "writeback_absorbed",
        "unwritten_region",
        "foreign_load",
        "reducible_payload",
    ),
    "throttled": (
        "page_cache_read",
        "writeback_absorbed",
        "foreign_load",
        "io_errors",
    ),
    "time_structure": (
        "generator_stopped",
        "generator_cpu",
        "io_errors",
        "foreign_load",
        "page_cache_read",
        "writeback_absorbed",
        "unwritten_region",
        "first_pass_allocation",
        "layer_flows",
    ),
    "too_few_samples": ("io_errors",),
    "workload_drift": (
        "io_errors",
        "rate_not_reached",
    ),
    "writeback_absorbed": ("io_errors",),
}
"""What these rules find may be the reason for what the one before the colon sees. Then its findings
are told and decide nothing: one cause is not two."""


def judge_case(case: Case, rules: Sequence[Rule] = RULES) -> Verdict:
    """Ask every rule about one case; each finding is told as sure as it turned out to be.

    How often findings are right was seen on runs of our own: other people's results rest on other figures.
    """
    verdict = as_found(case, rules)
    return told(verdict) if case.source == "bundle" else verdict


def told(verdict: Verdict) -> Verdict:
    """Return a verdict with the confidence of findings as often as such ones were right."""
    deciding = _deciding(verdict.causes)
    decides = deciding is not None and verdict.kind in DECIDE
    sure = belief.turned_out(deciding) if decides and deciding is not None else verdict.confidence
    causes = tuple(one.model_copy(update={"confidence": belief.turned_out(one)}) for one in verdict.causes)
    return verdict.model_copy(update={"causes": causes, "confidence": round(sure, 2)})


def as_found(case: Case, rules: Sequence[Rule] = RULES) -> Verdict:
    """Ask every rule about one case; findings are as sure as their rules make them."""
    causes: list[Cause] = []
    missing: list[Missing] = []
    checked: list[RuleName] = []
    nothing = _nothing_measured(case)
    if nothing is not None:
        missing.append(_missing("too_few_samples", nothing, case))
    for rule in rules if case.began else ():
        if not rule.looks_at(case):
            continue
        answer = rule.judge(case)
        if isinstance(answer, tuple):
            causes += [_cause(rule, finding, case) for finding in answer]
        elif isinstance(answer, CannotTell):
            # Where nothing was measured, what else is missing follows from that.
            essential = answer.essential and nothing is None
            missing.append(_missing(rule.name, replace(answer, essential=essential), case))
        elif isinstance(answer, Clear):
            checked.append(rule.name)
    causes = _explained(causes)
    if case.source == "bundle":
        causes = [_unless_rarely_right(one) for one in causes]
    verdict = _of_case(case, causes, missing, tuple(checked))
    if nothing is not None:
        return verdict
    evidence = AfterProbes.of(verdict, case)
    causes = as_told([_unless_refuted(cause, evidence) for cause in verdict.causes], evidence)
    return with_explanations(_of_case(case, causes, missing, tuple(checked)), case, evidence)


def _of_case(
    case: Case, causes: Sequence[Cause], missing: list[Missing], checked: tuple[RuleName, ...]
) -> Verdict:
    verdict = _verdict(case.name, in_order(causes), missing, checked)
    return verdict.model_copy(update={"layers": case.layers, "time": case.time})


def _unless_rarely_right(cause: Cause) -> Cause:
    """Let a finding be a suspicion where such ones were right less often than not."""
    if cause.effect in DECIDE and belief.turned_out(cause) < CREDIBLE:
        return cause.model_copy(update={"effect": "suspect"})
    return cause


def _unless_refuted(cause: Cause, evidence: AfterProbes | None) -> Cause:
    """Let a finding decide nothing where it and all else together say otherwise.

    A plateau, where no limiter is among what remains; what probes alone point at, where the storage is as
    probable as all else together.
    """
    if evidence is None or evidence.measures is None:
        return cause
    plateau = belief.rests_on_evenness(cause) and evidence.chance_of(cause.rule) < REMAINS
    if plateau or (cause.rule == "probes" and evidence.measures >= EVEN):
        return cause.model_copy(update={"effect": "note"})
    return cause


def _nothing_measured(case: Case) -> CannotTell | None:
    """Return why there is no number at all; None where there is one."""
    if case.total.operations or case.total.iops is not None or case.total.bandwidth is not None:
        return None
    if not case.began:
        return cannot_tell("verdict.not_begun", essential=True)
    if case.total.latency is not None:
        return cannot_tell("verdict.no_rate", essential=True)
    if case.ramp_ios:
        key = "verdict.only_search" if case.searched_depth else "verdict.only_ramp"
        return cannot_tell(key, essential=True, ramp_ios=case.ramp_ios)
    return cannot_tell("verdict.nothing_completed", essential=True)


def judge(cases: Sequence[Case], rules: Sequence[Rule] = RULES) -> Audited:
    """Return the verdict on a whole result, and on each of its phases in order."""
    phases = tuple(Phase(name=case.name, verdict=judge_case(case, rules)) for case in cases)
    if not phases:
        nothing = _missing("too_few_samples", cannot_tell("verdict.no_measurement", essential=True), None)
        return Audited(verdict=_verdict("the run", [], [nothing], ()), phases=())
    if len(phases) == 1:
        return Audited(verdict=phases[0].verdict, phases=phases)
    counted = [one for case, one in zip(cases, phases, strict=True) if not _decided_elsewhere(case, one)]
    kind = min((one.verdict.kind for one in counted), key=WORST_FIRST.index)
    many = [one for one in phases if one.verdict.kind == kind]
    # What is wrong is told where it is surest, what is believed where that is least sure.
    worst = min(many, key=lambda one: one.verdict.confidence * (1 if kind == "measures_storage" else -1))
    causes = tuple(cause for one in phases for cause in one.verdict.causes)
    clear = set.intersection(*(set(one.verdict.checked) for one in phases))
    alike = len(many) == len(phases)
    least = "verdict.sentence.all_least" if kind == "measures_storage" else "verdict.sentence.all_most"
    where = least if alike else "verdict.sentence.some"
    worst_verdict = worst.verdict
    verdict = Verdict(
        kind=worst_verdict.kind,
        limited_by=worst_verdict.limited_by,
        confidence=worst_verdict.confidence,
        sentences=say(where, worst=len(many), phases=len(phases), sentences=worst_verdict.sentences),
        causes=tuple(in_order(causes)),
        missing=tuple(one for phase in phases for one in phase.verdict.missing),
        checked=tuple(rule.name for rule in rules if rule.name in clear),
        advice=tuple(dict.fromkeys(text for one in phases for text in one.verdict.advice)),
        layers=worst_verdict.layers,
        time=worst_verdict.time,
        **of_phases([one.verdict for one in phases], worst_verdict),
    )
    return Audited(verdict=verdict, phases=phases)


def _decided_elsewhere(case: Case, phase: Phase) -> bool:
    """Tell whether a doubt about one host decides nothing, as a finding decides on all of them.

    So it is within one case, too: what limits goes before what is suspected.
    """
    essential = any(one.essential for one in phase.verdict.missing)
    return case.sum_decided and phase.verdict.kind == "cannot_tell" and not essential


def _explained(causes: list[Cause]) -> list[Cause]:
    """Let a finding decide nothing when another one is the reason for it.

    What decides gives way only to what decides, too, and is as sure; a suspicion to any reason
    that is not much less sure.
    """
    credible = [one for one in causes if one.confidence >= CREDIBLE and one.effect != "note"]
    decisive = [one for one in credible if one.effect != "suspect"]

    def explained(one: Cause) -> bool:
        if one.effect == "suspect":
            near = (reason for reason in credible if reason.confidence >= one.confidence - MUCH_LESS)
            return any(reason.rule in EXPLAINED_BY.get(one.rule, ()) for reason in near)
        surer = (reason for reason in decisive if reason.confidence >= one.confidence)
        return any(reason.rule in EXPLAINED_BY.get(one.rule, ()) for reason in surer)

    return [one.model_copy(update={"effect": "note"}) if explained(one) else one for one in causes]


def _cause(rule: Rule, finding: Finding, case: Case) -> Cause:
    return Cause(
        rule=rule.name,
        confidence=finding.confidence,
        effect=finding.effect,
        layer=finding.layer,
        text=finding.text,
        evidence=finding.evidence,
        advice=finding.advice,
        chart=finding.chart,
        about=_about(finding, case),
    )


def _about(finding: Finding, case: Case) -> str:
    """Return the job or phase; jobs of one name run on several hosts."""
    if finding.job is None:
        return case.name
    return finding.job if case.of_host is None else f"{case.of_host}: {finding.job}"


def _deciding(causes: Sequence[Cause]) -> Cause | None:
    return next((cause for cause in causes if _weight(cause) < 2), None)


def in_order(causes: Iterable[Cause]) -> list[Cause]:
    """Return causes as they are told: what decides first, then the surest."""
    return sorted(causes, key=lambda cause: (_weight(cause), _has_no_name(cause), -cause.confidence))


def _has_no_name(cause: Cause) -> bool:
    """Tell whether probes found that no explanation fits: what has a name says more, however sure that is."""
    return cause.rule == "probes" and cause.evidence.get("points_at") == BY_NAME[UNEXPLAINED].says


def _weight(cause: Cause) -> int:
    """Order causes: what decides first, and what is told only because it was seen last."""
    if cause.confidence < CREDIBLE:
        return 4
    return ("not_valid", "limited", "suspect", "note").index(cause.effect)


def _verdict(
    name: str, causes: list[Cause], missing: list[Missing], checked: tuple[RuleName, ...]
) -> Verdict:
    it = subject(name)
    deciding = _deciding(causes)
    essential = [one for one in missing if one.essential]
    suspects = [cause for cause in causes if cause.effect == "suspect" and cause.confidence >= CREDIBLE]
    advice = [cause.advice for cause in causes if cause.effect != "note" and cause.confidence >= CREDIBLE]
    kind: Kind
    if deciding is not None:
        kind = "not_valid" if deciding.effect == "not_valid" else "limited"
        confidence = deciding.confidence
        layer = deciding.layer or say("verdict.sentence.unnamed_layer")
        first = (
            say("verdict.sentence.not_valid", it=capital(it))
            if kind == "not_valid"
            else say("verdict.sentence.limited", it=capital(it), layer=layer)
        )
        sentences = f"{first} {deciding.text}"
    elif essential:
        kind, confidence = "cannot_tell", 0.9
        reasons = "; ".join(dict.fromkeys(one.what for one in essential))
        sentences = say("verdict.sentence.unknown", it=it, reasons=reasons)
        advice += [one.remedy for one in essential if one.remedy]
    else:
        kind = "measures_storage"
        looked = belief.looked_at(causes, checked)
        confidence = belief.untried(*belief.grounds(causes, missing, checked))
        first = say("verdict.sentence.measures", it=capital(it), checks=len(checked))
        disk = next((cause for cause in causes if cause.rule == "storage_disk"), None)
        calm = disk.text if disk is not None else say("verdict.sentence.undisturbed")
        reason = suspects[0].text if suspects else calm
        sentences = f"{first} {reason}"
        # What probes point at is in what they leave of the storage.
        grave = any(cause.confidence >= GRAVE for cause in suspects if cause.rule != "probes")
        if grave or confidence < CREDIBLE or len(looked) < ENOUGH:
            kind, confidence = "cannot_tell", 1 - confidence
            reason = suspects[0].text if suspects else _too_little(looked, missing)
            sentences = f"{say('verdict.sentence.cannot_tell', it=it)} {reason}"
            advice += [one.remedy for one in _first_missing(missing) if one.remedy]
    return Verdict(
        kind=kind,
        limited_by=deciding.layer if deciding is not None and kind == "limited" else None,
        confidence=round(confidence, 2),
        sentences=sentences,
        causes=tuple(causes),
        missing=tuple(missing),
        checked=checked,
        advice=tuple(dict.fromkeys(advice)),
    )


def _too_little(looked: set[RuleName], missing: list[Missing]) -> str:
    """Return why a number of which little is known cannot be believed."""
    reasons = " ".join(f"{one.what[:1].upper()}{one.what[1:]}." for one in _first_missing(missing))
    if not reasons:
        return say("verdict.sentence.no_check")
    if len(looked) > 1:
        return say("verdict.sentence.few_checks", checks=len(looked), reasons=reasons)
    return say("verdict.sentence.hardly_checked", reasons=reasons)


def _first_missing(missing: list[Missing]) -> list[Missing]:
    """Return the first few things that are missing, each once."""
    return list({one.what: one for one in reversed(missing)}.values())[::-1][:3]


def _missing(rule: RuleName, answer: CannotTell, case: Case | None) -> Missing:
    return Missing(
        rule=rule,
        what=answer.missing,
        remedy=answer.remedy,
        essential=answer.essential,
        about=None if case is None else case.name,
    )
