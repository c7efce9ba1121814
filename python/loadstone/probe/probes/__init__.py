"""The probes, as one table. Adding one is a file and a row, and a row of `explanations.predictions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.probe.probes import (
    alignment,
    block_size,
    depth,
    depth_one,
    first_pass,
    flushes,
    generator,
    heartbeat,
    longer,
    order,
    payload,
    position,
    same_again,
    two_targets,
    written,
)

if TYPE_CHECKING:
    from loadstone.probe.probe import Probe

PROBES: Final[tuple[Probe, ...]] = (
    generator.PROBE,
    depth.PROBE,
    block_size.PROBE,
    depth_one.PROBE,
    same_again.PROBE,
    position.PROBE,
    heartbeat.PROBE,
    two_targets.PROBE,
    alignment.PROBE,
    order.PROBE,
    written.PROBE,
    first_pass.PROBE,
    payload.PROBE,
    flushes.PROBE,
    longer.PROBE,
)
