"""The kernel's way of listing CPUs: `0-2,5`. Knows no file that holds one."""

from __future__ import annotations


def numbers(listed: str) -> tuple[int, ...]:
    """Return the numbers of a list in its order; none of an empty one, as a node without CPUs has it."""
    ends = [part.partition("-") for part in listed.strip().split(",") if part]
    return tuple(cpu for first, _, last in ends for cpu in range(int(first), int(last or first) + 1))
