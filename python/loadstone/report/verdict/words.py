"""A verdict in words: for the terminal, for a page and for Markdown.

Knows how a kind, a confidence and a piece of evidence are written. Judges nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, get_args

from rich.text import Text

from loadstone import units
from loadstone.messages import label, say, template, title
from loadstone.report.pictures.charts import COLOURS, FONT, SCHEMA, bandwidth_unit, config
from loadstone.report.verdict import layers_table
from loadstone.verdict import BYTES_PER_S, Effect, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from loadstone.report.pictures.charts import Spec
    from loadstone.verdict import Audited, Cause, Chart, Verdict

    _Suffix = tuple[str, Callable[[float], str]]

NAMES: Final = {kind: template(f"verdict.kind.{kind}") for kind in get_args(Kind)}
STYLES: Final = {
    "measures_storage": "bold green",
    "limited": "bold yellow",
    "not_valid": "bold red",
    "cannot_tell": "bold yellow",
}
EFFECTS: Final = {name: template(f"verdict.effect.{name}") for name in get_args(Effect)}
LIKELY: Final = 0.05
"""Explanations that are less probable are only in the JSON."""
MAX_CAUSES: Final = 4
"""So many on a terminal: the report and the JSON have all of them."""
CHART_WIDTH: Final = 330
CHART_HEIGHT: Final = 130
LABEL_ABOVE: Final = -7
LABEL_BELOW: Final = 9

_BY_SUFFIX: Final[tuple[_Suffix, ...]] = (
    ("_bytes_per_io", units.size),
    ("_bytes", units.size),
    ("_ns", units.duration),
    ("_ms", lambda value: units.duration(value * 1e6)),
    ("_iops", lambda value: f"{units.count(value)} IOPS"),
    ("_bits_per_s", lambda value: units.bandwidth_decimal(value / 8)),
    ("_s", units.seconds),
    ("_percent", lambda value: f"{units.digits(value)}{units.THIN}%"),
    ("_share", lambda value: f"{units.digits(value * 100)}{units.THIN}%"),
    ("_factor", lambda value: f"{units.digits(value)}{units.THIN}×"),
)


def headline(verdict: Verdict) -> str:
    """Return the kind in words, with the layer when there is one."""
    if verdict.kind == "limited" and verdict.limited_by:
        return say("verdict.kind.limited_by", layer=verdict.limited_by)
    return NAMES[verdict.kind]


def confidence(value: float) -> str:
    """Write a confidence as a percentage that says what it is."""
    return say("verdict.terminal.confidence", confidence_share=value)


def sureness(verdict: Verdict) -> str:
    """Write how sure a verdict is; empty for *cannot tell*: how sure that is helps nobody."""
    return "" if verdict.kind == "cannot_tell" else confidence(verdict.confidence)


def evidence(cause: Cause) -> list[tuple[str, str]]:
    """Return each piece of evidence as a name without its unit and a value with it.

    Bandwidths are in the unit of the sentence above them: links and data sheets are told in MB/s.
    """
    bandwidth = units.bandwidth if "iB/s" in cause.text else units.bandwidth_decimal
    every = (("_bytes_per_s", bandwidth), *_BY_SUFFIX)
    return [_piece(name, value, every) for name, value in cause.evidence.items()]


def _piece(name: str, value: float | str, every: Sequence[_Suffix]) -> tuple[str, str]:
    if isinstance(value, str):
        return label(name), value
    # The name of a bandwidth may be its unit alone.
    write = next((w for suffix, w in every if name.endswith(suffix) or name == "bytes_per_s"), units.count)
    return label(name), write(float(value))


def evidence_line(cause: Cause) -> str:
    """Return all evidence of a cause in a line."""
    return ", ".join(" ".join(piece) for piece in evidence(cause))


def terminal(audited: Audited, console: Console) -> None:
    """Print the verdict: kind, two sentences, evidence, advice."""
    verdict = audited.verdict
    sure = f" ({text})" if (text := sureness(verdict)) else ""
    console.print(
        Text.assemble(
            say("verdict.terminal.heading"), (headline(verdict), STYLES[verdict.kind]), (sure, "dim")
        )
    )
    console.print(Text(verdict.sentences))
    groups = _alike([cause for cause in verdict.causes if cause.effect != "note"])
    for cause, *others in groups[:MAX_CAUSES]:
        about = f"{of}: " if (of := _about(cause, audited)) else ""
        more = say("verdict.terminal.alike", findings=len(others)) if others else ""
        name = (
            title(cause.rule),
            "red" if cause.effect == "not_valid" else "yellow",
        )
        told_by = (f" ({cause.rule}, {confidence(cause.confidence)})", "dim")
        console.print(Text.assemble("  ", name, told_by, f": {about}{evidence_line(cause)}{more}"))
    if len(groups) > MAX_CAUSES:
        console.print(Text("  " + say("verdict.terminal.more", findings=len(groups) - MAX_CAUSES), "dim"))
    for advice in different_advice(verdict.advice)[:MAX_CAUSES]:
        console.print(Text("  " + say("verdict.terminal.advice", advice=advice)))
    _explanations(verdict, console)


def different_advice(advice: Sequence[str]) -> list[str]:
    """Return what to do, each once: `run longer, with a ramp` says `run longer`, too."""
    return [one for one in advice if not any(re.match(rf"{re.escape(one)}\W", other) for other in advice)]


def _alike(causes: Sequence[Cause]) -> list[list[Cause]]:
    """Put causes together that one rule says of several jobs, phases or hosts."""
    groups: dict[object, list[Cause]] = {}
    for cause in causes:
        groups.setdefault((cause.rule, cause.effect, cause.advice), []).append(cause)
    return list(groups.values())


def _about(cause: Cause, audited: Audited) -> str | None:
    """Return the job, phase or host of a cause; None where the result has one and it is that one."""
    return None if [phase.name for phase in audited.phases] == [cause.about] else cause.about


def _explanations(verdict: Verdict, console: Console) -> None:
    """Print what may lie behind the number, or the command that would tell."""
    if verdict.probes:
        console.print(Text(say("verdict.explained.heading", probes=len(verdict.probes))))
        likely = [one for one in verdict.explanations if one.probability >= LIKELY]
        for one in likely[:MAX_CAUSES]:
            row = say("verdict.explained.row", probability_share=one.probability, says=one.says)
            by = f", {say('verdict.explained.by', source=one.decided_by)}" if one.decided_by else ""
            console.print(Text.assemble("  ", row, (by, "dim")))
            console.print(Text("      " + say("verdict.terminal.advice", advice=one.advice)))
    if verdict.kind != "not_valid" and (command := to_decide(verdict)) is not None:
        hint = say("verdict.explained.decide", remaining=_remaining(verdict), command=command)
        console.print(Text(f"  {hint}"))


def to_decide(verdict: Verdict) -> str | None:
    """Return the command that tells explanations apart, where there are several."""
    return verdict.to_decide if _remaining(verdict) > 1 else None


def _remaining(verdict: Verdict) -> int:
    return sum(one.probability >= LIKELY for one in verdict.explanations)


def page(audited: Audited, draw: Callable[[Spec], object]) -> dict[str, Any]:
    """Return what the page's template shows; `draw` makes an SVG of a chart."""
    verdict = audited.verdict
    causes = _together([_cause(cause, draw, _about(cause, audited)) for cause in verdict.causes])
    return {
        "kind": verdict.kind,
        "headline": headline(verdict),
        "confidence": sureness(verdict),
        "sentences": verdict.sentences,
        "advice": different_advice(verdict.advice),
        "causes": [drawn for drawn in causes if drawn["effect"] != "note"],
        "notes": [drawn for drawn in causes if drawn["effect"] == "note"],
        "not_checked": not_checked(verdict),
        "checked": checked(verdict),
        **layers_table.page(verdict),
        "explanations": [
            (one.says, confidence(one.probability), one.for_, one.against)
            for one in verdict.explanations
            if one.probability >= LIKELY
        ],
        "probes": [(one.name, one.bundle, one.result) for one in verdict.probes],
        "to_decide": to_decide(verdict),
        "phases": [
            (
                phase.name,
                phase.verdict.kind,
                headline(phase.verdict),
                units.percent(100 * phase.verdict.confidence),
            )
            for phase in audited.phases
        ]
        if len(audited.phases) > 1
        else [],
    }


