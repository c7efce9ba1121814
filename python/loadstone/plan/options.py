"""How a Workload is to be resolved. Knows no Workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.plan.model import HeaderLayout

if TYPE_CHECKING:
    from loadstone.plan.stream import TotalRate

DEFAULT_GRACE_NS: Final = 10_000_000_000


@dataclass(frozen=True, slots=True)
class ResolveOptions:
    """How to resolve.

    `keep_ioengine`: libaio runs on libaio. `per_clone_units`: every clone is a
    unit of its own, not one per job. `interval_ns` None: chosen. `read_only`:
    refuse jobs that write. `aux_directory`: where states of verification are; `header_layout`: for which
    fios it writes headers. `base_directory`: what relative paths start from. `rate`:
    arrivals of all that runs at the same time. `journal`: note every verified write.
    """

    keep_ioengine: bool = False
    per_clone_units: bool = False
    interval_ns: int | None = None
    grace_ns: int = DEFAULT_GRACE_NS
    read_only: bool = False
    base_directory: str | None = None
    rate: TotalRate | None = None
    journal: bool = False
    aux_directory: str | None = None
    header_layout: HeaderLayout = HeaderLayout.LATER
