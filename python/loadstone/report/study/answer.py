"""The answer of a study in a sentence, by its kind: what was measured, or where to operate.

Knows which number each kind of study is done for, and that only valid runs give one. Computes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.analysis.study import repeats, run_figures
from loadstone.analysis.study.curve import curves
from loadstone.analysis.study.patterns import patterns
from loadstone.analysis.study.rounds import rounds
from loadstone.analysis.study.slo import slo_of
from loadstone.analysis.study.sweep import sweep
from loadstone.messages import say
from loadstone.report.study import curve as study_curve
from loadstone.report.study import rounds as study_rounds
from loadstone.report.study import sweep as study_sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.study.curve import Curve
    from loadstone.analysis.study.patterns import StudyPattern
    from loadstone.analysis.study.pooled import Pooled
    from loadstone.analysis.study.run_figures import RunFigures
    from loadstone.analysis.study.sweep import Sweep
    from loadstone.bundle.study import StudyRecord

NAMED: Final = 6
"""So many results are named in the sentence; the table has all of them."""
NAMED_OF_SWEEP: Final = 3
"""Sentences of a sweep are longer, and stand below it once more."""


def answer(study: StudyRecord, runs: Sequence[RunFigures]) -> str:
    """Return the answer of one study."""
    if not any(run.lines for run in runs):
        return say("report.study.nothing")
    if study.kind == "sweep":
        return _of_sweep(sweep(runs, study.settings), float(study.settings["gain_share"]), runs)
    if study.kind == "repeat":
        return _of_repeats(runs)
    if study.settings.get("rounds"):
        found_rounds = rounds(runs, study.settings)
        return _first(study_rounds.sentences(found_rounds)) if found_rounds is not None else ""
    study_curves = [one for one in curves(runs, slo_of(study)) if one.loads]
    if study_curves:
        return of_curves(study_curves)
    return _of_patterns(patterns(runs))


def _of_sweep(swept: Sweep, gain_share: float, runs: Sequence[RunFigures]) -> str:
    """Say where to operate: of each value of the other factors, those with a recommendation first."""
    sentences = study_sweep.sentences(swept, gain_share)
    # What is left out and none of what is said of all is of one value of another factor.
    if len(swept.advice) < 2 or len(sentences) < len(swept.advice):
        return _first(sentences) if sentences else _of_patterns(patterns(runs))
    in_order = sorted(swept.advice, key=lambda one: one.value is None)
    return first_named([study_sweep.sentence(one, gain_share) for one in in_order], [], most=NAMED_OF_SWEEP)


def of_curves(all_curves: Sequence[Curve]) -> str:
    """Return what curves say: their maxima, the highest first, and their knees."""
    known = [one for one in all_curves if one.maximum is not None and one.maximum.valid]
    if not known:
        return study_curve.sentences(all_curves[0])[0]
    known.sort(key=lambda one: -(one.maximum.rate.value if one.maximum is not None else 0.0))
    maxima = [_curve(one) for one in known[:NAMED]]
    more = [say("report.study.more", patterns=len(known) - NAMED)] if len(known) > NAMED else []
    without = [one.name or say("report.study.the_curve") for one in all_curves if one not in known]
    left_out = [say("report.study.no_maximum", names=", ".join(without))] if without else []
    return f"{'; '.join([*maxima, *more, *left_out])}."


def _curve(curve: Curve) -> str:
    most = curve.maximum
    name = f"{curve.name}: " if curve.name else ""
    if most is None:
        return ""
    knee = curve.knee
    at = (
        say("report.study.no_knee")
        if knee is None
        else say(
            "report.study.knee", load=study_curve.load_text(curve, knee.load), latency_ns=knee.latency_ns
        )
    )
    return say("report.study.curve", name=name, rate=rate(most), latency_ns=most.mean_ns.value, knee=at)


def _of_repeats(runs: Sequence[RunFigures]) -> str:
    study_patterns = patterns(runs, alike=True)
    sound = [one for one in study_patterns if one.sound is not None]
    if not sound:
        return say("report.study.no_run_valid", runs=len(runs))
    valid = run_figures.sound(runs)
    lines = repeats.lines(valid)
    apart = any(line.rate is not None and line.rate.differ for line in lines)
    results = "; ".join(_pattern(one, with_name=len(sound) > 1) for one in sound[:NAMED])
    agree = say("report.study.differ" if apart else "report.study.agree") if len(valid) > 1 else ""
    return say("report.study.repeats", results=results, valid=len(valid), runs=len(runs), agree=agree)


def _of_patterns(study_patterns: Sequence[StudyPattern]) -> str:
    sound = [one for one in study_patterns if one.sound is not None]
    broken = [one.name for one in study_patterns if one.sound is None]
    if not sound:
        return say("report.study.none_valid", patterns=len(study_patterns))
    return first_named([_pattern(one, with_name=True) for one in sound], broken)


def first_named(results: Sequence[str], broken: Sequence[str], *, most: int = NAMED) -> str:
    """Return one sentence: the first results, how many more there are, and what has no valid run."""
    parts = [*results[:most]]
    if len(results) > most:
        parts.append(say("report.study.more", patterns=len(results) - most))
    if broken:
        names = ", ".join(broken[:most]) + (", …" if len(broken) > most else "")
        parts.append(say("report.study.not_valid", names=names))
    return f"{'; '.join(parts)}."


def _pattern(one: StudyPattern, *, with_name: bool) -> str:
    pooled = one.sound
    if pooled is None:
        return ""
    name = f"{one.name} " if with_name else ""
    tail = pooled.percentiles_ns.get(99.0)
    p99 = "" if tail is None else f", p99 {units.duration(tail)}"
    return f"{name}{rate(pooled)}{p99}"


def rate(pooled: Pooled) -> str:
    """Write the rate that matters with its error."""
    if pooled.large_blocks:
        return units.with_error(pooled.bandwidth, "binary")
    return f"{units.with_error(pooled.iops, 'count')} IOPS"


def _first(said: Sequence[str]) -> str:
    return said[0][:1].upper() + said[0][1:] if said else ""
