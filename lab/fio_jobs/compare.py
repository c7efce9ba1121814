"""What fio and `loadstone fio` did with one job file, and where they differ.

Knows outputs by their keys and words, and per-I/O logs by their lines. Which of the two is right is not its
business.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

SIGMAS: Final = 5.0
_OURS: Final = re.compile(
    r"loadstone (version|notes)|disk_util\.(read|write)_sectors|"
    r"jobs\.(job_start|latency_target_ns|latency_window_us)"
)
"""Keys that fio has had since 3.33, and our own."""
_CHANCE: Final = re.compile(
    r"lat\(?T|Laying|note|ios=N|aggr\|T?\d*|^bw|^iops|latency:target|latpercentiles|sync\(?T|clatpercentiles"
)
"""Lines that a faster run may lack, that changed since fio 3.33, or that are about how it is run."""
_OPS: Final = ("read", "write", "trim")
_COUNTED: Final = (*_OPS, "mixed")
"""`unified_rw_reporting` has one section in place of three, or beside them."""
_BINS: Final = 16
_ENOUGH: Final = 100
"""I/Os of which a common divisor, or a share of a place, says something."""
_DRAWN_BLOCKS: Final = 12
"""Where sizes are drawn, passes end up to so many of the largest blocks apart."""
_IN_SEQUENCE: Final = 0.9
"""Above this share of I/Os that follow each other no place is drawn."""
_DRAWN_FILES: Final = re.compile(r"^filesize=\w+-|file_service_type=random", re.MULTILINE)
"""Each program draws the sizes of its files, or which one is next."""
_OTHER_FLUSHES: Final = re.compile(r"^fdatasync=", re.MULTILINE)
"""fio 3.33 does not count these, and beside reads it flushes again before each of them; 3.42 is as ours."""
_VERIFIED: Final = re.compile(r"^verify=", re.MULTILINE)
"""What is read back is as much as was written, which is drawn where there are reads besides."""
_DRAWN_PLACES: Final = re.compile(r"^rw=rand|^filesize=\w+-|file_service_type=random", re.MULTILINE)
_PLACED: Final = re.compile(r"random_distribution=(normal|zoned)")
"""Distributions that say where; of others each program draws which blocks are hot."""


@dataclass(frozen=True, slots=True)
class Log:
    """The lines of one job's per-I/O log, of reads, writes and trims."""

    direction: tuple[int, ...]
    size: tuple[int, ...]
    offset: tuple[int, ...]

    @classmethod
    def read(cls, path: Path) -> Log:
        """Read one; flushes have no offset and are left out."""
        rows = [[int(word, 0) for word in line.split(",")[:5]] for line in path.read_text().splitlines()]
        rows = [row for row in rows if row[2] < len(_OPS)]
        return cls(*(tuple(row[column] for row in rows) for column in (2, 3, 4)))

    def share_in_sequence(self) -> float:
        """Share of I/Os that begin where the one before them in the log ended."""
        ends = [begin + size for begin, size in zip(self.offset, self.size, strict=True)]
        return sum(a == b for a, b in zip(self.offset[1:], ends, strict=False)) / max(1, len(ends) - 1)


@dataclass(slots=True)
class FioResult:
    """What one program did."""

    code: int
    said: str
    document: dict[str, Any] = field(default_factory=dict)
    terse: list[str] = field(default_factory=list)
    human: list[str] = field(default_factory=list)
    logs: dict[str, Log] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)

    @property
    def jobs(self) -> list[dict[str, Any]]:
        """The jobs of the document by name; clones of one name by what they wrote and read."""
        return sorted(
            self.document.get("jobs", []),
            key=lambda job: (job.get("jobname", ""), _numbers(job, "io_bytes")),
        )


def read(directory: Path, code: int, said: str) -> FioResult:
    """Read what a run left in its directory."""
    done = FioResult(code, said)
    output = directory / "out.txt"
    text = output.read_text(errors="replace") if output.exists() else ""
    if (begin := text.find("\n{")) >= 0 or text.startswith("{"):
        begin = max(begin, 0)
        try:
            done.document, end = json.JSONDecoder().raw_decode(text[begin:].lstrip())
            text = text[:begin] + text[begin:].lstrip()[end:]
        except json.JSONDecodeError:
            pass
    for line in text.splitlines():
        (done.terse if re.match(r"\d;fio-", line) else done.human).append(line)
    for path in sorted(directory.glob("log_lat.*.log")):
        done.logs[path.name] = Log.read(path)
    files = (path for path in directory.rglob("*") if path.is_file())
    done.files = {
        str(path.relative_to(directory)): path.stat().st_size
        for path in files
        if path.suffix not in (".log", ".txt", ".state")
        and path.name != "job.fio"
        and not path.name.startswith(".")
    }
    return done


