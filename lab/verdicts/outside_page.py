"""What was said of the kinds that somebody wrote down without having read the rules: a part of a page.

Knows lines of `lab.verdicts.collect --outside --probe` and counts them; judges nothing.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, Final

from lab.probes import tables
from lab.probes.judged import BELIEVED
from lab.probes.rows import findings
from lab.verdicts.score import BUSY, STOLEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Line = dict[str, Any]

SAID: Final = {
    "not_valid": "not valid",
    "limited": "limited",
    "cannot_tell": "cannot tell",
    "measures_storage": "measures",
}


FIRST: Final = (
    "## Kinds from outside",
    "--outside",
    "They are lies and honest runs on real parts, one seed of a kind. Their author had not read the rules. "
    "No simulated kind was made after them and no number was chosen on them. Two earlier seeds of them "
    "changed something. *A share of a busy CPU* was told as credits of the storage, which was "
    "corrected. *Big buffered reads that come round* had been thought to be honest.",
)
AGAIN: Final = (
    "## More kinds from outside",
    "--again",
    "Their author knew the judge and few of the rules. Of seeds 540020 to 540050, "
    "staged first, 11 of 21 lies were named first. They led to the depth that an engine cannot keep, to "
    "a mirror of btrfs that lost a member, and to places of small targets. *Writes smaller than a block* had "
    "been thought to be a lie. The seeds here were not looked at before.",
)


def outside_lines(every: Sequence[Line], *, again: bool = False) -> Iterator[str]:
    """Yield the tables: in short, and each run. `again`: of the second set."""
    staged = [one for one in every if not one["absent"] and one["alone"]]
    if not staged:
        return
    title, option, intro = AGAIN if again else FIRST
    lies = [one for one in staged if one["expected"] is not None]
    honest = [one for one in staged if one["expected"] is None]
    yield from (
        "",
        title,
        "",
        f"`LAB_NICE=0 python -m lab.verdicts.collect {option} --probe 10s --seeds "
        f"{min(one['seed'] for one in every)}:{max(one['seed'] for one in every)}`. {intro} "
        f"{beside_all(staged)} "
        "*Believed*: 'measures the storage' with at least 80 %. *Accused*: an honest number that is not "
        "said to measure the storage. Nor is it said to be limited by what its own job asked for.",
        "",
        "| of | what | nothing tried | after 10 s of probes |",
        "|---|---|---|---|",
    )
    for name, of, counted in (
        ("lies", lies, "named_first"),
        ("lies", lies, "named"),
        ("lies", lies, "not believed"),
        ("honest runs", honest, "accused"),
    ):
        shares = [
            tables.share(sum(_is(counted, line, answer) for line, answer in _each(of, alone=alone)), len(of))
            for alone in (True, False)
        ]
        yield f"| {name} | {counted.replace('_', ' ')} | {shares[0]} | {shares[1]} |"
    yield from (
        "",
        "| run | expected | nothing tried | after probes | most probable |",
        "|---|---|---|---|---|",
    )
    for one in staged:
        likely = list(one["plain"]["explanations"].items())[:2]
        expected = f"`{one['expected']}`" if one["expected"] else "honest"
        yield (
            f"| {one['kind'].replace('_', ' ')} | {expected} | {_cell(one['alone'])} | {_cell(one)} | "
            + ", ".join(f"{name} {chance:.0%}" for name, chance in likely)
            + " |"
        )
    absent = [one for one in every if one["absent"]]
    if absent:
        yield ""
        yield "Not staged: " + ", ".join(one["kind"].replace("_", " ") for one in absent) + "."


def _each(of: Sequence[Line], *, alone: bool) -> list[tuple[Line, Line]]:
    return [(one, one["alone"] if alone else one) for one in of]


def _is(counted: str, line: Line, said: Line) -> bool:
    measures = said["verdict"] == "measures_storage"
    if counted == "not believed":
        return not (measures and said["confidence"] >= BELIEVED)
    if counted == "accused":
        return not measures and not own_settings(said, line["also"])
    return bool(said[counted])


def beside_all(staged: Sequence[Line]) -> str:
    """Say of how many of these runs findings may be true of the host, and what that rests on."""
    busy = sum(one["busy"] for one in staged)
    return (
        f"{busy} of {len(staged)} runs were not alone: others used {100 * BUSY:.0f} % of the CPUs or more "
        f"before they began. The hypervisor counts, too, where it was seen to take {100 * STOLEN:.0f} % or "
        "more during them. "
        f"{taken_by_others(staged)}"
    ).rstrip()


def taken_by_others(staged: Sequence[Line]) -> str:
    """Say what others on the CPUs could take of rates in the median of these runs, where it was seen."""
    shares = sorted(row["taken"] for row in staged if row.get("taken") is not None)
    if not shares:
        return ""
    least, usual, most = (f"{100 * one:.0f} %" for one in (shares[0], median(shares), shares[-1]))
    return f"Those could take {least} to {most} of a rate, {usual} in the median."


def own_settings(said: Line, also: Sequence[str]) -> bool:
    """Tell whether a run is said to be limited by nothing else than what is true beside.

    What decides counts: a suspicion beside it decides nothing.
    """
    limits = [rule for rule, _, effect in findings(said["plain"]) if effect == "limited"]
    return said["verdict"] == "limited" and all(rule in also for rule in limits)


def _cell(said: Line) -> str:
    first = next((f", `{rule}`" for rule, _ in said["findings"]), "")
    named = " (named)" if said["named"] else ""
    return f"{SAID[said['verdict']]} {said['confidence']:.0%}{first}{named}"
