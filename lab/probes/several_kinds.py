"""Kinds of situations in which several causes lie behind a number at once; none of them is fitted on.

A kind is two rows of the other tables, one after the other: the second is drawn against what the device does
without the first. Any of their explanations is right. Runs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lab.probes.device_kinds import DEVICE_KINDS
from lab.probes.host_kinds import HOST_KINDS
from lab.probes.kind import SituationKind

if TYPE_CHECKING:
    import random

    from lab.probes.situation import Healthy, Situation

FAMILY: Final = "several"
_BY_NAME: Final = {one.name: one for one in (*DEVICE_KINDS, *HOST_KINDS)}


def _both(first: str, second: str) -> SituationKind:
    one, other = _BY_NAME[first], _BY_NAME[second]
    directions = {one.direction, other.direction} - {"any"}
    if len(directions) > 1:
        raise ValueError(f"{first} reads and {second} writes")

    def shape(situation: Situation, chance: random.Random) -> None:
        for part in (one, other):
            if part.shape is not None:
                part.shape(situation, chance)

    def cause(situation: Situation, chance: random.Random, without: Healthy) -> None:
        for part in (one, other):
            if part.cause is not None:
                part.cause(situation, chance, without)

    return SituationKind(
        f"{first}_and_{second}",
        FAMILY,
        tuple(dict.fromkeys((*one.truth, *other.truth))),
        tuple(dict.fromkeys((*one.rules, *other.rules))),
        next(iter(directions), "any"),
        shape,
        cause,
        counterfactual=one.counterfactual and other.counterfactual,
        in_device=one.in_device or other.in_device,
    )


SEVERAL_KINDS: Final = (
    _both("iops_limit", "neighbour"),
    _both("bandwidth_limit", "first_touch_writes"),
    _both("cache", "scan"),
    _both("zeros", "iops_limit"),
    _both("unwritten", "bandwidth_limit"),
    _both("write_cache_ends", "steal"),
    _both("cleaning", "few_processors"),
    _both("page_cache", "somebody_else"),
)
