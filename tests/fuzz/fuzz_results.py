"""Fuzz the readers of other tools' results: no traceback, no hang, a reason for every refusal.

Makes files from valid ones (lines dropped, doubled and mixed between files, numbers replaced,
values of JSON and TOML changed in type, bytes damaged), reads each by the reader that recognises
it and judges what was read. Any exception but a LoadstoneError is a finding, and so is a file that
takes seconds, a number that is not finite, and an error without a message.

    python -m tests.fuzz.fuzz_results --minutes 10 --seed 1
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.audit import foreign
from loadstone.audit.document import audited, document
from loadstone.errors import LoadstoneError
from loadstone.report.verdict.audit_text import markdown
from tests.fuzz import driver

if TYPE_CHECKING:
    import random

ROOT = Path(__file__).parents[2]
VALUES: list[Any] = [
    0, 1, -1, 1e308, -1e-308, 2**63, 2**200, "", "x", "nan", "inf", "1e999", "-5", "4k", "0%", None, True, [],
    {}, [[]], [None], {"mean": "x"}, {"percentile": [1]}, "5 GB/s", "0 ms", "9" * 400, "é", "\x00", " ", ";",
    "4 x 16GFC", "0 x 1GbE", "avg_2-1", "avg_1-n", "999977.0000", "n/a", "∞", "1,5", "0x10",
]  # fmt: skip
NUMBERS = ["0", "-1", "nan", "inf", "1e999", "9" * 40, "", "n/a", "0.0000", "1e-320", "x"]


def corpus() -> list[Path]:
    """Valid results: files, and directories of vdbench."""
    data = ROOT / "tests" / "data" / "foreign"
    files = [path for path in (data / "fio").iterdir() if path.suffix != ".fio"]
    files += [*(data / "iometer").iterdir(), *(data / "diskspd").iterdir(), *data.glob("vdbench-*")]
    files += [*(ROOT / "examples" / "published").glob("*.toml")]
    return sorted(files)


def change_value(value: Any, rng: random.Random, depth: int = 0) -> Any:
    """Return a value with one part of it replaced or gone."""
    if isinstance(value, dict) and value and depth < 12 and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {name: one for name, one in value.items() if name != key}
        return value | {key: change_value(value[key], rng, depth + 1)}
    if isinstance(value, list) and value and depth < 12 and rng.random() < 0.9:
        at = rng.randrange(len(value))
        if rng.random() < 0.1:
            return value[:at] + value[at + 1 :] * rng.randint(0, 2)
        return [*value[:at], change_value(value[at], rng, depth + 1), *value[at + 1 :]]
    return rng.choice(VALUES)


def change_text(text: str, others: list[str], rng: random.Random) -> str:
    """Return text with a line, a word or a number of it changed."""
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    what = rng.random()
    if what < 0.5:
        words = lines[at].split(rng.choice([" ", ",", ";", "=", ">", '"']))
        joint = rng.choice([" ", ",", ";", "=", ">", '"'])
        if words:
            words[rng.randrange(len(words))] = rng.choice(NUMBERS)
        lines[at] = joint.join(words)
    elif what < 0.7:
        del lines[at]
    elif what < 0.8:
        lines.insert(at, lines[rng.randrange(len(lines))])
    elif what < 0.9:
        lines.insert(at, rng.choice(rng.choice(others).split("\n")))
    else:
        lines = lines[:at]
    return "\n".join(lines)


def make(source: Path, texts: list[str], rng: random.Random) -> bytes:
    """Return the content of a file, damaged."""
    raw = source.read_bytes()
    if source.suffix in (".json", ".json+") and rng.random() < 0.6:
        value = json.loads(raw)
        for _ in range(rng.choice([1, 2, 5])):
            value = change_value(value, rng)
        if isinstance(value, dict):
            value.setdefault("fio version", "fio-3.33")
        return json.dumps(value).encode("utf-8", "replace")
    text = raw.decode("utf-8", "replace")
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        text = change_text(text, texts, rng)
    return driver.sometimes_damaged(text.encode("utf-8", "replace"), rng)


def one(path: Path) -> str:
    """Read and judge one result; return how it ended."""
    found = foreign.recognise(path)
    if found is None:
        return "not recognised"
    results = found.read_valid(path)
    assert results.cases
    told = audited(str(path), results)
    made = document([told])
    assert all(math.isfinite(number) for number in numbers(made.model_dump()))
    assert made.model_dump_json()
    assert markdown([told])
    return found.name


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for one in value.values() for number in numbers(one)]
    if isinstance(value, (list, tuple)):
        return [number for one in value for number in numbers(one)]
    return [value] if isinstance(value, float) else []


class Results:
    """Damaged results in a directory, each in the place of the one before it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.sources = corpus()
        self.texts = [path.read_text("utf-8", "replace") for path in self.sources if path.is_file()]

    def make(self, rng: random.Random) -> Path:
        source = rng.choice(self.sources)
        target = self.place / source.name
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
            part = target / rng.choice([one.name for one in source.iterdir()])
            part.write_bytes(make(source / part.name, self.texts, rng))
        else:
            target.write_bytes(make(source, self.texts, rng))
        return target


def judged(path: Path, _: random.Random) -> str:
    """Read one result. A refusal that names no place is a finding, as any other error is."""
    try:
        return one(path)
    except LoadstoneError as refusal:
        if refusal.where is None:
            raise ValueError("a refusal without a place") from refusal
        raise


def keep(path: Path) -> str:
    kept = Path(tempfile.mkdtemp(prefix="loadstone-finding-")) / path.name
    (shutil.copytree if path.is_dir() else shutil.copy)(path, kept)
    return str(kept)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="loadstone-fuzz-") as place:
        sys.exit(driver.main(__doc__, "results", Results(Path(place)).make, judged, keep))
