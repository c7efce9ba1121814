"""The pages of what verdicts and probes were worth on drawn situations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.probes import judged, tables
from lab.probes.draw import FAMILIES, LIES
from lab.probes.host_kinds import HONEST_KINDS
from lab.rules_digest import choice_digest, rules_digest
from lab.verdicts.drawn import KINDS
from lab.verdicts.outside_again import AGAIN
from lab.verdicts.outside_page import beside_all, outside_lines, own_settings, taken_by_others

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lab.probes.tables import ScoredLine
    from lab.verdicts.cost import Cost

    from loadstone.explanations.weights import Fitted

EARLIER = Path(__file__).parents[1] / "verdicts" / "earlier.md"
OLD = (
    "*Not of the present rules*: an earlier session's section as it stood, whose bundles are gone. *Present* "
    "means then."
)
LOOKED_AT = (
    " Seed 8133 was looked at before the rules were final, and so were 531025 and 531026 of the kinds from "
    "outside. Their stalls had been told as a turn of others on the CPUs, which `STALLED` bounds now. Its "
    "value is of other seeds."
)
SEEN = 8133
GAP = 100
WORDS = (
    "A *lie* is a number that something else than its storage made; half of all situations are honest. "
    "A cause counts where it changes the number by a tenth or more. *Named first*: the first finding, or "
    "after probes the most probable explanation, is right. *Named*: it is among the findings, or has at "
    "least 10 %. "
    "*Believed*: 'measures the storage' with at least 80 %; *doubted* is the rest. *Accused*: an honest "
    "number that is said to be invalid, limited by something else, or not tellable. At a limit of its "
    "storage's own, 'cannot tell whose limit it is' is no accusation. A line of its own counts those, too. "
    "*Left out*: the weights were fitted without that kind, or without its whole family. *Removed*: its "
    "explanation was also taken out of the list before probes were chosen. Then 'unexplained' is first "
    "among what is not the storage."
)


def ranges(seeds: Sequence[int]) -> str:
    """Return what seeds lie between; a cause that changed nothing leaves a small gap."""
    parts: list[list[int]] = []
    for seed in sorted(seeds):
        if parts and seed - parts[-1][1] <= GAP:
            parts[-1][1] = seed
        else:
            parts.append([seed, seed])
    return ", ".join(f"{first} to {last}" for first, last in parts)


@dataclass(frozen=True)
class DrawnSituations:
    """What the pages are of. `asked`: seeds that the command names; `drawn`: those it came to."""

    command: str
    asked: int
    drawn: int
    failed: int
    real_asked: int
    looked_at: Sequence[ScoredLine] = ()
    """Of seeds that were looked at before the rules were final."""

    @property
    def broken_off(self) -> str:
        """Say how far the command came; nothing where it came to its end."""
        return (
            "" if self.drawn >= self.asked else f", broken off after {self.drawn} of {self.asked} situations"
        )


@dataclass(frozen=True)
class RealLines:
    """Lines of runs with real parts: `plain` without probes, `honest` and `outside` with them."""

    plain: Sequence[dict[str, Any]]
    honest: Sequence[dict[str, Any]]
    outside: Sequence[dict[str, Any]]


def verdicts(
    every: Sequence[ScoredLine],
    fitted: Fitted,
    drawn: DrawnSituations,
    real: RealLines,
    costs: Sequence[Cost],
) -> str:
    """Return the page of verdicts."""
    parts = (
        _verdicts(every, fitted, drawn),
        _real(real.plain, drawn) if real.plain else (),
        honest_lines(real.honest),
        outside_lines([one for one in real.outside if one["kind"] not in AGAIN]),
        outside_lines([one for one in real.outside if one["kind"] in AGAIN], again=True),
        _cost(costs),
    )
    lines = [line for part in parts for line in part]
    return "\n".join([*lines, *earlier(lines), ""])


def earlier(lines: Sequence[str]) -> Iterator[str]:
    """Yield the sections of earlier sessions that this page has not anew, each marked as that."""
    headings = {line for line in lines if line.startswith("## ")}
    wanted = False
    for line in EARLIER.read_text().splitlines():
        if line.startswith("## "):
            wanted = line not in headings
            if wanted:
                yield from ("", f"{line} (earlier rules)", "", OLD)
        elif wanted:
            yield line


def _situations(every: Sequence[ScoredLine], fitted: Fitted, drawn: DrawnSituations) -> Iterator[str]:
    """Yield which situations count, and what was fitted on which others."""
    failed = drawn.failed
    tried = [one for one in every if one.probed is not None]
    seeds = [int(one.row["seed"]) for one in every]
    yield from (
        "# What a verdict is worth",
        "",
        "How often the verdict is right, on situations whose truth is known.",
        "",
        f"Written by {drawn.command}{drawn.broken_off}.",
        "",
        f"{len(every)} simulated situations of seeds {ranges(seeds)} count. {len(tried)} of them were "
        f"probed, for 20 s of virtual time each. They are of {len(LIES)} kinds of lies in "
        f"{len(FAMILIES)} families and {len(HONEST_KINDS)} honest kinds"
        + (f"; {failed} could not be run" if failed else "")
        + f". Weights and regressions were fitted on {fitted.source.situations} other situations, seeds "
        f"{', '.join(fitted.source.seeds)}. The rules' thresholds that say so were chosen on those. What is "
        f"said after probes was calibrated on {fitted.calibrated_on.situations} more (seeds "
        f"{', '.join(fitted.calibrated_on.seeds)}). No weight or threshold was chosen on the "
        "seeds scored here. What a host's counters would say is drawn with the situation, as the "
        "simulated device has no host; below are runs with real parts.",
        "",
        WORDS,
        "",
        f"{judged_by([one.row for one in every])} {chosen_by([one.row for one in tried])}",
        "",
        "These shares hold for situations as they are drawn here: half of them honest, every kind "
        "as frequent "
        "as the next. No data of the field stand behind that; where lies are rarer, a number is worth more.",
        "",
    )


def _verdicts(every: Sequence[ScoredLine], fitted: Fitted, drawn: DrawnSituations) -> Iterator[str]:
    tried = [one for one in every if one.probed is not None]
    yield from _situations(every, fitted, drawn)
    yield from (
        "## In short",
        "",
        *tables.summary(every),
        "",
        *_with(drawn.looked_at, every),
        "## Kinds",
        "",
        *tables.by_kind(every),
        "",
        "## 'Measures the storage', nothing tried",
        "",
        tables.brier(tables.believing(every, lambda one: one.untried)),
        "",
        *tables.reliability(tables.measuring(every, lambda one: one.untried)),
        "",
        "## 'Measures the storage', after probes",
        "",
        tables.brier(tables.believing(tried, lambda one: one.probed)),
        "",
        *tables.reliability(tables.measuring(tried, lambda one: one.probed)),
        "",
        *_never_seen(tried),
        "## The most probable explanation, after probes",
        "",
        *tables.of_explanations(tried),
        "",
        "## Findings of rules",
        "",
        tables.brier(tables.findings(every)),
        "",
        *tables.reliability(tables.findings(every)),
        "",
        "## What each rule adds",
        "",
        *tables.each_rule(every),
    )


def _with(looked_at: Sequence[ScoredLine], every: Sequence[ScoredLine]) -> list[str]:
    """Return the same shares with seeds that were looked at before the rules were final."""
    if not looked_at:
        return []
    both = [*looked_at, *every]
    tried = [one for one in both if one.probed is not None]
    return [
        "## With seeds that were looked at",
        "",
        f"{len(both)} situations: {len(looked_at)} more, of seeds "
        f"{ranges([int(one.row['seed']) for one in looked_at])}. What was said of those was looked at before "
        "the rules were final, and chose some of them. Their runs were judged by rules of an earlier digest; "
        "what is said after probes is of the present ones.",
        "",
        *tables.summary(both),
        "",
        "'Measures the storage', after probes:",
        "",
        *tables.reliability(tables.measuring(tried, lambda one: one.probed)),
        "",
    ]


def judged_by(every: Sequence[dict[str, Any]]) -> str:
    """Say how many lines the present rules judged."""
    now = sum(row.get("rules") == rules_digest() for row in every)
    others = f"; the other {len(every) - now} are as earlier rules judged them" if now < len(every) else ""
    return f"Rules of digest {rules_digest()} judged {now} of {len(every)} lines{others}."


def chosen_by(tried: Sequence[dict[str, Any]]) -> str:
    """Say of how many lines the present weights chose the probes: what was tried is not tried again."""
    now = sum(row.get("chosen_by") == choice_digest() for row in tried)
    return f"The present weights chose the probes of {now} of {len(tried)}, earlier ones those of the rest."


def _never_seen(tried: Sequence[ScoredLine]) -> list[str]:
    if not any(one.unseen for one in tried):
        return []
    answers = tables.measuring(tried, lambda one: one.unseen)
    parts = [
        [one for one in answers if (one.sure < judged.BELIEVED) is doubtful] for doubtful in (True, False)
    ]
    return [
        "With each lie judged by the fit that never saw its kind, and each honest number by one of those "
        "fits, drawn by its seed:",
        "",
        *tables.reliability(answers),
        "",
        "Some limiters of others look like the storage's own, and how probable such a number is depends on "
        "which of them a fit has seen. So one frequency is told of all numbers that probes did not settle. "
        f"Told less than {100 * judged.BELIEVED:.0f} %: {tables.by_kinds(parts[0])}. Told more: "
        f"{tables.by_kinds(parts[1])}.",
        "",
    ]


def _cost(costs: Sequence[Cost]) -> Iterator[str]:
    if not costs:
        return
    yield from (
        "",
        "## What it costs",
        "",
        "`python -m lab.verdicts.cost`: runs of this host on a file in memory, on CPUs that others used, "
        "too. The monitors as a share of one CPU, as the run tells it; the verdict with all reading of the "
        "bundle. A thread of the engine takes the finer samples. It does no I/O, and writes the run's "
        "rows, too. The column has all it used, as a share of one CPU.",
        "",
        "| job | seconds | monitors | finer samples, at most | verdict, CPU | verdict, elapsed |",
        "|---|---|---|---|---|---|",
    )
    for one in costs:
        yield (
            f"| {one.job} | {one.seconds} | {100 * one.monitors:.2f} % | "
            f"{100 * one.samples:.2f} % | {one.verdict_cpu_s:.2f} s | "
            f"{one.verdict_s:.2f} s |"
        )


def _real(every: Sequence[dict[str, Any]], drawn: DrawnSituations) -> Iterator[str]:
    staged = [row for row in every if not row["absent"]]
    lies = [row for row in staged if row["expected"] is not None]
    honest = [row for row in staged if row["expected"] is None and not row["uncounted"]]
    seeds = {row["seed"] for row in every}
    yield from (
        "",
        "## Real parts",
        "",
        f"{len(staged)} of {drawn.real_asked} runs of `LAB_NICE=0 python -m lab.verdicts.collect --seeds "
        f"{min(seeds)}:{max(seeds)}`. Parts are loop devices, "
        "ext4, btrfs, zram, control groups and devices served from user space. The seed draws their "
        f"parameters. Runs take 3 to 10 s, without probes. {beside_all(staged)} There `generator_cpu`, "
        "`not_steady` and `time_structure`, which may be true of the host, are not "
        f"held against a verdict.{LOOKED_AT if SEEN in seeds else ''} {judged_by(every)}",
        "",
        "A lie is in the storage where nothing on this host shows it: a link of another host, a cache "
        "behind the device. Probes are for those. The aims, 80 and 95 %, are of lies with evidence here.",
        "",
        "| lies | named first | named | not said to measure the storage |",
        "|---|---|---|---|",
        _shares("with evidence on this host", [row for row in lies if not KINDS[row["kind"]].hidden]),
        _shares("in the storage", [row for row in lies if KINDS[row["kind"]].hidden]),
        _shares("all", lies),
        "",
        f"Honest runs accused: {tables.share(sum(row['alarm'] for row in honest), len(honest))}.",
        "",
        "| kind | expected | runs | named first | named | said to measure | found most often |",
        "|---|---|---|---|---|---|---|",
    )
    for name in dict.fromkeys(row["kind"] for row in staged):
        of_kind = [row for row in staged if row["kind"] == name]
        rule_counts = Counter(rule for row in of_kind for rule, _ in row["findings"])
        most = ", ".join(f"`{rule}` {count}" for rule, count in rule_counts.most_common(2)) or "nothing"
        expected = of_kind[0]["expected"]
        yield (
            f"| {name.replace('_', ' ')} | {f'`{expected}`' if expected else 'honest'} | {len(of_kind)} | "
            + (
                f"{sum(row['named_first'] for row in of_kind)} | {sum(row['named'] for row in of_kind)}"
                if expected
                else "– | –"
            )
            + f" | {sum(row['verdict'] == 'measures_storage' for row in of_kind)} | {most} |"
        )
    absent = Counter(row["kind"] for row in every if row["absent"])
    if absent:
        yield ""
        yield "Not staged: " + ", ".join(f"{name} ({count})" for name, count in absent.items()) + "."


def _shares(of: str, lies: Sequence[dict[str, Any]]) -> str:
    true = (
        sum(row["named_first"] for row in lies),
        sum(row["named"] for row in lies),
        sum(row["verdict"] != "measures_storage" for row in lies),
    )
    return f"| {of} | {' | '.join(tables.share(some, len(lies)) for some in true)} |"


def honest_lines(every: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield what was said of honest runs with probes, nothing left out."""
    staged = [row for row in every if not row["absent"]]
    if not staged:
        return
    yield from (
        "",
        "## Honest runs on real parts, with probes",
        "",
        "`LAB_NICE=0 python -m lab.verdicts.collect --honest --probe 10s --seeds "
        f"{min(row['seed'] for row in every)}:{max(row['seed'] for row in every)}`. Parts are loop "
        "devices, zram, ext4, XFS, btrfs RAID, overlay, FUSE and devices served from user space. Beside half "
        "of them one or two programs use up CPUs, which is drawn, too. Each run counts, however many CPUs "
        f"others used. {taken_by_others(staged)} {judged_by(every)}",
        "",
        "| beside it | runs | accused | said to measure | with 80 % and more | its own settings named |",
        "|---|---|---|---|---|---|",
    )
    parts = {
        "nothing of ours": [row for row in staged if not row["spinning"]],
        "1 program that spins": [row for row in staged if row["spinning"] == 1],
        "2 programs that spin": [row for row in staged if row["spinning"] == 2],
        "all": staged,
    }
    for name, part in parts.items():
        measures = [row for row in part if row["verdict"] == "measures_storage"]
        own = [row for row in part if own_settings(row, row["also"])]
        accused = len(part) - len(measures) - len(own)
        sure = sum(row["confidence"] >= judged.BELIEVED for row in measures)
        share = tables.share(accused, len(part))
        yield f"| {name} | {len(part)} | {share} | {len(measures)} | {sure} | {len(own)} |"
    accused_rows = [
        row for row in staged if row["verdict"] != "measures_storage" and not own_settings(row, row["also"])
    ]
    if accused_rows:
        yield ""
        yield (
            "Accused:\n\n- "
            + ";\n- ".join(
                f"{row['kind'].replace('_', ' ')} (seed {row['seed']}): {row['verdict'].replace('_', ' ')}, "
                + ", ".join(f"`{rule}` {sure:.0%}" for rule, sure in row["findings"])
                for row in accused_rows
            )
            + "."
        )


def probes(every: Sequence[ScoredLine], fitted: Fitted, drawn: DrawnSituations) -> str:
    """Return the page of probes."""
    tried = [one for one in every if one.probed is not None]
    seeds = [int(one.row["seed"]) for one in tried]
    return "\n".join(
        [
            "# Probes on storage drawn from seeds",
            "",
            "How often probes name what lies behind a number.",
            "",
            f"Written by {drawn.command}{drawn.broken_off}.",
            "",
            f"{len(tried)} situations of seeds {ranges(seeds)}, with log-uniform parameters. Probes had 20 s "
            "of virtual time after each run. Fitted on "
            f"{fitted.source.situations} situations of seeds {', '.join(fitted.source.seeds)}.",
            "",
            WORDS,
            "",
            *tables.by_kind(tried),
            "",
            "What the probability of the most probable explanation was worth:",
            "",
            *tables.reliability(tables.first_named(tried)),
            "",
        ]
    )
