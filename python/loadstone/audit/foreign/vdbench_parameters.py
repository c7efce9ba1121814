"""What parmfile.html says of a run: where it went, how, and in which sizes.

Knows the few keywords that matter to a judgement, line by line: the grammar as a whole is the
business of the reader of parameter files, which would refuse much of what people have run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loadstone.audit.foreign.vdbench_tables import lines

if TYPE_CHECKING:
    from pathlib import Path

PAIR: Final = re.compile(r"([A-Za-z]\w*)=(\([^)]*\)?|\"[^\"]*\"|[^,\s]+)")
RAW: Final = re.compile(r"/dev/rdsk/|\\\\\.\\physicaldrive", re.IGNORECASE)
LINE: Final = re.compile(r"\s*(sd|wd|rd|fsd|fwd)=", re.IGNORECASE)
COMMENT: Final = re.compile(r"\s*[*#/]")
KEYWORDS: Final = (
    *(("xfersize", 2), ("openflags", 4), ("validate", 2), ("anchor", 2), ("lun", 2), ("count", 3)),
    ("include", 2),
)
"""The keywords that are looked at, and how many letters tell one from the others."""
PAST_THE_CACHE: Final = ("o_direct", "directio")


@dataclass(slots=True)
class Parameters:
    """What the definitions say. `direct` None: not all of them say the same."""

    targets: list[str] = field(default_factory=list)
    anchors: list[str] = field(default_factory=list)
    counted: bool = False
    """One definition stands for several, by a count."""
    direct: bool | None = None
    one_size: bool = False
    """Every size is a plain one, so that no column of sizes can hide a table."""
    included: bool = False
    """Other files, which are not here, are part of it."""
    verifies: bool = False
    """It validates what it wrote, and reads that nobody asked for go with it."""


def read(path: Path) -> Parameters:
    """Read the copy of the parameter file; what definitions of one kind share is known."""
    parameters = Parameters()
    common: dict[str, dict[str, str]] = {}
    storage: list[bool] = []
    work: list[bool] = []
    sizes: list[str] = []
    for line in _joined(path):
        pairs: dict[str, str] = {_word(key.lower()): value.strip('"') for key, value in PAIR.findall(line)}
        sizes += [pairs["xfersize"]] if "xfersize" in pairs else []
        parameters.included |= "include" in pairs
        parameters.verifies |= pairs.get("validate", "no") not in ("no", "0")
        match = LINE.match(line)
        kind = match[1].lower() if match else ""
        flags = pairs.get("openflags", "").lower().strip("()").split(",")
        if kind not in ("sd", "fsd"):
            work += [_direct(flags)] if "openflags" in pairs else []
            continue
        if pairs.get(kind) == "default":
            common[kind] = pairs
            continue
        pairs = common.get(kind, {}) | pairs
        flags = pairs.get("openflags", "").lower().strip("()").split(",")
        place = pairs.get("lun", pairs["sd"]) if kind == "sd" else pairs.get("anchor", "")
        (parameters.targets if kind == "sd" else parameters.anchors).append(place)
        parameters.counted |= "count" in pairs
        storage.append(_direct(flags) or RAW.match(place) is not None)
    parameters.direct = _agreed(storage, work)
    parameters.one_size = (
        bool(sizes) and not parameters.included and not any(re.search(r"[($!,]", size) for size in sizes)
    )
    return parameters


def _joined(path: Path) -> list[str]:
    """Return the lines that are no comments; one that ends with a comma goes on."""
    logical_lines: list[str] = []
    for line in lines(path):
        if COMMENT.match(line) or not line.strip():
            continue
        text = line.strip()
        if logical_lines and logical_lines[-1].endswith(","):
            logical_lines[-1] += text
        else:
            logical_lines.append(text)
    return logical_lines


def _word(key: str) -> str:
    """Return the whole keyword: vdbench takes the first letters of one, two at least."""
    return next((word for word, least in KEYWORDS if word.startswith(key) and len(key) >= least), key)


def _direct(flags: list[str]) -> bool:
    return any(flag.strip() in PAST_THE_CACHE for flag in flags)


def _agreed(storage: list[bool], work: list[bool]) -> bool | None:
    """Return whether all I/O goes past the cache; workloads may say so in place of the storage."""
    if not storage:
        return None
    if all(storage) or (work and all(work)):
        return True
    return False if not any(storage) and not any(work) else None
