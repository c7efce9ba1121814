"""A published job file, cut to small files in its own directory.

Changes where a job works and how much: paths, sizes, times, counts of clones and files. Everything else
stays as it was written.
"""

from __future__ import annotations

import re
from typing import Final

MOST_BYTES: Final = 64 << 20
"""No size in a cut file is larger; a target that says none has so many."""
_PART_BYTES: Final = 64 << 10
"""What is smaller stays, and what becomes smaller is a multiple of it."""
_MOST: Final = {
    "runtime": 2,
    "timeout": 2,
    "ramp_time": 1,
    "startdelay": 0,
    "start_delay": 0,
    "loops": 2,
    "numjobs": 4,
    "nrfiles": 40,
    "iodepth": 64,
    "thinktime": 100,
}
_SIZES: Final = ("size", "filesize", "io_size", "io_limit", "zonesize", "zonerange", "zoneskip", "offset")
_LINE: Final = re.compile(r"^(\s*)([A-Za-z_]+)(\s*=\s*)(.*?)(\s*(?:[;#].*)?)$")
_NUMBER: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]*)")
_UNITS: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
_TIMES: Final = {"m": 60.0, "h": 3600.0, "d": 86400.0, "ms": 1e-3, "us": 1e-6}
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")


def environment(text: str) -> dict[str, str]:
    """Return a value for every variable that a file asks for, by what its name says."""
    return {name: _variable(name.upper()) for name in _VARIABLE.findall(text)}


def _variable(name: str) -> str:
    for words, value in (
        (("JOBS", "NUM", "THREADS"), "2"),
        (("BLOCK", "BLK", "BS", "RECORD"), "4k"),
        (("SIZE",), "8m"),
        (("ENGINE",), "libaio"),
        (("MIX", "PERC"), "50"),
        (("RW", "MODE"), "randread"),
        (("DIRECT", "SYNC"), "0"),
        (("COMPRESS",), "50"),
        (("DIR", "MOUNT", "PATH", "FOLDER"), "place"),
        (("DEV", "FILE", "TARGET", "DISK", "NAME"), "target"),
    ):
        if any(word in name for word in words):
            return value
    return "2"


def cut(text: str) -> str:
    """Return a job file that does the same on little: all sizes are divided by one number."""
    settings = [match for line in text.splitlines() if (match := _LINE.match(line))]
    sizes = [_bytes(one) for match in settings if match[2].lower() in _SIZES for one in match[4].split(",")]
    by = max(1.0, max(sizes, default=0.0) / MOST_BYTES)
    return "\n".join(_line(line, by) for line in text.splitlines()) + "\n"


def _line(line: str, by: float) -> str:
    setting = _LINE.match(line)
    if setting is None or line.lstrip().startswith(("#", ";", "[")):
        return line
    before, name, between, value, after = setting.groups()
    return f"{before}{name}{between}{_value(name.lower(), value, by)}{after}"


def _value(name: str, value: str, by: float) -> str:
    if name == "filename":
        return ":".join(_local(one) for one in re.split(r"(?<!\\):", value))
    if name == "directory":
        return "place"
    if name in _SIZES and "%" not in value:
        return ",".join(_smaller(one, by) for one in value.split(","))
    if name in _MOST:
        number = _NUMBER.fullmatch(value.strip().strip('"'))
        if number and float(number[1]) * _TIMES.get(number[2].lower(), 1) > _MOST[name]:
            return str(_MOST[name])
    return value


def _local(path: str) -> str:
    """Return a name in the working directory for any path; what /dev makes of nothing stays."""
    if path in ("/dev/null", "/dev/zero", "-") or "${" in path:
        return path
    return re.sub(r"[^\w$.-]+", "_", path.strip()).strip("_") or "target"


def _bytes(size: str) -> float:
    number = _NUMBER.fullmatch(size.strip())
    return float(number[1]) * _UNITS.get(number[2][:1].lower(), 1) if number else 0.0


def _smaller(size: str, by: float) -> str:
    many = _bytes(size)
    return (
        size if many < _PART_BYTES or by == 1 else str(max(1, round(many / by / _PART_BYTES)) * _PART_BYTES)
    )
