"""`python -m lab.probed_studies`: runs of the three published studies of docs/, each with probes after it.

Builds what `lab.queue_depth`, `lab.vroc` and docs/zfs-log-ssd.md stand on, runs some of the studies' loads
for a few seconds, and prints what was said before and after the probes, as Markdown. Needs root.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lab.parts import MissingPartError, Stage, missing

from lab import queue_depth, vroc
from loadstone.analysis.summary import summarise
from loadstone.audit.from_bundle import cases
from loadstone.audit.judge import judge
from loadstone.bundle.read import Bundle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.verdict import Verdict

SLOG: Final = """sd=ssd,lun=$lun,threads=8,openflags=(o_direct,o_dsync),size=64m
wd=read,sd=ssd,rdpct=100,seekpct=seq
wd=write,sd=ssd,rdpct=0,seekpct=seq
rd=default,elapsed=4,interval=1
rd=read,wd=read,iorate=max,forxfersize=(64k)
rd=write,wd=write,iorate=max,forxfersize=(64k)
"""
"""Two of its 41 runs: of a loop device of 64 MiB, as its log of 64 KiB was published."""
LAYOUTS: Final = ("RAID0", "RAID5")
Run = tuple[str, Path]


def depths(stage: Stage, probe: str) -> Iterator[Run]:
    """Four patterns at the depth that was published, 128, and at one that is enough for random reads."""
    file = queue_depth.array(stage)
    for section, depth in (("random-read", 16), ("random-read", 128), ("random-write", 128)):
        job = stage.folder / f"{section}-{depth}.fio"
        job.write_text(queue_depth.JOB.read_text().replace("bs=4k", f"bs=4k\niodepth={depth}"))
        out = stage.folder / job.stem
        _run(stage, ("run", job, "--section", section), [file], probe, out)
        yield f"{section} at depth {depth}", out


def layouts(stage: Stage, probe: str) -> Iterator[Run]:
    """Random reads and writes of one layout after the other."""
    for layout in (one for one in vroc.LAYOUTS if one.name in LAYOUTS):
        with Stage() as own:
            files = vroc.volumes(own, layout)
            for load in ("read-4k-random", "write-4k-random"):
                words = ("run", vroc.JOB, "--section", load)
                out = stage.folder / f"{layout.name}-{load}"
                _run(own, words, files, probe, out)
                yield f"{load}, {layout.name}", out


def log(stage: Stage, probe: str) -> Iterator[Run]:
    """The two lines of vdbench that were published."""
    (stage.folder / "log.parm").write_text(SLOG)
    target = stage.loop(64)
    out = stage.folder / "log"
    _run(stage, ("run", stage.folder / "log.parm"), [target], probe, out)
    for bundle in sorted((out / "runs").iterdir()):
        yield bundle.name, bundle


STUDIES: Final[dict[str, Callable[[Stage, str], Iterator[Run]]]] = {
    "queue depth": depths,
    "VROC": layouts,
    "a log of ZFS": log,
}


def _run(stage: Stage, words: tuple[str | Path, ...], targets: list[Path], probe: str, out: Path) -> None:
    arguments: list[str | Path] = []
    for file in targets:
        arguments += ["--target", file, "--i-accept-data-loss", file]
    if words[1] == stage.folder / "log.parm":
        arguments[:2] = ["--set", f"lun={targets[0]}"]
    else:
        arguments += ["--runtime", "4s"]
    stage.loadstone(*words, *arguments, f"--probe={probe}", "--no-progress", "--no-report", "--out", out)


def verdicts(bundle: Path) -> tuple[Verdict, Verdict]:
    """Return what would be said of a run without its probes, and what is said with them."""
    phases = cases(summarise(Bundle.open(bundle)))
    return judge([replace(one, probed=None) for one in phases]).verdict, judge(phases).verdict


def _cell(said: Verdict) -> str:
    rule = f", `{said.causes[0].rule}`" if said.causes and said.kind != "measures_storage" else ""
    return f"{said.kind.replace('_', ' ')} {said.confidence:.0%}{rule}"


def main() -> int:
    """Run, and print a row for each."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--probe", default="10s", help="budget of the probes after each run")
    arguments = options.parse_args()
    if reason := missing():
        sys.stderr.write(f"cannot run here: {reason}\n")
        return 2
    out = sys.stdout
    out.write("| study | run | nothing tried | after probes | most probable |\n|---|---|---|---|---|\n")
    for study, runs in STUDIES.items():
        try:
            with Stage() as stage:
                for name, bundle in runs(stage, arguments.probe):
                    plain, probed = verdicts(bundle)
                    likely = ", ".join(f"{one.name} {one.probability:.0%}" for one in probed.explanations[:2])
                    out.write(f"| {study} | {name} | {_cell(plain)} | {_cell(probed)} | {likely} |\n")
                    out.flush()
        except (MissingPartError, RuntimeError) as error:
            out.write(f"| {study} | not staged: {error} | | | |\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
