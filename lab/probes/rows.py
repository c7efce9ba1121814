"""One situation as one line of a file: what was drawn, what was seen, what was said.

Knows the shape of a line, and how a line is weighed again when the weights are others. Reads no page.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from lab.probes.draw import KINDS, kind_of
from lab.probes.simulate import attempt

from loadstone.audit.judge import CREDIBLE, as_found, told
from loadstone.audit.rules import RULES
from loadstone.explanations.job_facts import JobFacts
from loadstone.explanations.readings import Probed
from loadstone.explanations.weigh import weigh

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from lab.probes.kind import Kind
    from lab.probes.simulate import Staged

    from loadstone.audit.case import Case
    from loadstone.audit.rule import Rule
    from loadstone.verdict import Verdict

Row = dict[str, Any]
LEAST_CHANGE: Final = 0.0953
"""ln 1.1: a cause that changes the number by less is no cause of it."""


@dataclass(frozen=True)
class Weighable:
    """What explanations are weighed from."""

    facts: JobFacts
    probed: Probed | None
    found: dict[Any, float]
    checked: tuple[Any, ...]

    def chances(self, without: frozenset[str] = frozenset()) -> dict[str, float]:
        """Weigh, some explanations left out of the list."""
        told = weigh(self.facts, self.probed, self.found, self.checked, without=without)
        return {one.explanation.name: one.probability for one in told}


def row_of(seed: int, each: int = 1) -> Row:
    """Draw, run and judge the situation of a seed, and probe one of `each` of every kind."""
    kind = kind_of(seed)
    probing = (seed // 2) % each == 0
    staged = attempt(kind.name, seed, probing=probing)
    # Each rule answers once: what would be said without one needs no other answers.
    answered = [_answered(rule, staged.case) for rule in RULES]
    plain = as_found(staged.case, answered)
    assert staged.case.job_facts is not None
    return {
        "seed": seed,
        "kind": kind.name,
        "change": round(staged.change, 4),
        "rate": round(staged.base.main.rate, 1),
        "facts": asdict(staged.case.job_facts),
        "plain": said_of(plain),
        "told": [told(plain).kind, told(plain).confidence],
        "without_rule": _without_each(staged, plain, answered),
        "tried": staged.probed.model_dump(mode="json") if staged.probed else None,
        "probed": said_of(told(as_found(replace(staged.case, probed=staged.probed)))) if probing else None,
    }


def said_of(verdict: Verdict) -> Row:
    """Return what a verdict says, in short."""
    return {
        "kind": verdict.kind,
        "confidence": verdict.confidence,
        "causes": [[one.rule, one.confidence, one.effect] for one in verdict.causes],
        "missing": sorted({one.rule for one in verdict.missing}),
        "essential": any(one.essential for one in verdict.missing),
        "checked": list(verdict.checked),
        "explanations": {one.name: one.probability for one in verdict.explanations},
    }


def _answered(rule: Rule, case: Case) -> Rule:
    answer = None if rule.of_hosts else rule.judge(case)
    return rule if answer is None else replace(rule, judge=lambda _: answer)


def _without_each(staged: Staged, plain: Verdict, rules: Sequence[Rule]) -> Row:
    """Return what would be said if a rule that found something were not there."""
    said: Row = {}
    for name in dict.fromkeys(one.rule for one in plain.causes):
        verdict = as_found(staged.case, [rule for rule in rules if rule.name != name])
        first = next(iter(findings(said_of(verdict))), None)
        said[name] = [verdict.kind, first[0] if first else None]
    return said


def findings(said: Row) -> list[list[Any]]:
    """Return what a verdict rests on."""
    return [one for one in said["causes"] if one[2] != "note" and one[1] >= CREDIBLE]


def weighable(row: Row, *, probed: bool = True) -> Weighable:
    """Return what a line's explanations are weighed from."""
    plain = row["plain"]
    return Weighable(
        JobFacts(**row["facts"]),
        Probed.model_validate(row["tried"]) if probed and row["tried"] else None,
        {rule: sure for rule, sure, effect in plain["causes"] if effect != "note"},
        tuple(plain["checked"]),
    )


def kind_row(row: Row) -> Kind:
    """Return the kind of a line."""
    return KINDS[row["kind"]]


def counts(row: Row) -> bool:
    """Tell whether the cause of a line changed its number, so that it is a lie at all."""
    kind = kind_row(row)
    return kind.honest or not kind.counterfactual or abs(row["change"]) >= LEAST_CHANGE


def read(path: Path) -> list[Row]:
    """Return the lines of a file; none where it does not exist."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def collect(first: int, last: int, path: Path | None, each: int = 1) -> Iterator[Row]:
    """Yield the situations of seeds, those in the file as they are, the others run and added to it."""
    known = {row["seed"]: row for row in read(path)} if path else {}
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
    for seed in range(first, last + 1):
        if seed not in known:
            try:
                known[seed] = row_of(seed, each)
            except RuntimeError as error:
                known[seed] = {"seed": seed, "kind": kind_of(seed).name, "failed": str(error)}
            if path:
                with path.open("a") as file:
                    file.write(json.dumps(known[seed]) + "\n")
        yield known[seed]