def differences(real: FioResult, ours: FioResult, *, timed: bool, text: str) -> list[str]:
    """Return what differs, in words. `timed`: the clock ends it; `text` is the job file."""
    mismatches: list[str] = []
    if real.code != ours.code:
        mismatches.append(f"exit {real.code}, ours {ours.code}: {_why(ours if ours.code else real)}")
    if not (real.document and ours.document):
        return mismatches
    left, right = real.jobs, ours.jobs
    if [job.get("jobname") for job in left] != [job.get("jobname") for job in right]:
        mismatches.append(f"{len(left)} jobs, ours {len(right)}")
        return mismatches
    drawn = any(len(set(log.size)) > 1 for log in real.logs.values())
    largest = max((size for log in real.logs.values() for size in log.size), default=0)
    mixed = any(sum(count > 0 for count in _numbers(job, "io_bytes")) > 1 for job in left)
    slack = largest * _DRAWN_BLOCKS if drawn else 0
    if mixed and _VERIFIED.search(text):
        slack += largest * 4 * math.isqrt(max((len(log.size) for log in real.logs.values()), default=0))
    for one, other in zip(left, right, strict=True):
        of_job = _job(one, other, timed=timed, slack=slack, flushes=not _OTHER_FLUSHES.search(text))
        mismatches += [f"{one['jobname']}: {mismatch}" for mismatch in of_job]
    if any(job["error"] for job in left):
        return mismatches  # How far it got before the error is not for comparing.
    if not timed and real.files != ours.files:
        apart = sorted(set(real.files.items()) ^ set(ours.files.items()))
        mismatches.append(f"files: {apart[:4]}")
    if len(real.logs) != len(ours.logs):
        mismatches.append(f"{len(real.logs)} logs, ours {len(ours.logs)}")
        return mismatches
    clones = "numjobs" in text
    logs = [_in_order(done.logs) if clones else list(done.logs.values()) for done in (real, ours)]
    for real_log, our_log in zip(*logs, strict=True):
        mismatches += _log(real_log, our_log, timed=timed, text=text)
    return mismatches


def shapes(real: FioResult, ours: FioResult) -> list[str]:
    """Return how outputs differ in keys, fields and lines."""
    mismatches = []
    their_keys, our_keys = _keys(real.document), _keys(ours.document)
    if missing := sorted(their_keys - our_keys):
        mismatches.append(f"json lacks {missing[:5]}")
    if more := sorted(key for key in our_keys - their_keys if not _OURS.fullmatch(key)):
        mismatches.append(f"json has more {more[:5]}")
    fields = [sorted(line.count(";") for line in done.terse) for done in (real, ours)]
    if fields[0] != fields[1]:
        mismatches.append(f"terse fields {fields[0][:4]}, ours {fields[1][:4]}")
    lines = [{_skeleton(line) for line in done.human} for done in (real, ours)]
    lacking, extra = (
        [line for line in sorted(some) if line and not _CHANCE.search(line)]
        for some in (lines[0] - lines[1], lines[1] - lines[0])
    )
    if lacking or extra:
        mismatches.append(f"normal lacks {lacking[:4]}, has {extra[:4]}")
    return mismatches


def _keys(value: Any, at: str = "") -> set[str]:
    if isinstance(value, dict):
        return {
            key
            for name, inner in value.items()
            for key in {_named(at, name)} | _keys(inner, _named(at, name))
        }
    if isinstance(value, list):
        return {key for inner in value for key in _keys(inner, at)}
    return set()


def _named(at: str, name: str) -> str:
    return f"{at}.{'N' if re.fullmatch(r'[<>=]*[0-9.]+', name) else name}".removeprefix(".")


def _skeleton(line: str) -> str:
    """Return the words of a line without its numbers and units."""
    words = re.sub(r"\(?\b(?:nsec|usec|msec)\b\)?", "T", line)
    words = re.sub(r"[0-9][0-9.,k]*(?:[KMGT]i?)?(?:B/s|iB/s|B|iB)?[a-z%]*", "N", words)
    return re.sub(r"\s+", "", words)[:24]


def _why(done: FioResult) -> str:
    lines = [line for line in done.said.splitlines() if line.strip() and "note" not in line[:5]]
    return " / ".join(lines[:3])[:220] or "said nothing"


