"""What vdbench calls what a job asks for: for what is said about it further on."""

from __future__ import annotations

from typing import Final

_EVERYWHERE: Final = {
    "limits.ramp_ns": "warmup",
    "limits.runtime_ns": "elapsed",
    "mix.rw": "rdpct",
    "mix.rw=read": "rdpct=100",
    "sizes.bs": "xfersize",
    "verification.verify": "validate",
    "engine.direct": "openflags",
    "engine.direct=0": "openflags= without o_direct",
}
OF_SDS: Final = {
    **_EVERYWHERE,
    "engine.iodepth": "threads",
    "limits.io_size": "maxdata",
    "pacing.rate_iops": "iorate",
    "placement.offset": "range",
    "placement.size": "size",
    "schedule.numjobs": "sd",
}
OF_FSDS: Final = {
    **_EVERYWHERE,
    "engine.iodepth": "threads",
    "limits.io_size": "stopafter",
    "pacing.rate_iops": "fwdrate",
    "schedule.numjobs": "threads",
    "work.clear=yes": "format=yes",
    "work.shape.total_bytes": "totalsize",
}
