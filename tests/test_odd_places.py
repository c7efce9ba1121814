"""Every place where a file is named, on names that lead to what is no file: never waited for, no traceback.

A place is a command line, or a file that is given to one and names another file. Not tried here: members
of bundles (tests/bundle/test_damaged.py) and what is written to (lab/safety).
"""

from __future__ import annotations

import os
import random
import resource
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import draw, runs, started
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_MEMORY_BYTES = 4 << 30
"""Of its own. Without a bound a device without end takes all there is: the machine is to survive this."""
SECONDS = 150
CODES = {0, 1, 2, 97, 98}
NIGHTLY = 400
"""Cases of a nightly run; a pipe that nobody writes into is waited for, so that it is tried there alone."""
FAST = 8
QUIET = ("--no-report", "--no-progress", "--no-calibration")
SPAN = "size=1m\nioengine=psync\nnumber_ios=8\n"
FIRST_TRACED = ("/sys/kernel/tracing/trace_pipe", "/sys/kernel/debug/tracing/trace_pipe")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listener(path: Path) -> None:
    # A name in the directory, since a socket's path has at most 107 bytes.
    here = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{here}/{path.name}")
    os.close(here)


def to(leads: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(leads)


def block_device(path: Path) -> None:
    path.symlink_to(next(one for one in sorted(Path("/dev").iterdir()) if one.is_block_device()))


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def itself(path: Path) -> None:
    path.symlink_to(path.name)


KINDS: dict[str, Callable[[Path], None]] = {
    "pipe": pipe,
    "socket": listener,
    "zero": to("/dev/zero"),
    "null": to("/dev/null"),
    "full": to("/dev/full"),
    "random": to("/dev/urandom"),
    "log": to("/dev/kmsg"),
    "terminal": to("/dev/tty"),
    "block": block_device,
    "kernel log": to("/proc/kmsg"),
    "core": to("/proc/kcore"),
    "memory": to("/proc/self/mem"),
    "pagemap": to("/proc/self/pagemap"),
    "trace": to(next((one for one in FIRST_TRACED if Path(one).exists()), "/proc/kmsg")),
    "directory": Path.mkdir,
    "nothing": to("nowhere"),
    "itself": itself,
    "huge": huge,
    "empty": Path.touch,
    "below a file": to("/etc/passwd/x"),
}


def _job(text: str, *words: str) -> Callable[[Path, Path], list[str]]:
    """A job file of fio's with `{}` where the name goes."""

    def made(odd: Path, place: Path) -> list[str]:
        (place / "job.fio").write_text(text.format(odd, SPAN=SPAN, PLACE=place))
        return [*words, str(place / "job.fio")]

    return made


def _vdbench(text: str, *words: str) -> Callable[[Path, Path], list[str]]:
    def made(odd: Path, place: Path) -> list[str]:
        (place / "p.vdb").write_text(text.format(odd, PLACE=place))
        return [*words, str(place / "p.vdb")]

    return made


def _word(*words: str) -> Callable[[Path, Path], list[str]]:
    """A command line with `{}` where the name goes, `{ok}` for a bundle and `{null}` for a job file."""

    def made(odd: Path, place: Path) -> list[str]:
        if any("{ok}" in word for word in words):
            runs.make(place / "ok", MadeJob("a", {"read": 700.0}), seconds=2)
        (place / "null.fio").write_text(f"[n]\nioengine=null\nfilename={place}/n\nrw=read\n{SPAN}")
        (place / "x.toml").write_text("")
        names = {"ok": place / "ok", "null": place / "null.fio", "out": place / "out"}
        return [word.format(odd, **names) for word in words]

    return made


def _file(name: str, text: str, *words: str) -> Callable[[Path, Path], list[str]]:
    def made(odd: Path, place: Path) -> list[str]:
        (place / name).write_text(text.format(odd, PLACE=place))
        return [*words, str(place / name)]

    return made


def _within(name: str, *words: str) -> Callable[[Path, Path], list[str]]:
    """A directory that holds it under this name."""

    def made(odd: Path, place: Path) -> list[str]:
        (place / "dir" / name).parent.mkdir(parents=True)
        odd.rename(place / "dir" / name)
        return [*words, str(place / "dir")]

    return made


def _folder(name: str) -> Callable[[Path, Path], list[str]]:
    """A result folder of vdbench in which one file is odd."""

    def made(odd: Path, place: Path) -> list[str]:
        (place / "dir").mkdir()
        for one in ("summary.html", "flatfile.html", "totals.html", "logfile.html", "parmfile.html"):
            if one != name:
                (place / "dir" / one).write_text("Vdbench\n")
        odd.rename(place / "dir" / name)
        return ["audit", str(place / "dir")]

    return made


def _earlier(odd: Path, place: Path) -> list[str]:
    (place / "kept" / "before").mkdir(parents=True)
    odd.rename(place / "kept" / "before" / "plan.json")
    (place / "r.fio").write_text(f"[n]\nioengine=null\nfilename={place}/n\nrw=randread\n{SPAN}")
    return ["run", str(place / "r.fio"), *QUIET, "--out", str(place / "kept" / "now")]


def _state(way: str) -> Callable[[Path, Path], list[str]]:
    """The state of a verification of fio's, in the working directory."""

    def made(odd: Path, place: Path) -> list[str]:
        odd.rename(place / "local-j-0-verify.state")
        return _job(f"{WRITE}verify=crc32c\nverify_state_{way}=1\n", "fio")(odd, place)

    return made


def _page(odd: Path, place: Path) -> list[str]:
    odd.rename(place / "odd.html")
    return _word("report", "{ok}", "-o", "{}.html")(odd, place)


READ = "[j]\nfilename={PLACE}/f\nrw=read\n{SPAN}"
WRITE = "[j]\nfilename={PLACE}/f\nrw=write\n{SPAN}"
VDB = "sd=s1,lun={PLACE}/f,size=1m\nwd=w1,sd=s1,xfersize=4k\nrd=r1,wd=w1,elapsed=1,interval=1,iorate=10\n"
HOST = '[[host]]\nname = "a"\nlaunch = "local"\n'
PATTERN = '[[patterns]]\nname = "p"\noptions = {{ ioengine = "null", rw = "read", size = "1m" }}\n'
FACTOR = '[[factors]]\nname = "d"\noption = "iodepth"\nlevels = [1, 2]\n'
HEAD = 'title = "T"\nrepeats = 1\nruntime = "1s"\n'
RUN = ("run", *QUIET, "--out", "o")
PLACES: dict[str, Callable[[Path, Path], list[str]]] = {
    "run": _word("run", "{}"),
    "run of a directory": _within("x.fio", "run"),
    "run of two": _word("run", "{null}", "{}"),
    "plan": _word("plan", "{}"),
    **{f"plan as {one}": _word("plan", "{}", "--language", one) for one in ("fio", "vdbench", "iometer")},
    "curve": _word("curve", "{}"),
    "sweep": _word("sweep", "{}", "--iodepth", "1,2"),
    "probe": _word("probe", "{}", "--runtime", "1s", "--dry-run"),
    "fio": _word("fio", "{}"),
    "fio's client": _word("fio", "--client={}", "{null}"),
    "fio's output": _word("fio", "--output={}", "{null}"),
    "fio's aux-path": _word("fio", "--aux-path={}", "{null}"),
    "fio's inflated": _word("fio", "--inflate-log={}"),
    "data sheet": _word("run", "four-corners", "--target", "null", "--spec", "{}"),
    "data sheet of audit": _word("audit", "{ok}", "--spec", "{}"),
    "hosts": _word("run", "{null}", "--hosts", "{}"),
    "hosts checked": _word("hosts", "check", "{}"),
    "hosts installed": _word("hosts", "install", "{}"),
    "certificates": _word("hosts", "certificates", "h1", "--directory", "{}"),
    "wheels": _word("hosts", "install", "127.0.0.1:9", "--wheels", "{}"),
    "secrets": _word("run", "{null}", "--watch", "x=snmp://127.0.0.1", "--watch-secrets", "{}"),
    "out": _word("run", "{null}", *QUIET, "--out", "{}"),
    "vdbench-output": _vdbench(VDB, *RUN, "--vdbench-output", "vo"),
    "experiment": _word("experiment", "plan", "{}"),
    "experiment run": _word("experiment", "run", "{}"),
    "experiment resumed": _word("experiment", "resume", "{}"),
    "experiment reported": _word("experiment", "report", "{}"),
    "rerun": _word("rerun", "{}"),
    "verify": _word("verify", "{}"),
    "report": _word("report", "{}"),
    "report's page": _page,
    "compare first": _word("compare", "{}", "{ok}"),
    "compare second": _word("compare", "{ok}", "{}"),
    "audit": _word("audit", "{}"),
    **{
        f"audit of {one}": _within(one, "audit")
        for one in ("r.json", "r.csv", "r.xml", "r.toml", "deep/r.txt")
    },
    **{
        f"folder's {one}": _folder(one)
        for one in ("summary.html", "flatfile.html", "totals.html", "logfile.html", "parmfile.html")
    },
    "compared directory": _within("r.json", "compare"),
    "reported directory": _within("r.json", "report"),
    "export": _word("export", "{}", "csv"),
    "export's output": _word("export", "{ok}", "csv", "-o", "{}"),
    "runs": _word("runs", "{}"),
    "runs within": _within("manifest.json", "runs"),
    "runs below": _within("one/manifest.json", "runs"),
    "studies below": _within("one/study.json", "runs"),
    "earlier": _earlier,
    "include": _job("include {}\n" + READ, "plan"),
    "filename read": _job("[j]\nfilename={}\nrw=read\n{SPAN}", *RUN),
    "filename written": _job("[j]\nfilename={}\nrw=write\n{SPAN}", *RUN),
    "filename of fio": _job("[j]\nfilename={}\nrw=write\n{SPAN}", "fio"),
    "filename planned": _job("[j]\nfilename={}\nrw=write\n{SPAN}", "plan"),
    "directory": _job("[j]\ndirectory={}\nrw=write\n{SPAN}", *RUN),
    "opendir": _job("[j]\nopendir={}\nrw=read\n{SPAN}", "plan"),
    "buffer_pattern": _job(WRITE + "buffer_pattern='{}'\n", "plan"),
    "verify_pattern": _job(WRITE + "verify=pattern\nverify_pattern='{}'\n", "plan"),
    "read_iolog": _job(READ + "read_iolog={}\n", "plan"),
    "write_iolog": _job(READ + "write_iolog={}\n", "fio"),
    "write_bw_log": _job(READ + "write_bw_log={}\n", "fio"),
    "mem": _job(READ + "mem=mmap:{}\n", "plan"),
    "state": _state("load"),
    "state written": _state("save"),
    "vdbench include": _vdbench("include={}\n" + VDB, "plan"),
    "vdbench pattern": _vdbench("pattern={}\n" + VDB, "plan"),
    "vdbench lun": _vdbench(VDB.replace("{PLACE}/f", "{}"), *RUN),
    "vdbench anchor": _vdbench(
        "fsd=f1,anchor={},depth=1,width=1,files=2,size=4k\nfwd=w1,fsd=f1,operation=read\n"
        "rd=r1,fwd=w1,fwdrate=10,format=yes,elapsed=1,interval=1\n",
        *RUN,
    ),
    "experiment's job": _file(
        "e.toml", HEAD + FACTOR + '[[patterns]]\nname = "p"\nfile = "{}"\n', "experiment", "plan"
    ),
    "experiment's target": _file(
        "e.toml",
        HEAD + "targets = ['{}']\n" + FACTOR + PATTERN.replace("null", "psync"),
        "experiment",
        "run",
        "--out",
        "eo",
        *QUIET,
    ),
    "identity": _file(
        "h.toml",
        HOST.replace("local", "ssh") + 'address = "127.0.0.1"\nidentity_file = "{}"\n',
        "hosts",
        "check",
    ),
    "tls": _file("h.toml", '[run]\ncertificates = "{}"\nconnect_s = 10\n' + HOST, "hosts", "check"),
    "place of a host": _file(
        "h.toml",
        "[run]\nconnect_s = 10\n" + HOST + 'directory = "{}"\n',
        "run",
        "four-corners",
        "--target",
        "null",
        "--set",
        "runtime=1s",
        "--hosts",
    ),
}


def what_went_wrong(name: str, kind: str, place: Path) -> str | None:
    """Try one place with one kind; return what is wrong with how it ended."""
    place.mkdir()
    odd = place / "odd"
    KINDS[kind](odd)
    words = PLACES[name](odd, place)
    environment = os.environ | {"LOADSTONE_STATE": str(place / "state")}
    with started.StartedProgram(
        words,
        cwd=place,
        env=environment,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        resource.prlimit(process.pid, resource.RLIMIT_DATA, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
        try:
            _, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return f"took more than {SECONDS} s"
    told = err.strip()
    if any(word in told for word in ("Traceback", "mistake in the program", "MemoryError", "out of memory")):
        return f"{process.returncode}: {told[-400:]}"
    if process.returncode not in CODES:
        return f"code {process.returncode}: {told[-400:]}"
    if process.returncode == 2 and not told:
        return "refused without a word"
    return None


def tried(cases: list[tuple[str, str]], place: Path) -> list[str]:
    """Try some cases, each in a directory of its own; return what went wrong."""
    found = []
    for number, (name, kind) in enumerate(cases):
        wrong = what_went_wrong(name, kind, place / str(number))
        if wrong is not None:
            found.append(f"{name}, {kind}: {wrong}")
    return found


def drawn(count: int, kinds: list[str], seed: str) -> list[tuple[str, str]]:
    return random.Random(seed).sample([(name, kind) for name in PLACES for kind in kinds], count)


@pytest.mark.in_turn
def test_an_odd_file_is_refused_or_read(tmp_path: Path) -> None:
    kinds = [kind for kind in KINDS if kind != "pipe"]
    assert tried(drawn(FAST, kinds, draw.number()), tmp_path) == []


@pytest.mark.nightly
def test_many_odd_files_are_refused_or_read(tmp_path: Path) -> None:
    assert tried(drawn(NIGHTLY, list(KINDS), draw.number()), tmp_path) == []


@pytest.mark.in_turn
def test_names_that_are_no_text_are_taken_or_refused_and_never_a_mistake_in_the_program(
    tmp_path: Path,
) -> None:
    """A job file, a bundle, a page and a working directory whose names were written as Latin-1."""
    data, odd = tmp_path / "data", os.fsdecode(b"caf\xe9")
    data.write_bytes(bytes(1 << 20))
    (tmp_path / f"{odd}.fio").write_text(f"[w]\nfilename={data}\nrw=read\n{SPAN}")
    folder = tmp_path / odd
    folder.mkdir()

    def code(*words: str, cwd: Path = tmp_path) -> int:
        done = started.run([*words], cwd=cwd, timeout=SECONDS)
        assert "a mistake in" not in done.stderr + done.stdout, (words, done.stderr)
        return done.returncode

    assert code("run", f"{odd}.fio", *QUIET, "--out", f"b{odd}") == 0
    assert code("run", f"{odd}.fio", *QUIET, "--repeat", "2", "--out", f"s{odd}") == 0
    assert code("fio", f"{odd}.fio") == 0
    for words in (("audit", "--json"), ("report",), ("compare", f"s{odd}"), ("export",)):
        more = ("csv", "-o", f"{odd}.csv") if words[0] == "export" else ()
        assert code(*words, f"b{odd}", *more) == 0
    assert code("rerun", f"b{odd}", "--out", "again") == 0
    assert code("audit", str(tmp_path / f"b{odd}" / "samples.parquet")) == 2
    assert code("runs", ".") == 0
    # No Plan can name such a target.
    (folder / "j.fio").write_text(f"[w]\nrw=write\n{SPAN}")
    done = started.run(["run", "j.fio", *QUIET, "--out", "b"], cwd=folder, timeout=SECONDS)
    assert (done.returncode, "bytes that are no UTF-8 text" in done.stderr) == (2, True)
