"""fio's published examples: which are compared with Loadstone, how they are cut, and why others are not.

Knows their names, and for each option the value it gets in both tools so that a run fits a
small file and a few seconds. Holds no text of theirs: they are read where Debian's package
`fio-examples` puts them. docs/fio-examples.md is written from here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

PLACE = Path("/usr/share/doc/fio/examples")


@dataclass(frozen=True)
class Cut:
    """What is changed, and what may differ because chance or the clock decides."""

    changes: dict[str, str] = field(default_factory=dict)
    """Option to its value, or to `other=value`, wherever it stands."""
    timed: bool = False
    """The clock ends it: bytes are not compared."""
    drawn: bool = False
    """Sizes or addresses are drawn: bytes agree to a few blocks, touched places are not compared."""
    spread: bool = True
    """The range of offsets is compared."""
    ordered: bool = True
    """How much is in sequence is compared. Not where Loadstone reads back by address and fio as it
    was written, nor where so much of a file is in flight that its order is the elevator's."""


_FILE = {"filename": "existing"}
_TIMED = {"runtime": "2", "size": "4m"}
_PACED = {"runtime": "runtime=2\nrate_iops=200", "size": "4m"}
"""For as long, but every I/O has a line to be compared, and an unpaced page cache takes a million."""

APPLY: dict[str, Cut] = {
    "1mbs_clients": Cut(
        {"size": "256k", "rate": "1m", "ratemin": "1k", "startdelay": "0", "directory": "here"}
    ),
    "aio-read": Cut({"size": "4m", "directory": "here"}, ordered=False),
    "backwards-read": Cut({"size": "8m"}),
    "basic-verify": Cut(_FILE, ordered=False),
    "butterfly": Cut(_FILE),
    "cmdprio-bssplit": Cut(
        {
            **_FILE,
            "iodepth": "iodepth=16\nio_size=256m",
            "rw": "rw=randrw\nnorandommap",
            "cmdprio_bssplit": "64k/25/2/1:64k/75/3/2:1024k/0,1024k/0",
            "cmdprio_class": "2",
        },
        drawn=True,
        spread=False,
        ordered=False,
    ),
    "cmdprio-percentage": Cut(
        {**_FILE, "iodepth": "iodepth=8\nio_size=128m", "cmdprio_class": "2"}, ordered=False
    ),
    "dedupe-global": Cut({"size": "4m"}),
    "disk-zone-profile": Cut({**_FILE, "zonesize": "256k", "zoneskip": "1m"}),
    "fio-rand-RW": Cut(_PACED, timed=True, spread=False),
    "fio-rand-read": Cut(_PACED, timed=True, spread=False),
    "fio-rand-write": Cut(_PACED, timed=True, spread=False),
    "fio-seq-RW": Cut(_PACED, timed=True, spread=False),
    "fio-seq-read": Cut(_PACED, timed=True, spread=False),
    "fio-seq-write": Cut(_PACED, timed=True, spread=False),
    "fixed-rate-submission": Cut({"size": "2m", "io_submit_mode": "inline"}),
    "flow": Cut({**_TIMED, "filename": "testfile"}, timed=True, spread=False),
    "fsx": Cut({"loops": "20"}, drawn=True),
    "jesd219": Cut({**_FILE, "numjobs": "2"}, drawn=True),
    "poisson-rate-submission": Cut({"size": "1m", "rate_iops": "500", "io_submit_mode": "inline"}),
    "rand-zones": Cut({"size": "8m"}, drawn=True),
    "ssd-steadystate": Cut(_FILE),
    "ssd-test": Cut({"size": "4m", "directory": "here"}),
    "surface-scan": Cut({"fill_device": "size=2m", "create_serialize": "size=2m"}),
    "tiobench-example": Cut({"size": "4m"}),
    "waitfor": Cut({"filename": "data", "filesize": "4m"}),
    "zipf": Cut({"size": "8m"}, drawn=True),
}

