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
EXPERIMENT = (
    'title = "t"\nrepeats = 2\nruntime = "1s"\nsize = "4m"\ntargets = ["{target}"]\n'
    '[[patterns]]\nname = "w"\noptions = {{ rw = "randwrite", ioengine = "psync", direct = 1 }}\n'
    '[[factors]]\nname = "size"\noption = "bs"\nlevels = ["4k", "8k"]\n'
)
LAYOUT = (
    'title = "t"\nruntime = "1s"\nsize = "4m"\ndevices = ["{target}"]\ntargets = ["{{file}}"]\n'
    '[layouts.own]\nfilesystem = "ext4"\n[layouts.bare]\nfilesystem = "none"\n'
    '[[patterns]]\nname = "r"\noptions = {{ rw = "randread", ioengine = "psync" }}\n'
    '[[factors]]\nname = "layout"\nkind = "layout"\nlevels = ["own", "bare"]\n'
)
HOSTS = '[[host]]\nname = "here"\nlaunch = "local"\ndirectory = "{folder}/of-here"\n'
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


def _experiment(target: Path, folder: Path, out: str) -> list[str]:
    return ["experiment", "run", _job(EXPERIMENT, "toml")(target, folder), "--out", out, *QUIET]


def _experiment_on_layouts(target: Path, folder: Path, out: str) -> list[str]:
    return ["experiment", "run", _job(LAYOUT, "toml")(target, folder), "--out", out, *QUIET]


def _on_hosts(target: Path, folder: Path, out: str) -> list[str]:
    file = folder / "hosts.toml"
    file.write_text(HOSTS.format(folder=folder))
    return [*_run()(target, folder, out), "--hosts", str(file)]


def _ending(target: Path, folder: Path, ending: str) -> str:
    """A name with this ending that leads to the target: a report's says what is written."""
    link = folder / f"link.{ending}"
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    return str(link)


def _page(ending: str, *words: str) -> Callable[[Path, Path, str], list[str]]:
    return lambda target, folder, _: [*words, "-o", _ending(target, folder, ending)]


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
    Verb("experiment run", _experiment),
    Verb("run --hosts", _on_hosts),
    Verb("run --probe", _run("--probe=2s")),
    Verb(
        "probe --rw randwrite",
        lambda target, _, out: [
            "probe", str(target), "--rw", "randwrite", "--runtime", "1s", "--budget", "2s", "--size", "4m",
            "--out", out, *QUIET,
        ],
    ),
    COMMAND_LINE,
    Verb("plan", lambda target, folder, _: ["plan", _FIO(target, folder)]),
)  # fmt: skip


LAYOUTS = Verb("experiment run, with a layout", _experiment_on_layouts)
"""Makes a file system on its device."""


def agreed(verb: Verb) -> Verb:
    """The same verb with consent for its target."""
    name = f"{verb.name}, with consent"
    if verb.words is DROP_IN.words:
        return Verb(name, verb.words, lambda target: {"LOADSTONE_ACCEPT_DATA_LOSS": str(target)})
    return Verb(name, lambda *where: [*verb.words(*where), "--i-accept-data-loss", str(where[0])])


JOURNAL = FIO.replace("ioengine", "verify=crc32c\ndo_verify=0\nioengine")
RERUN = Verb("rerun", lambda _, __, out: ["rerun", "earlier", "--out", out, *QUIET])
VERIFY = Verb("verify", lambda _, __, out: ["verify", "earlier", "--out", out, "--no-report"], writes=False)
"""Both work on the bundle `earlier` in the folder."""

OWN_WORDS = ("--name=w", "--rw=randwrite", "--size=1m", "--ioengine=psync")
OUTPUTS: tuple[Verb, ...] = (
    Verb("export -o", lambda target, *_: ["export", "bundle", "fio-json", "-o", str(target)]),
    Verb("report -o", lambda target, *_: ["report", "bundle", "-o", str(target)]),
    *(Verb(f"report -o ({ending})", _page(ending, "report", "bundle")) for ending in ("pdf", "md")),
    *(
        Verb(f"experiment report -o ({ending})", _page(ending, "experiment", "report", "experiment"))
        for ending in ("html", "pdf")
    ),
    Verb("compare --html", lambda target, *_: ["compare", "bundle", "second", "--html", str(target)]),
    Verb("run --out", lambda target, folder, _: ["run", own_job(folder), "--out", str(target), *QUIET]),
    Verb("rerun --out", lambda target, *_: ["rerun", "bundle", "--out", str(target), *QUIET]),
    Verb("verify --out", lambda target, *_: ["verify", "bundle", "--out", str(target), "--no-report"]),
    Verb(
        "experiment run --out",
        lambda target, folder, _: _experiment(folder / "made", folder, str(target)),
    ),
    Verb(
        "hosts certificates --directory",
        lambda target, *_: ["hosts", "certificates", "h1,h2", "--directory", str(target)],
    ),
    Verb("fio --output", lambda target, folder, _: ["fio", own_job(folder), f"--output={target}"]),
    Verb(
        "fio, write_iolog",
        lambda target, folder, _: ["fio", f"--write_iolog={target}", *OWN_WORDS, f"--filename={folder}/made"],
    ),
)
"""Where results go. In the folder are `bundle`, with a journal, `second`, and `experiment`."""
PRINTING = frozenset({"audit", "workloads", "doctor", "completion", "controls", "restore", "runs"})
"""Verbs of the program that write no data: to standard output only, or settings (`restore`)."""


def own_experiment(folder: Path) -> str:
    """An experiment on a file of its own."""
    return _job(EXPERIMENT, "toml")(folder / "made", folder)


def own_job(folder: Path) -> str:
    """A job on a file of its own, which keeps what a journal needs."""
    file = folder / "own.fio"
    file.write_text(JOURNAL.format(target=folder / "made"))
    return str(file)
