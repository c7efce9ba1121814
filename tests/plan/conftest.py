"""What plan tests share: a made-up host, and job text straight to a Plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.formats.fio import ReadOptions, TextSource, read_jobfiles
from loadstone.plan.host_facts import HostFacts, TargetFacts
from loadstone.plan.model import Identity, Namesake, TargetKind
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import Resolution, resolve

if TYPE_CHECKING:
    from loadstone.workload.model import Workload

GIB = 1 << 30

Planner = Callable[..., Resolution]


def device(
    size_bytes: int = 100 * GIB, logical_block_bytes: int = 512, *, punts: bool = False
) -> TargetFacts:
    identity = Identity(device=5, inode=77, special=2048, born_ns=None)
    return TargetFacts(
        TargetKind.BLOCK,
        size_bytes=size_bytes,
        logical_block_bytes=logical_block_bytes,
        identity=identity,
        punts=punts,
    )


def file(
    size_bytes: int = 0, *, exists: bool = True, punts: bool = False, holes: bool = False
) -> TargetFacts:
    return TargetFacts(
        TargetKind.FILE,
        exists=exists,
        size_bytes=size_bytes,
        allocated_bytes=0 if holes else size_bytes,
        punts=punts,
        identity=Identity(device=5, inode=78, special=0, born_ns=None) if exists else None,
    )


def namespace(logical_block_bytes: int = 512) -> TargetFacts:
    return TargetFacts(
        TargetKind.NVME,
        size_bytes=100 * GIB,
        logical_block_bytes=logical_block_bytes,
        identity=Identity(device=5, inode=79, special=60416, born_ns=None),
        namesake=Namesake(
            path="/dev/nvme0n1", identity=Identity(device=5, inode=80, special=66305, born_ns=None)
        ),
    )


KNOWN = {
    "/dev/sda": device(),
    "/dev/sdb": device(),
    "/dev/4kn": device(logical_block_bytes=4096),
    "/dev/zram0": device(punts=True),
    "/dev/ng0n1": namespace(),
    "/dev/ng0n2": namespace(4096),
    "/dev/null": TargetFacts(TargetKind.CHAR),
    "/t/1g": file(GIB),
    "/t/holes": file(GIB, holes=True),
    "/t/tmpfs": file(GIB, punts=True),
    "/t/small": file(4096),
}


def read(text: str, *, strict: bool = False) -> Workload:
    return read_jobfiles(
        [TextSource(text, "job.fio", Path("/nonexistent"))],
        options=ReadOptions(strict_fio_reading=strict, environment={}),
    )


@pytest.fixture
def host() -> HostFacts:
    missing = file(exists=False)
    new = {f"/t/{name}": missing for name in ("new", "a", "b", "c", "data")}
    auto = {
        f"/t/{job}.{clone}.{number}": missing for job in "ab" for clone in range(130) for number in range(4)
    }
    return HostFacts(cpus=(0, 1, 2, 3), memory_bytes=64 * GIB, known={**KNOWN, **new, **auto})


@pytest.fixture
def plan(host: HostFacts) -> Planner:
    """Resolve job text: `plan(text, strict=..., **ResolveOptions)`."""

    def resolved(text: str, *, strict: bool = False, **options: object) -> Resolution:
        return resolve(
            read(text, strict=strict),
            host=host,
            options=ResolveOptions(base_directory="/t", **options),  # type: ignore[arg-type]  # keywords of ResolveOptions
        )

    return resolved
