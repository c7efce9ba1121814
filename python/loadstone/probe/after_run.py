"""Probes after a run, each with a bundle of its own inside the run's.

Knows where they go, and how they are run on this host: with the run's own consent, so that the safety
check is the same. After a run on several hosts somebody else runs them (`hosts.probing`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from loadstone.analysis import contention, fine_rates
from loadstone.analysis.summary import summarise
from loadstone.audit.from_bundle import phase_facts
from loadstone.bundle import layout
from loadstone.bundle.read import Bundle
from loadstone.engine.interrupts import Interrupts
from loadstone.probe import contents, probe_session
from loadstone.probe.base import Base
from loadstone.probe.figures import COLUMNS, dips, issuing_ns, of_stages
from loadstone.session import RunRequest, run_plan
from loadstone.workload.model import Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.analysis.measurement import MeasuredLine, Measurement
    from loadstone.explanations.readings import Probed, Tried
    from loadstone.plan.safety.guard import Consent
    from loadstone.probe.figures import Figures
    from loadstone.probe.probe import Probe
    from loadstone.session import Outcome, Progress
    from loadstone.verdict import Audited

    MakeRunner = Callable[[Bundle, Base], probe_session.Runner]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for. `runner` makes who runs the probes; `tell` says a line; `look`: before them."""

    budget_s: float
    runner: MakeRunner
    tell: Callable[[str], None]
    look: Callable[[Base], Tried | None] = contents.look


def after(bundle: Bundle, audited: Audited, wanted: Wanted) -> Probed | None:
    """Probe the phase of a run that took longest; None where nothing was measured."""
    base = base_of(bundle, wanted.budget_s)
    if base is None:
        return None
    verdict = audited.verdict
    rule_findings = probe_session.RuleFindings(
        {cause.rule: cause.confidence for cause in verdict.causes if cause.effect != "note"}, verdict.checked
    )
    with Interrupts() as interrupts:
        return probe_session.probe(
            base,
            wanted.runner(bundle, base),
            rule_findings,
            tell=wanted.tell,
            stopped=lambda: interrupts.asked,
            # Targets of several hosts need not be here.
            look=wanted.look if bundle.hosts is None else lambda _: None,
        )


def base_of(bundle: Bundle, budget_s: float) -> Base | None:
    """Return what probes start from: the phase with the longest measured time.

    Streams of several hosts have their host before their names: an arm may keep one of them all.
    """
    base = base_from(summarise(bundle).measurement, budget_s)
    if base is None or bundle.hosts is None:
        return base
    streams = list(base.plan.streams)
    for part in bundle.hosts.hosts:
        for at in range(part.first_stream, part.first_stream + part.streams):
            streams[at] = streams[at].model_copy(update={"name": f"{part.name} {streams[at].name}"})
    return replace(base, plan=base.plan.model_copy(update={"streams": tuple(streams)}))


def base_from(measurement: Measurement, budget_s: float) -> Base | None:
    """Return it from a run that was read already."""
    plan, samples = measurement.plan, measurement.samples
    lines = {measurement.stages_of(line)[0]: line for line in measurement.lines("stage")}
    measured = of_stages(samples, {stage: issuing_ns(plan, stage) for stage in sorted(lines)})
    if not measured:
        return None
    stage, longest = max(sorted(measured.items()), key=lambda pair: pair[1].seconds)
    main = _closely(measurement, lines[stage], longest)
    facts = phase_facts(measurement, lines[stage])
    return Base(plan, stage, facts, main, budget_s, _contended_share(measurement.bundle))


def _contended_share(bundle: Bundle) -> float | None:
    contended = contention.of_bundle(bundle)
    return None if contended is None else round(contended.share, 4)


def _closely(measurement: Measurement, line: MeasuredLine, figures: Figures) -> Figures:
    """Return figures with the moments in which it did little from the short samples, where there are some."""
    begin_ns = min((measurement.spans[index][1] for index in line.streams), default=0)
    fine = fine_rates.of_stage(measurement, line, (begin_ns, measurement.issued_until_ns(line)))
    return figures if fine is None else replace(figures, dips=dips(fine.ops, fine.lengths_ns / 1e9))


def on_this_host(
    bundle: Bundle, consent: Consent, progress: Callable[[], Progress | None]
) -> probe_session.Runner:
    """Return who runs probes here; `progress` makes who shows each of them."""

    def run(offer: probe_session.Offer, number: int) -> probe_session.Ran:
        request, relative = request_of(bundle, offer.probe, number)
        path = bundle.path / relative
        outcome = run_plan(
            offer.plan,
            request=request,
            out_dir=path,
            progress=progress(),
            consent=consent,
            result=document,
        )
        return ran(outcome, relative)

    return run


def request_of(bundle: Bundle, probe: Probe, number: int) -> tuple[RunRequest, str]:
    """Return what a probe's bundle says was asked for, and its directory in the run's."""
    request = RunRequest(
        request={**bundle.request, "probe": {"name": probe.name, "asks": probe.asks}},
        inputs={},
        workload_json=made_of_a_plan(probe).model_dump_json(),
        notes=[],
    )
    return request, f"{layout.PROBES}/{number:03d}-{probe.name}"


def made_of_a_plan(probe: Probe) -> Workload:
    """Return what a probe's bundle has as its Workload: no job asks for what is made of the run's Plan."""
    return Workload(name=probe.name, jobs=())


def ran(outcome: Outcome, relative: str) -> probe_session.Ran:
    """Return what a probe's run left."""
    bundle = Bundle.open(outcome.bundle_path)
    samples = bundle.samples().select(COLUMNS)
    failure = None if outcome.error is None else str(outcome.error).partition("\n")[0]
    return probe_session.Ran(
        samples, relative, outcome.status == "complete", _contended_share(bundle), failure
    )


def document(bundle: Bundle) -> dict[str, Any]:
    """Return what a probe measured, without a verdict: it is evidence for one."""
    return summarise(bundle).document()
