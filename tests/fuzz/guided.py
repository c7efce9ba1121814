"""The targets of guided fuzzing, one for each reader (`python -m tests.fuzz.guide NAME --minutes 10`).

Each target takes bytes and either reads them or refuses them with a message; anything else is a
finding: another exception, an empty message, seconds for one input, memory without bound. libFuzzer
keeps what reaches new code; half of the inputs are made by the hand-written mutators beside this file,
which know the languages. `tests/fuzz/corpus/NAME` is what was kept, minimised, and a test replays it.
"""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.audit import foreign
from loadstone.audit.document import audited, document
from loadstone.bundle import arrows, consistent, layout, lines, members, older, seal, shapes, tables
from loadstone.errors import LoadstoneError
from loadstone.path import spec
from loadstone.plan.host import HostFacts, TargetFacts
from loadstone.plan.model import Plan, TargetKind
from loadstone.workload.model import Workload
from tests.fuzz import fuzz_icf, fuzz_jobfile, fuzz_results, fuzz_vdbench

if TYPE_CHECKING:
    from collections.abc import Callable

CORPUS: Final = Path(__file__).parent / "corpus"
_PLACE: Final = Path(tempfile.mkdtemp(prefix="loadstone-guided-", dir="/dev/shm"))


def _file(name: str, data: bytes) -> Path:
    path = _PLACE / name
    path.write_bytes(data)
    return path


def job_file(data: bytes) -> None:
    fuzz_jobfile.one(data, random.Random(len(data)))


def vdbench(data: bytes) -> None:
    fuzz_vdbench.one(data, random.Random(len(data)))


def iometer(data: bytes) -> None:
    fact = TargetFacts(TargetKind.BLOCK, size_bytes=1 << 40)
    fuzz_icf.judge(data, HostFacts((0, 1), 64 << 30, 4096, {fuzz_icf.TARGET: fact}))


def results(data: bytes) -> None:
    """Results of every tool, told by their content and their name's ending."""
    for name in ("r.json", "r.txt", "r.csv", "r.xml", "r.toml"):
        path = _file(name, data)
        known = foreign.recognise(path)
        if known is not None:
            document([audited(name, known.read_valid(path))]).model_dump_json()
        path.unlink()


def data_sheet(data: bytes) -> None:
    spec.read(_file("spec.toml", data))


def plan(data: bytes) -> None:
    """A Plan as a bundle has it, of this format and of the first."""
    for wanted in (bytes, _completed):
        try:
            consistent.contradiction(Plan.model_validate_json(wanted(data)))
        except ValueError:
            continue


def _completed(data: bytes) -> bytes:
    return json.dumps(older.completed(members.decoded(data), 1)).encode()


def documents(data: bytes) -> None:
    """The other documents of a bundle: manifest, request, environment, notes, workload."""
    try:
        found = members.decoded(data)
    except ValueError:
        return
    for shape, _ in shapes.SHAPES.values():
        left, _ = shapes.pruned(members.decoded(data), shape)
        if left is not None:
            shape.validate_python(left)
    for model in (seal.Manifest, Workload, shapes.Asked):
        try:
            model.model_validate(found)
        except ValueError:
            continue


def events(data: bytes) -> None:
    path = _file("events.jsonl", data)
    for event in lines.read_lines(path, right=lambda value: shapes.is_event(value, None)):
        assert isinstance(event["type"], str)


def arrow_stream(data: bytes) -> None:
    path = _file("samples.arrows", data)
    for piece in arrows.pieces(path, layout.SAMPLES, lambda _: None):
        tables.mended(piece.filter(tables.possible_samples(None)))


def parquet(data: bytes) -> None:
    _file("samples.parquet", data)
    for piece in tables.pieces(_PLACE, "samples.parquet", layout.SAMPLES):
        tables.mended(piece.filter(tables.possible_samples(None)))


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    one.__name__: one
    for one in (
        job_file, vdbench, iometer, results, data_sheet, plan, documents, events, arrow_stream, parquet,
    )
}  # fmt: skip


def tried(name: str, data: bytes) -> None:
    """Give bytes to a target; raise for a finding."""
    try:
        TARGETS[name](data)
    except LoadstoneError as refusal:
        if not refusal.message.strip():
            raise AssertionError(f"an error without a message: {refusal!r}") from refusal


def makers() -> dict[str, Callable[[random.Random], bytes]]:
    """The hand-written mutators, which make inputs from valid ones."""
    jobs = fuzz_jobfile.corpus()
    parameters = fuzz_vdbench.corpus()
    icf = [path.read_text(encoding="cp1252").splitlines() for path in sorted(fuzz_icf.DATA.glob("*.icf"))]
    files = [path for path in fuzz_results.corpus() if path.is_file()]
    texts = [path.read_text("utf-8", "replace") for path in files]
    return {
        "job_file": lambda rng: fuzz_jobfile.make(jobs, rng),
        "vdbench": lambda rng: fuzz_vdbench.make(parameters, rng),
        "iometer": lambda rng: fuzz_icf.make(icf, rng),
        "results": lambda rng: fuzz_results.make(rng.choice(files), texts, rng),
    }
