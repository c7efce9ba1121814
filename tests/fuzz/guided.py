"""The targets of guided fuzzing, one for each reader (`python -m tests.fuzz.guide NAME --minutes 10`).

Each target takes bytes and either reads them or refuses them with a message; anything else is a
finding: another exception, an empty message, seconds for one input, memory without bound. libFuzzer
keeps what reaches new code; half of the inputs are made by the hand-written mutators beside this file,
which know the languages. `tests/fuzz/corpus/NAME` is what was kept, minimised, and a test replays it.
"""

from __future__ import annotations

import contextlib
import json
import random
import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.audit import foreign
from loadstone.audit.document import audited, document
from loadstone.bundle import (
    arrows,
    experiment,
    host,
    json_lines,
    layout,
    members,
    parquet_footer,
    plan_consistency,
    schemas,
    seal,
    sealed_tables,
    study,
)
from loadstone.bundle.hosts import HostPart, HostsRecord
from loadstone.bundle.table_rows import rows_where
from loadstone.control import change_journal as journal
from loadstone.control.layout import build as layout_build
from loadstone.engine import process
from loadstone.errors import LoadstoneError, RefusedError
from loadstone.experiment import read_file
from loadstone.explanations.readings import Probed
from loadstone.hosts import heard, hosts_file, ticks
from loadstone.path import spec
from loadstone.plan import anchors
from loadstone.plan.host_facts import HostFacts, TargetFacts
from loadstone.plan.model import Plan, TargetKind
from loadstone.plan.safety import content, marker, signatures, tree_mark
from loadstone.plan.verification import verify_state
from loadstone.watch import address, freebsd, illumos, linux, prometheus, shell, snmp, watcher
from loadstone.watch.source import HostReading, WatchError
from loadstone.workload.model import Workload
from tests.fuzz import fuzz_icf, fuzz_jobfile, fuzz_results, fuzz_vdbench

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.monitor.counters import Counters

CORPUS: Final = Path(__file__).parent / "corpus"
_PARTS: Final = (HostPart(name="a", bundle=None, status="complete", targets=(0,)),)
_FOLDER: Final = tempfile.TemporaryDirectory(prefix="loadstone-guided-", dir="/dev/shm")
_PLACE: Final = Path(_FOLDER.name)


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
    fuzz_icf.judge(data, HostFacts((0, 1), 64 << 30, {fuzz_icf.TARGET: fact}))


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
    """A Plan as a bundle has it."""
    with contextlib.suppress(ValueError):
        plan_consistency.contradiction(Plan.model_validate_json(data))


def documents(data: bytes) -> None:
    """The other documents of a bundle: manifest, request, environment, notes, workload."""
    try:
        found = members.decoded(data)
    except ValueError:
        return
    for shape, _ in schemas.SHAPES.values():
        left, _ = schemas.pruned(members.decoded(data), shape)
        if left is not None:
            shape.validate_python(left)
    for model in (seal.Manifest, Workload, schemas.RequestedWorkload):
        try:
            model.model_validate(found)
        except ValueError:
            continue


def events(data: bytes) -> None:
    path = _file("events.jsonl", data)
    for event in json_lines.read_lines(path, right=lambda value: schemas.is_event(value, None)):
        assert isinstance(event["type"], str)


def arrow_stream(data: bytes) -> None:
    path = _file("samples.arrows", data)
    for piece in arrows.pieces(path, layout.SAMPLES, lambda _: None):
        sealed_tables.mended(rows_where(piece, sealed_tables.possible_samples(None, piece)))


def parquet(data: bytes) -> None:
    _file("samples.parquet", data)
    for piece in sealed_tables.pieces(_PLACE, "samples.parquet", layout.SAMPLES):
        sealed_tables.mended(rows_where(piece, sealed_tables.possible_samples(None, piece)))


def parquet_footer_alone(data: bytes) -> None:
    """The footer as it ends a file, so that every input is one: pages are what stands before it."""
    path = _file("footer.parquet", b"PAR1" + data + struct.pack("<I4s", len(data), b"PAR1"))
    with path.open("rb") as file, contextlib.suppress(ValueError):
        parquet_footer.read(file, sealed_tables.BUCKETS)


def marks(data: bytes) -> None:
    """What is found in an extended attribute, and in the files that mark a tree."""
    mark = marker.parsed(data)
    with content.BlockReader(_file("marked", data)) as reader:
        mark.flaw(reader)
    for name in (anchors.MARK, anchors.CONTROL_FILE):
        path = _file(name, data)
        found = anchors.look(_PLACE)
        if found.structure is not None:
            assert found.structure.differences(found.structure) == []
        tree_mark.look(_PLACE)
        path.unlink()


def state_file(data: bytes) -> None:
    """fio's state of a verification; its check sum is made right, or nothing else would be reached."""
    version = data[0] if data else 0
    body = data[1:]
    head = struct.pack("<QQQ", version, len(body), verify_state._crc32c(body))
    with contextlib.suppress(ValueError, struct.error):
        verify_state.parsed(head + body)


