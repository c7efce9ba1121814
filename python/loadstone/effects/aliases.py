"""Which effects of an experiment cannot be told from each other, by its plan and by its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.effects.design_matrix import written
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.effects.observations import Observations
    from loadstone.effects.studied_metric import StudiedMetric

MOST_MIXED: Final = 3
"""Interactions that are named; of others their number."""


def aliases_of(one: StudiedMetric, factors: tuple[int, ...], table: Observations) -> list[str]:
    """Return what an effect cannot be told from, by the plan of the experiment and by its runs."""
    name = one.model.design.name(factors)
    aliases = [b if a == name else a for a, b in table.aliased if name in (a, b)]
    for term, others in one.model.design.unknown:
        own = one.model.design.name(term)
        aliases += others if own == name else ((own,) if name in others else ())
    return list(dict.fromkeys(aliases))


def aliased(table: Observations, studied: Sequence[StudiedMetric]) -> list[tuple[str, str]]:
    """Return the pairs of effects that cannot be told apart, each once."""
    pairs = list(table.aliased)
    for one in studied:
        for term, others in one.model.design.unknown:
            pairs += [(other, one.model.design.name(term)) for other in others]
    unique_pairs: dict[tuple[str, ...], tuple[str, str]] = {}
    for pair in pairs:
        unique_pairs.setdefault(tuple(sorted(pair)), pair)
    return list(unique_pairs.values())


def mixed_in_words(mixed: Sequence[tuple[str, str, float]]) -> list[str]:
    """Return a sentence for each main effect that takes in parts (0 to 1) of interactions, largest first."""
    of_effect: dict[str, list[tuple[str, float]]] = {}
    for name, other, part in mixed:
        of_effect.setdefault(name, []).append((other, part))
    sentences = []
    for name, others in of_effect.items():
        largest = sorted(others, key=lambda one: -round(one[1], 6))
        words = [f"{written(other)} ({units.percent(100 * part)})" for other, part in largest[:MOST_MIXED]]
        if (more := len(others) - MOST_MIXED) > 0:
            words.append(say("effects.model.mixed_more", count=more))
        sentences.append(say("effects.model.mixed", term=written(name), others=", ".join(words)))
    return sentences
