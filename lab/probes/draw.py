"""Situations from a seed: a simulated device, a job, and what lies behind its number.

Parameters are drawn log-uniform. A cause counts only where it changes the number: limits are drawn as a
share of what the device does without them, which is measured first.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from lab.probes.device_kinds import DEVICE_KINDS
from lab.probes.host_kinds import HONEST_KINDS, HOST_KINDS
from lab.probes.several_kinds import FAMILY, SEVERAL_KINDS
from lab.probes.situation import bare

if TYPE_CHECKING:
    from lab.probes.kind import SituationKind
    from lab.probes.situation import Healthy, Situation

LIES: Final = (*DEVICE_KINDS, *HOST_KINDS, *SEVERAL_KINDS)
KINDS: Final[dict[str, SituationKind]] = {one.name: one for one in (*LIES, *HONEST_KINDS)}
FAMILIES: Final = tuple(dict.fromkeys(one.family for one in LIES))
NEVER_FITTED: Final = frozenset({FAMILY})
"""Families that no fit has ever seen."""


def kind_of(seed: int) -> SituationKind:
    """Return the kind that a seed stands for: every second one is honest."""
    half = seed // 2
    return LIES[half % len(LIES)] if seed % 2 else HONEST_KINDS[half % len(HONEST_KINDS)]


def healthy(kind: SituationKind, seed: int) -> Situation:
    """Draw the device and the job, without a cause."""
    chance = random.Random(f"{kind.name}-{seed}")
    situation = bare(kind.name, seed, chance, kind.direction)
    situation.truth = frozenset(kind.truth)
    if kind.shape is not None:
        kind.shape(situation, chance)
    return situation


def drawn(kind: SituationKind, seed: int, without: Healthy) -> Situation:
    """Draw the same with its cause in it."""
    situation = healthy(kind, seed)
    if kind.cause is not None:
        kind.cause(situation, random.Random(f"cause-{kind.name}-{seed}"), without)
    return situation