def study_file(data: bytes) -> None:
    place = _PLACE / "study"
    place.mkdir(exist_ok=True)
    (place / study.STUDY).write_bytes(data)
    study.open_all(place, unverified=True)


def monitors(data: bytes) -> None:
    """The monitors' rows of a run that was killed."""
    _file(layout.HOST, data)
    host.host_rows(_PLACE, ())


def disk(data: bytes) -> None:
    """What stands on a device: signatures, and what a block looks like."""
    path = _file("image", data.ljust(4096, b"\0"))
    signatures.read(path)
    content.kind(data)


def experiment_file(data: bytes) -> None:
    whole = read_file.parse(data, "x.toml")
    assert whole.title


def hosts_list(data: bytes) -> None:
    """`hosts.toml`, and the words of `--hosts`."""
    words = data.decode("utf-8", "replace")
    if "\n" not in words and "/" not in words and not words.endswith(".toml"):
        hosts_file.read_hosts(words)
    else:
        hosts_file.read_hosts_file(_file("hosts.toml", data))


def watch_secrets(data: bytes) -> None:
    path = _file("secrets.toml", data)
    path.chmod(0o600)
    address.addresses(["nas=snmp://nas", "web=https://nas:9100"], secrets=path)


def _watched(readings: list[Counters]) -> None:
    """Put readings a second apart into a bundle's rows, and read them as it does."""
    rows, lines = watcher.Rows(0), []
    for number, made in enumerate(readings):
        row = rows.take(HostReading(number * 10**9, number * 10**9 + 1000, made))
        if row is not None:
            lines.append(json.dumps(host.that_fit(row)) + "\n")
    path = _file("me.jsonl", "".join(lines).encode())
    columns = {name for line in lines for name in json.loads(line)}
    host.host_to_parquet(path, _PLACE / "me.parquet", columns)
    host.host_rows(_PLACE, (), sealed="me.parquet")
    (_PLACE / "me.parquet").unlink()


def _halves(data: bytes) -> tuple[str, str]:
    text = data.decode("utf-8", "replace")
    first, _, second = text.partition("@@again\n")
    return first, second


def watched_by_shell(data: bytes) -> None:
    """What a shell prints on Linux, FreeBSD and illumos: twice, a second apart."""
    first, second = _halves(data)
    for system in (linux, freebsd, illumos):
        lines = first.splitlines()
        json.dumps(system.facts(lines))
        shell._clock(lines)
        shell._times(lines)
        _watched([system.counters(lines)[0], system.counters(second.splitlines())[0]])


def watched_by_exporter(data: bytes) -> None:
    first, second = _halves(data)
    try:
        rows = prometheus._rows(first)
        json.dumps(prometheus.facts(rows))
        prometheus._clock(rows, None)
        prometheus._clock([], first[:64])
        _watched([prometheus.counters(rows), prometheus.counters(prometheus._rows(second))])
    except WatchError as refusal:
        if not refusal.message.strip():
            raise AssertionError("an error without a message") from refusal


def watched_by_snmp(data: bytes) -> None:
    """Values of an agent."""
    snmp._date(data[:11])
    snmp._date(data)
    snmp._text(data)
    snmp._number(data.decode("utf-8", "replace"))


def change_journal(data: bytes) -> None:
    """What `restore` reads; nothing of it is put back here."""
    record = journal.read(_file("1.jsonl", data))
    for change in record.open_changes():
        if change.setting.control == "layout":
            with contextlib.suppress(RefusedError):
                layout_build.read_order(change.before)
    record.is_alive()


def said_by_agents(data: bytes) -> None:
    for line in data.split(b"\n"):
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if heard.is_message(message) and heard.flaw(message) is None and message["type"] == "event":
            ticks.MergedTicks(_PARTS).heard("a", message["event"])


def experiment_document(data: bytes) -> None:
    """`experiment.json`, `hosts.json` and `probes.json`, each with a hash that is right."""
    place = _PLACE / "experiment"
    place.mkdir(exist_ok=True)
    try:
        found = members.decoded(data)
    except ValueError:
        return
    if isinstance(found, dict):
        (place / experiment.FILE).write_text(json.dumps(seal.with_digest(found)))
        with contextlib.suppress(LoadstoneError):
            experiment.read(place)
    for model in (HostsRecord, Probed):
        with contextlib.suppress(ValueError):
            model.model_validate_json(data)


def spoken_by_the_engine(data: bytes) -> None:
    for event in process.EventLines().of(data):
        schemas.is_event(event, None)


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    one.__name__: one
    for one in (
        job_file, vdbench, iometer, results, data_sheet, plan, documents, events, arrow_stream, parquet,
        parquet_footer_alone, marks, state_file, study_file, monitors, disk, spoken_by_the_engine,
        experiment_file, hosts_list, watch_secrets, watched_by_shell, watched_by_exporter, watched_by_snmp,
        change_journal, said_by_agents, experiment_document,
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
