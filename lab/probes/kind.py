"""What a kind of situation is: one row of the tables of kinds.

Knows names and functions. Draws nothing itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from lab.probes.situation import Healthy, Situation


@dataclass(frozen=True)
class SituationKind:
    """One row. `truth`: explanations that are right; `rules`: findings that are right of it.

    `counterfactual`: it counts only where it changes the number by a tenth. `in_device`: the simulated
    device does it; otherwise only what its host counts tells of it. `own_limits`: what a limit of the
    medium's own looks like: that such a number is at one of these, nobody can tell whose, is right.
    """

    name: str
    family: str
    truth: tuple[str, ...]
    rules: tuple[str, ...]
    direction: str = "any"
    shape: Callable[[Situation, random.Random], None] | None = None
    cause: Callable[[Situation, random.Random, Healthy], None] | None = None
    counterfactual: bool = True
    in_device: bool = True
    own_limits: tuple[str, ...] = ()

    @property
    def honest(self) -> bool:
        """Whether the number is the storage's, or that of the job's own settings."""
        return self.family == "honest"
