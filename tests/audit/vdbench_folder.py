"""An output directory of vdbench as it writes one, made from a few numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = (
    *("tod", "Run", "Interval", "reqrate", "rate", "MB/sec", "bytes/io", "read%", "resp", "read_resp"),
    *("write_resp", "resp_max", "resp_std", "xfersize", "threads", "rdpct", "rhpct", "whpct", "seekpct"),
    *("lunsize", "version", "compratio", "dedupratio", "queue_depth", "cpu_used", "cpu_user", "cpu_kernel"),
    *("cpu_wait", "cpu_idle"),
)
FILE_COLUMNS = (
    *("tod", "timestamp", "Run", "Interval", "Xfersize", "Threads", "Reqrate", "Rate", "Resp", "Resp_std"),
    *("Resp_max", "MB/sec", "MB_read", "MB_write", "Read_rate", "Read_resp", "Read_resp_std"),
    *("Read_resp_max", "Write_rate", "Write_resp", "cpu_used"),
)


@dataclass
class VdbenchRun:
    """A run of one interval a second; `bytes_per_io` is what was moved, `xfersize` what the column says."""

    name: str = "rd1"
    rate: float = 1000.0
    reqrate: str = "9999988.0000"
    bytes_per_io: int = 4096
    xfersize: str = "4096"
    read_percent: float = 100.0
    asked_read_percent: str = ""
    threads: int = 8
    warmup: int = 0
    elapsed: int = 10
    resp_ms: float = 8.0
    loops: str = "None"
    average: bool = True
    histogram_extra: int = 0
    """I/Os in histogram.html beyond those of the average: vdbench of 2016 counts the warmup there."""
    changed: dict[str, str] = field(default_factory=dict)

    @property
    def first(self) -> int:
        return self.warmup + 1 if self.warmup else 2

    @property
    def last(self) -> int:
        return self.warmup + self.elapsed

    def row(self, at: int, interval: str) -> dict[str, str]:
        reads = self.asked_read_percent or f"{self.read_percent:.4f}"
        return (
            dict.fromkeys(COLUMNS, "n/a")
            | {
                "tod": f"10:{at // 60:02d}:{at % 60:02d}.001",
                "Run": self.name,
                "Interval": interval,
                "reqrate": self.reqrate,
                "rate": f"{self.rate:.4f}",
                "MB/sec": f"{self.rate * self.bytes_per_io / (1 << 20):.4f}",
                "bytes/io": str(self.bytes_per_io),
                "read%": f"{self.read_percent:.4f}",
                "resp": f"{self.resp_ms:.4f}",
                "read_resp": f"{self.resp_ms:.4f}",
                "write_resp": f"{self.resp_ms:.4f}",
                "resp_max": f"{self.resp_ms * 9:.4f}",
                "resp_std": f"{self.resp_ms / 2:.4f}",
                "xfersize": self.xfersize,
                "threads": f"{self.threads}.0000",
                "rdpct": reads,
                "seekpct": "100.0000",
                "queue_depth": f"{self.rate * self.resp_ms / 1e3:.4f}",
                "cpu_used": "3.1000",
            }
            | self.changed
        )


def write(
    path: Path, *runs: VdbenchRun, parameters: str | None = None, flatfile: bool = True, cut_bytes: int = 0
) -> Path:
    """Write the pages; `cut_bytes` are missing from the end of the flatfile."""
    path.mkdir(parents=True, exist_ok=True)
    lines, totals, counts = [" ".join(("", *COLUMNS))], ["Run totals"], ["Total response time histogram."]
    at = 0
    for run in runs:
        start = f"10:00:00.001 Starting RD={run.name}; I/O rate: {run.reqrate}; elapsed={run.elapsed}"
        start += f" warmup={run.warmup}" if run.warmup else ""
        totals += [f"<i><b>{start}; For loops: {run.loops}</b></i>", ""]
        counts += [f"<i><b>{start}; For loops: {run.loops}</b></i>", "", "Reads and writes:"]
        for interval in range(1, run.last + 1):
            at += 1
            lines.append(" ".join(run.row(at, str(interval)).values()))
        if not run.average:
            continue
        average = run.row(at, f"avg_{run.first}-{run.last}")
        lines.append(" ".join(average.values()))
        done = round(run.rate * (run.last - run.first + 1)) + run.histogram_extra
        counts.append(f"    0.000 <       max        {done}   100.0000   100.0000")
        totals += [
            "interval i/o MB/sec bytes read resp queue",
            "rate 1024**2 i/o pct time depth",
            " ".join(
                average[name]
                for name in ("tod", "Interval", "rate", "MB/sec", "bytes/io", "read%", "resp", "queue_depth")
            ),
        ]
    text = "\n".join(lines) + "\n"
    if flatfile:
        (path / "flatfile.html").write_text(text[: len(text) - cut_bytes])
    (path / "totals.html").write_text("<title>Vdbench totals</title><pre>\n" + "\n".join(totals) + "\n")
    (path / "histogram.html").write_text("\n".join(counts) + "\n")
    if parameters is not None:
        (path / "parmfile.html").write_text(
            f"<pre>\n\n* Contents of parameter file: a.parm\n\n{parameters}\n"
        )
    return path


def write_files(path: Path, *, older: bool = False, **columns: str) -> Path:
    """Write the flatfile of a run in a file system, whose columns have other names.

    `older`: before 5.04.06, when those of all operations together had small letters.
    """
    path.mkdir(parents=True, exist_ok=True)
    small = ("Rate", "Reqrate", "Resp", "Resp_max", "Resp_std")
    names = [name.lower() if older and name in small else name for name in FILE_COLUMNS]
    rows = [" ".join(("", *names))]
    for at, interval in enumerate((*map(str, range(1, 11)), "avg_2-10"), start=1):
        told = dict.fromkeys(FILE_COLUMNS, "0") | {
            "tod": f"10:00:{at:02d}.001",
            "timestamp": "04/11/2019-10:00:00-ICT",
            "Run": "rd1",
            "Interval": interval,
        }
        rows.append(" ".join((told | columns).values()))
    (path / "flatfile.html").write_text("\n".join(rows) + "\n")
    return path


def write_files_summary(path: Path, rows: dict[str, str]) -> Path:
    """Write totals.html alone of runs in file systems: names of runs, and the line of their average."""
    path.mkdir(parents=True, exist_ok=True)
    upper = (
        "Nov 22, 2026 ..Interval.. .ReqstdOps... ...cpu%...  read ....read..... ....write.... ..mb/sec... "
        "mb/sec .xfer.. ...mkdir.... ....open...."
    )
    lower = (
        "                            rate   resp total  sys   pct   rate   resp   rate   resp  read write  "
        "total    size  rate   resp  rate   resp"
    )
    lines = ["<title>Vdbench out/totals.html</title><pre>", "Run totals"]
    for name, row in rows.items():
        start = f"10:00:00.001 Starting RD={name}; elapsed=3; fwdrate=200; For loops: None"
        lines += [f"<i><b>{start}</b></i>", "", upper, lower, f"10:00:03.080      {row}", ""]
    (path / "totals.html").write_text("\n".join(lines))
    return path
