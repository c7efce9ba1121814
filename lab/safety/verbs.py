"""The verbs that can write, each as it is called on a target. Knows no content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

QUIET = ("--no-report", "--no-progress", "--no-calibration")
FIO = "[w]\nfilename={target}\nrw=randwrite\nbs=4k\nsize=4m\nnumber_ios=16\nioengine=psync\ndirect=1\n"
VDBENCH = (
    "sd=s,lun={target},size=4m,openflags=o_direct\nwd=w,sd=s,xfersize=4k,rdpct=0\n"
    "rd=r,wd=w,iorate=100,elapsed=2,interval=1\n"
)
TREE = "fsd=f,anchor={target},depth=1,width=1,files=4,size=8k\nfwd=w,fsd=f,operation=write\n"
TREE_RUN = TREE + "rd=r,fwd=w,fwdrate=max,format={format},elapsed=2,interval=1\n"


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb. `words` takes the target, a folder for its files and a name for its output."""

    name: str
    words: Callable[[Path, Path, str], list[str]]
    environment: Callable[[Path], Mapping[str, str]] = lambda _: {}
    writes: bool = True


def _job(text: str, suffix: str = "fio", **more: str) -> Callable[[Path, Path], str]:
    def write(target: Path, folder: Path) -> str:
        file = folder / f"job.{suffix}"
        file.write_text(text.format(target=target, **more))
        return str(file)

    return write


_FIO, _VDBENCH = _job(FIO), _job(VDBENCH, "parm")


def _run(
    *options: str, verb: str = "run", job: Callable[[Path, Path], str] = _FIO
) -> Callable[[Path, Path, str], list[str]]:
    return lambda target, folder, out: [verb, job(target, folder), "--out", out, *QUIET, *options]


def tree(form: str) -> Verb:
    """vdbench's file work on a tree."""
    return Verb(f"run (vdbench files, format={form})", _run(job=_job(TREE_RUN, "parm", format=form)))


RUN = Verb("run", _run())
DROP_IN = Verb("fio", lambda target, folder, _: ["fio", _FIO(target, folder)])
COMMAND_LINE = Verb(
    "fio --filename",
    lambda target, *_: [
        "fio", "--name=w", f"--filename={target}", "--rw=write", "--bs=4k", "--size=64k", "--ioengine=psync",
    ],
)  # fmt: skip
OVERWRITE = Verb("fio, LOADSTONE_FIO_OVERWRITE=1", DROP_IN.words, lambda _: {"LOADSTONE_FIO_OVERWRITE": "1"})
VERBS: tuple[Verb, ...] = (
    Verb(
        "run, a named workload",
        lambda target, _, out: [
            "run", "four-corners", "--target", str(target), "--runtime", "1s", "--size", "4m",
            "--out", out, *QUIET,
        ],
    ),
    Verb("run (vdbench)", _run(job=_VDBENCH)),
    Verb("run --repeat 2", _run("--repeat", "2")),
    Verb("curve", _run("--points", "50", "--runtime", "1s", verb="curve")),
    Verb("sweep", _run("--bs", "4k,8k", verb="sweep")),
    COMMAND_LINE,
    Verb("plan", lambda target, folder, _: ["plan", _FIO(target, folder)], writes=False),
)  # fmt: skip


def agreed(verb: Verb) -> Verb:
    """The same verb with consent for its target."""
    name = f"{verb.name}, with consent"
    if verb.words is DROP_IN.words:
        return Verb(name, verb.words, lambda target: {"LOADSTONE_ACCEPT_DATA_LOSS": str(target)})
    return Verb(name, lambda *where: [*verb.words(*where), "--i-accept-data-loss", str(where[0])])


def rerun(bundle: Path) -> Verb:
    """The Plan of an earlier run again."""
    return Verb("rerun", lambda _, __, out: ["rerun", str(bundle), "--out", out, *QUIET])
