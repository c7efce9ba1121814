"""The rules, one to a file: this table is all that knows them by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit.rules import (
    above_ceiling,
    attributes_cached,
    clock_jump,
    depth_not_reached,
    first_pass_allocation,
    foreign_load,
    generator_cpu,
    governor,
    io_errors,
    link_ceiling,
    littles_law,
    network_loss,
    not_repeatable,
    not_steady,
    overlapping_clones,
    page_cache_read,
    random_equals_sequential,
    rate_not_reached,
    reducible_payload,
    resized_on_path,
    same_sequence_again,
    short_stroke,
    state_differs,
    throttled,
    too_few_samples,
    unit_mixup,
    unwritten_region,
    volatile_ack,
    workload_drift,
    writeback_absorbed,
)

if TYPE_CHECKING:
    from loadstone.audit.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    io_errors.RULE,
    too_few_samples.RULE,
    workload_drift.RULE,
    page_cache_read.RULE,
    attributes_cached.RULE,
    writeback_absorbed.RULE,
    unwritten_region.RULE,
    first_pass_allocation.RULE,
    reducible_payload.RULE,
    overlapping_clones.RULE,
    same_sequence_again.RULE,
    volatile_ack.RULE,
    foreign_load.RULE,
    throttled.RULE,
    generator_cpu.RULE,
    governor.RULE,
    depth_not_reached.RULE,
    rate_not_reached.RULE,
    littles_law.RULE,
    resized_on_path.RULE,
    not_steady.RULE,
    network_loss.RULE,
    clock_jump.RULE,
    random_equals_sequential.RULE,
    link_ceiling.RULE,
    above_ceiling.RULE,
    short_stroke.RULE,
    state_differs.RULE,
    not_repeatable.RULE,
    unit_mixup.RULE,
)
