"""Which effects of an experiment cannot be told from each other, by its plan and by its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.effects.observations import Observations
    from loadstone.effects.studied_metric import StudiedMetric


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
