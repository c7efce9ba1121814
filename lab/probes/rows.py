"""One situation as one line of a file: what was drawn, what was seen, what was said.

Knows the shape of a line, and how a line is weighed again when the weights are others. Reads no page.
"""

from __future__ import annotations

import json
import math
import random
import shutil
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from lab.probes.draw import KINDS, kind_of
from lab.probes.simulate import answered, attempt
from lab.rules_digest import choice_digest, rules_digest

from loadstone.analysis.summary import summarise
from loadstone.audit.belief import CREDIBLE
from loadstone.audit.from_bundle import cases
from loadstone.audit.judge import as_found, told
from loadstone.bundle.read import Bundle
from loadstone.explanations.job_facts import JobFacts
from loadstone.explanations.readings import CONTENDED, NO_RATES, OF_OTHERS, Probed, left
from loadstone.explanations.weigh import weigh

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from lab.probes.kind import SituationKind

    from loadstone.audit.case import Case
    from loadstone.audit.rule import Rule
    from loadstone.explanations.readings import ProbeReading
    from loadstone.verdict import Verdict

Row = dict[str, Any]
UNLISTED: Final = 0.25
"""So many lies for one in the list are taken to have a cause that is in none."""
MOST_TAKEN: Final = 0.95
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
        weights = weigh(self.facts, self.probed, self.found, self.checked, without=without)
        return {one.explanation.name: one.probability for one in weights}


def row_of(seed: int, each: int = 1, bundles: Path | None = None) -> Row:
    """Draw, run and judge the situation of a seed, and probe one of `each` of every kind.

    `bundles`: where its bundle stays, so that other rules can judge it.
    """
    kind = kind_of(seed)
    probing = (seed // 2) % each == 0
    staged = attempt(kind.name, seed, probing=probing, keep=bundles / str(seed) if bundles else None)
    drawn = {
        "seed": seed,
        "kind": kind.name,
        "change": round(staged.change, 4),
        "rate": round(staged.base.main.rate, 1),
        "chosen_by": choice_digest(),
        "tried": _document(staged.probed),
        "tried_without": _document(staged.probed_without),
    }
    return drawn | _judged(staged.case, staged.rules, staged.probed)


def _document(probed: Probed | None) -> Row | None:
    return probed.model_dump(mode="json") if probed is not None else None


def _judged_again(row: Row, bundle: Path) -> Row:
    """Return a line as the present rules judge its bundle; what was tried stays as it was chosen then."""
    (case,) = cases(summarise(Bundle.open(bundle)))
    probed = Probed.model_validate(row["tried"]) if row["tried"] else None
    return row | _judged(case, answered(case), probed)


def _judged(case: Case, rules: Sequence[Rule], probed: Probed | None) -> Row:
    plain = as_found(case, rules)
    assert case.job_facts is not None
    return {
        "rules": rules_digest(),
        "facts": asdict(case.job_facts),
        "plain": said_of(plain),
        "told": [told(plain).kind, told(plain).confidence],
        "without_rule": _without_each(case, plain, rules),
        "probed": said_of(told(as_found(replace(case, probed=probed)))) if probed else None,
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


def _without_each(case: Case, plain: Verdict, rules: Sequence[Rule]) -> Row:
    """Return what would be said if a rule that found something were not there."""
    by_probe: Row = {}
    for name in dict.fromkeys(one.rule for one in plain.causes):
        verdict = as_found(case, [rule for rule in rules if rule.name != name])
        first = next(iter(findings(said_of(verdict))), None)
        by_probe[name] = [verdict.kind, first[0] if first else None]
    return by_probe


def findings(said: Row) -> list[list[Any]]:
    """Return what a verdict rests on."""
    return [one for one in said["causes"] if one[2] != "note" and one[1] >= CREDIBLE]


def weighable(row: Row, *, probed: bool = True, without: bool = False) -> Weighable:
    """Return what a line's explanations are weighed from. `without`: its own is not in the list."""
    plain = row["plain"]
    tried = row["tried_without" if without else "tried"]
    return Weighable(
        JobFacts(**row["facts"]),
        Probed.model_validate(tried) if probed and tried else None,
        {rule: sure for rule, sure, effect in plain["causes"] if effect != "note"},
        tuple(plain["checked"]),
    )


def beside_others(row: Row) -> Row:
    """Return a line as its probes would have been beside others on the CPUs: what those took is drawn.

    Everything takes longer there: of half of the lines only some of the probes come to their turn.
    """
    chance = random.Random(f"beside others {row['seed']}")
    share = 1 - math.exp(chance.uniform(math.log(1 - MOST_TAKEN), math.log(1 - CONTENDED)))

    cut = random.Random(f"broken off {row['seed']}")
    part = cut.choice((1.0, cut.random()))

    def disturbed(reading: ProbeReading) -> ProbeReading:
        if reading.name in NO_RATES:
            return reading
        off = chance.gauss(0.0, OF_OTHERS * -left(share))
        return reading.model_copy(update={"value": reading.value + off})

    def seen(tried: Row | None) -> Row | None:
        if tried is None:
            return None
        whole = Probed.model_validate(tried)
        alone = whole.model_copy(update={"tried": whole.tried[: max(1, round(part * len(whole.tried)))]})
        beside = tuple(one.model_copy(update={"taken": share}) for one in alone.tried)
        probed = alone.model_copy(update={"tried": beside}).beside_others(share)
        every = [
            one.model_copy(update={"readings": tuple(disturbed(undisturbed) for undisturbed in one.readings)})
            for one in probed.tried
        ]
        return probed.model_copy(update={"tried": tuple(every)}).model_dump(mode="json")

    return row | {name: seen(row.get(name)) for name in ("tried", "tried_without")}


def kind_row(row: Row) -> SituationKind:
    """Return the kind of a line."""
    return KINDS[row["kind"]]


def counts(row: Row) -> bool:
    """Tell whether the cause of a line changed its number, so that it is a lie at all."""
    kind = kind_row(row)
    return kind.honest or not kind.counterfactual or abs(row["change"]) >= LEAST_CHANGE


def read(path: Path) -> list[Row]:
    """Return the lines of a file, of a seed the last one; none where it does not exist."""
    if not path.exists():
        return []
    every = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    return list({row["seed"]: row for row in every}.values())


def collect(
    first: int,
    last: int,
    path: Path | None,
    each: int = 1,
    *,
    bundles: Path | None = None,
    kinds: Sequence[str] | None = None,
) -> Iterator[Row]:
    """Yield the situations of seeds: lines of the present rules as they stand in the file, others anew.

    A line of other rules is judged again where its bundle is kept, and run again where not.
    """
    known = {row["seed"]: row for row in read(path)} if path else {}
    for folder in (path.parent if path else None, bundles):
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
    for seed in range(first, last + 1):
        if kinds and kind_of(seed).name not in kinds:
            continue
        row = known.get(seed)
        if row is None or row.get("rules") != rules_digest():
            row = _anew(seed, row, each, bundles)
            if path:
                with path.open("a") as file:
                    file.write(json.dumps(row) + "\n")
        yield row


def _anew(seed: int, known: Row | None, each: int, bundles: Path | None) -> Row:
    bundle = bundles / str(seed) if bundles else None
    try:
        if bundle is not None and bundle.exists():
            if known is not None and "failed" not in known:
                return _judged_again(known, bundle)
            shutil.rmtree(bundle)
        return row_of(seed, each, bundles)
    except RuntimeError as error:
        return {"seed": seed, "kind": kind_of(seed).name, "rules": rules_digest(), "failed": str(error)}