def checked(verdict: Verdict) -> str | None:
    """Say which rules looked and found nothing."""
    titles = ", ".join(title(rule) for rule in verdict.checked)
    return say("verdict.page.checked", titles=titles) if titles else None


def not_checked(verdict: Verdict) -> str | None:
    """Say which rules could not look, and why."""
    every = dict.fromkeys((one.rule, one.what, one.essential) for one in verdict.missing)
    rules = [
        say(
            "verdict.page.not_checked_essential" if essential else "verdict.page.not_checked_rule",
            title=title(rule),
            reason=reason,
        )
        for rule, reason, essential in every
    ]
    return say("verdict.page.not_checked", rules="; ".join(rules)) if rules else None


def _together(causes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return causes of which each has its `more`: those after it that one rule says of other jobs or phases.

    What has a picture stands alone.
    """
    groups: dict[object, dict[str, Any]] = {}
    for number, cause in enumerate(causes):
        of = number if cause["svg"] is not None else (cause["rule"], cause["effect"], cause["advice"])
        if of in groups:
            groups[of]["more"].append(cause)
        else:
            groups[of] = {**cause, "more": []}
    return list(groups.values())


def _cause(cause: Cause, draw: Callable[[Spec], object], about: str | None) -> dict[str, Any]:
    return {
        "rule": cause.rule,
        "title": title(cause.rule),
        "effect": cause.effect,
        "effect_name": EFFECTS[cause.effect],
        "confidence": confidence(cause.confidence),
        # A sentence that begins with it names it.
        "about": None if about is None or cause.text.startswith(about) else about,
        "text": cause.text,
        "advice": cause.advice,
        "evidence": evidence(cause),
        "svg": draw(chart(cause.chart)) if cause.chart is not None else None,
    }


def chart(figures: Chart) -> Spec:
    """Return the small picture of a cause's evidence."""
    values, level_y, unit = _in_unit(figures)
    x = {"field": "x", "type": "quantitative", "title": figures.x, "axis": {"tickCount": 5, "grid": False}}
    y = {"field": "y", "type": "quantitative", "title": unit, "axis": {"tickCount": 4, "format": "~s"}}
    layers: list[Spec] = [
        {
            "data": {"values": values},
            "mark": {"type": "line", "color": COLOURS[0], "point": len(figures.points) < 30},
            "encoding": {"x": x, "y": y},
        }
    ]
    if level_y is not None:
        level = {"values": [{"y": level_y, "name": figures.level_name or ""}]}
        at = {"field": "y", "type": "quantitative"}
        word = {"type": "text", "align": "right", "dy": _beside(values, level_y), "font": FONT}
        named = {"y": at, "x": {"value": CHART_WIDTH}, "text": {"field": "name"}}
        halo = word | {"stroke": "white", "strokeWidth": 4, "color": "white"}
        layers += [
            {"data": level, "mark": {"type": "rule", "color": COLOURS[1]}, "encoding": {"y": at}},
            {"data": level, "mark": halo, "encoding": named},
            {"data": level, "mark": word | {"color": COLOURS[1]}, "encoding": named},
        ]
    return {
        "$schema": SCHEMA,
        "config": config(),
        "title": figures.title,
        "width": CHART_WIDTH,
        "height": CHART_HEIGHT,
        "layer": layers,
    }


def _in_unit(figures: Chart) -> tuple[list[Spec], float | None, str]:
    """Return points, level and the words of the vertical axis; bytes in the unit that fits."""
    size, unit = 1.0, figures.y
    if figures.y == BYTES_PER_S:
        tops = [abs(value) for _, value in figures.points] + ([abs(figures.level)] if figures.level else [])
        size, unit = bandwidth_unit(max(tops, default=1.0))
    values = [{"x": x, "y": y / size} for x, y in figures.points]
    return values, None if figures.level is None else figures.level / size, unit


def _beside(values: Sequence[Spec], level: float) -> int:
    """Return where the name of a level stands: above it, or below where the line runs above it.

    Never below where that is the axis.
    """
    last = values[-max(1, len(values) // 3) :]
    above = sum(one["y"] > level for one in last)
    has_room = level * CHART_HEIGHT > 2 * LABEL_BELOW * max(one["y"] for one in values)
    return LABEL_BELOW if 2 * above > len(last) and has_room else LABEL_ABOVE