_ENGINES = {
    "cpp_null": "cpp_null",
    "cpuio": "cpuio",
    "dev-dax": "dev-dax",
    "dfs": "dfs",
    "exec": "exec",
    "ftruncate": "ftruncate",
    "gfapi": "gfapi",
    "gpudirect-rdmaio-client": "rdma",
    "gpudirect-rdmaio-server": "rdma",
    "http-s3": "http",
    "http-s3-crypto": "http",
    "http-s3-storage-class": "http",
    "http-swift": "http",
    "http-webdav": "http",
    "ime": "ime_psync",
    "libcufile-cufile": "libcufile",
    "libcufile-posix": "libcufile",
    "libhdfs": "libhdfs",
    "libiscsi": "libiscsi",
    "libpmem": "libpmem",
    "librpma_apm-client": "librpma_apm_client",
    "librpma_apm-server": "librpma_apm_server",
    "librpma_gpspm-client": "librpma_gpspm_client",
    "librpma_gpspm-server": "librpma_gpspm_server",
    "mtd": "mtd",
    "nbd": "nbd",
    "netio": "net",
    "netio_multicast": "net",
    "nfs": "nfs",
    "pmemblk": "pmemblk",
    "rados": "rados",
    "rbd": "rbd",
    "rdmaio-client": "rdma",
    "rdmaio-server": "rdma",
    "sg_verify": "sg",
    "sg_verify-fail": "sg",
    "sg_write_same_ndob": "sg",
    "xnvme-zoned": "xnvme",
}
_ZONED = ("libzbc-rand-write", "libzbc-seq-read", "uring-cmd-zoned", "zbd-rand-write", "zbd-seq-read")

WHY_NOT: dict[str, str] = {
    **dict.fromkeys(
        (
            "e4defrag",
            "e4defrag2",
            "falloc",
            "filecreate-ioengine",
            "filedelete-ioengine",
            "filestat-ioengine",
        ),
        "runs; engines without reads and writes are compared by what they count and leave",
    ),
    **{name: f"the engine `{engine}` is not supported" for name, engine in _ENGINES.items()},
    **dict.fromkeys(_ZONED, "`zonemode=zbd`: zoned block devices are not supported"),
    "cross-stripe-verify": "lays 30 jobs over a device of 3.6 TB; cut to a file it is another pattern",
    "enospc-pressure": "fills a file system of 128 GiB",
    "exitwhat": "`exit_what=all` over several stages is refused",
    "iometer-file-access-server": "runs, and as many I/Os; but those cut short because they would overlap "
    "get sizes by chance",
    "latency-profile": "runs, but the search ends with the cut file: Loadstone logs what comes after it",
    "null": "runs, but with `gtod_reduce` fio writes no log",
    "numa": "needs a host with two NUMA nodes",
    "steadystate": "runs, but on `/dev/null` and `/dev/zero` a log line per I/O would be millions of them",
    "uring-cmd-ng": "`sqthread_poll_cpu` is refused; without it, it needs an NVMe device",
    "xnvme-compare": "asks for what the environment says (`rw=${RW}`), with the engine `xnvme`",
}


def cut(text: str, changes: dict[str, str]) -> str:
    """Return a job file with other values, and without the logs it asks for itself."""
    lines = []
    for line in text.splitlines():
        key, equals, _ = line.partition("=")
        name = key.strip()
        if name in {"write_bw_log", "write_lat_log", "log_offset"}:
            continue
        if equals and name in changes:
            value = changes[name]
            lines.append(value if "=" in value else f"{name}={value}")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def document() -> str:
    """Return docs/fio-examples.md."""
    rows = [
        "# fio's published examples",
        "",
        "Written from `tests/equivalence/examples.py`; a test keeps it fresh. *Compared*: fio and",
        "`loadstone fio` run the same file, cut to a small target, with a log line per I/O. Directions,",
        "sizes, bytes, ranges, what is touched and how much of it in sequence must agree.",
        "",
        f"{len(APPLY)} compared, {len(WHY_NOT)} not.",
        "",
        "| example | compared | cut, or why not |",
        "|---|---|---|",
    ]
    for name in sorted((*APPLY, *WHY_NOT)):
        if name in APPLY:
            changes = (
                f"{k}={v}" if "=" not in v else f"{k} becomes {v.replace(chr(10), ' and ')}"
                for k, v in APPLY[name].changes.items()
            )
            rows.append(f"| `{name}` | yes | {', '.join(changes)} |")
        else:
            rows.append(f"| `{name}` | no | {WHY_NOT[name]} |")
    return "\n".join(rows) + "\n"