def _job(real: dict[str, Any], ours: dict[str, Any], *, timed: bool, slack: int, flushes: bool) -> list[str]:
    mismatches = []
    if real["error"] != ours["error"]:
        mismatches.append(f"error {real['error']}, ours {ours['error']}")
    counts = [_numbers(job, "total_ios") for job in (real, ours)]
    moved = [sum(_numbers(job, "io_bytes")) for job in (real, ours)]
    for op, a, b in zip(_COUNTED, *counts, strict=True):
        if bool(a) != bool(b):
            mismatches.append(f"{a} {op}s, ours {b}")
    if timed or real["error"]:
        return mismatches
    if abs(moved[0] - moved[1]) > slack:
        mismatches.append(f"{moved[0]} bytes in {sum(counts[0])}, ours {moved[1]} in {sum(counts[1])}")
    synced = [job.get("sync", {}).get("total_ios", 0) for job in (real, ours)]
    mixed = sum(count > 0 for count in counts[0]) > 1
    if flushes and not mixed and synced[0] != synced[1] and not slack:
        mismatches.append(f"{synced[0]} flushes, ours {synced[1]}")
    return mismatches


def _numbers(job: dict[str, Any], name: str) -> list[int]:
    return [job.get(op, {}).get(name, 0) for op in _COUNTED]


def _in_order(logs: dict[str, Log]) -> list[Log]:
    """Logs by what they hold: fio numbers clones from the last."""
    return sorted(
        logs.values(), key=lambda log: (min(log.offset, default=0), min(log.size, default=0), len(log.size))
    )


def _log(real: Log, ours: Log, *, timed: bool, text: str) -> list[str]:
    few = min(len(real.size), len(ours.size))
    if not few:
        same = len(real.size) == len(ours.size)
        return [] if same else [f"{len(real.size)} lines, ours {len(ours.size)}"]
    mismatches = _shares("direction", real.direction, ours.direction) + _shares("size", real.size, ours.size)
    drawn, again = len(set(real.size)) > 1, len(set(real.offset)) < len(real.offset)
    units = [math.gcd(*log.offset) for log in (real, ours)]
    if units[0] != units[1] and few > _ENOUGH and not drawn:
        mismatches.append(f"offsets are multiples of {units[0]}, ours of {units[1]}")
    begins = [min(log.offset) for log in (real, ours)]
    ends = [max(map(sum, zip(log.offset, log.size, strict=True))) for log in (real, ours)]
    runs = [log.share_in_sequence() for log in (real, ours)]
    by_chance = again or timed or drawn or runs[0] < _IN_SEQUENCE
    slack = (ends[0] - begins[0]) * (0.06 + 4 / few) if by_chance else 0
    touched = [len(set(log.offset)) for log in (real, ours)]
    noise = (0.5 if drawn else 0.08) * touched[0] + (3 * math.sqrt(touched[0]) if again else 0)
    if not _DRAWN_FILES.search(text):
        if abs(ends[0] - ends[1]) > slack or abs(begins[0] - begins[1]) > slack:
            mismatches.append(f"range {begins[0]}-{ends[0]}, ours {begins[1]}-{ends[1]}")
        if not timed and abs(touched[0] - touched[1]) > noise:
            mismatches.append(f"{touched[0]} offsets touched, ours {touched[1]}")
    if not timed and not drawn and not _DRAWN_PLACES.search(text) and len(set(real.direction)) == 1:
        their_ios, our_ios = (Counter(zip(log.offset, log.size, strict=True)) for log in (real, ours))
        if apart := sorted(((their_ios - our_ios) + (our_ios - their_ios)).elements()):
            mismatches.append(f"{len(apart)} places apart, as {apart[0]}")
    # With a depth the order of completion is the device's.
    if "iodepth" not in text and abs(runs[0] - runs[1]) > 0.1 + 2 / math.sqrt(few):
        mismatches.append(f"{runs[0]:.2f} in sequence, ours {runs[1]:.2f}")
    if _PLACED.search(text) and few > _ENOUGH:
        bins = [[begin * _BINS // max(1, ends[0]) for begin in log.offset] for log in (real, ours)]
        mismatches += _shares("sixteenth", bins[0], bins[1])
    return mismatches


def _shares(what: str, theirs: tuple[int, ...] | list[int], ours: tuple[int, ...] | list[int]) -> list[str]:
    """Say which values' shares lie further apart than two samples of one chance do."""
    left, right = Counter(theirs), Counter(ours)
    n, m = left.total(), right.total()
    mismatches = []
    for value in sorted(left.keys() | right.keys()):
        a, b = left[value] / n, right[value] / m
        pooled = (left[value] + right[value]) / (n + m)
        error = math.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
        if abs(a - b) > SIGMAS * error + 2 / min(n, m):
            mismatches.append(f"{what} {value}: {a:.3f}, ours {b:.3f}")
    return mismatches[:4]
