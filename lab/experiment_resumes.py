"""Experiments that are interrupted again and again, and gone on with: are they as if nothing had been?

Knows one small experiment on a file system on a loop device: a kernel parameter and a pace are varied, a
scheduler is set for all runs. Each point interrupts it one to three times at drawn moments: SIGKILL, of the
program or of all its processes, SIGINT, SIGTERM, or a power loss, which also cuts off what the run under way
had written. In between somebody may edit the file, remove the bundle of a run, resume twice at once, or
come up with another kernel or host name. Needs root.

    python -m lab.experiment_resumes --points 40 --seed 1

Prints one JSON document: what was interrupted how often, and every point that was not as it should be.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lab.experiment_attacks.bench import VARIED, AttackBench, EndedVerb, WrongError
from lab.parts import LOADSTONE, Stage, call, missing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RUNS: Final = 8
LONGEST_S: Final = 25.0
ENDS: Final = ("kill", "kill all", "interrupt", "terminate", "lose power")
BETWEEN: Final = (
    "nothing", "nothing", "edit", "remove a bundle", "resume twice", "other kernel", "other host",
)  # fmt: skip
FACTORS: Final = (
    VARIED
    + """
[[factors]]
name = "pace"
option = "rate_iops"
levels = [60, 120]

[[settings]]
control = "io_scheduler"
subject = "{device}"
value = "none"
"""
)
LOAD: Final = """
[[patterns]]
name = "load"
options = { ioengine = "psync", rw = "randrw", bs = "4k", direct = 1 }
"""


@dataclass(slots=True)
class ResumeBench:
    """The experiment, and what it looks like when nothing disturbs it."""

    bench: AttackBench
    device: str
    folder: Path
    text: str = ""
    undisturbed: list[dict[str, str]] = field(default_factory=list)
    did: Counter[str] = field(default_factory=Counter)

    @property
    def out(self) -> Path:
        """Return where the study is."""
        return self.bench.folder / "out"

    @property
    def draw(self) -> random.Random:
        """Return what everything is drawn from."""
        return self.bench.draw

    def runs(self) -> list[dict[str, Any]]:
        """Return the runs of the experiment, in their planned order."""
        document: dict[str, Any] = json.loads((self.out / "experiment.json").read_text())
        return list(document["runs"])

    def complete(self) -> dict[str, str]:
        """Return what each run that is complete has on disk, as one digest."""
        path = self.out / "study.json"
        points = json.loads(path.read_text())["points"] if path.exists() else []
        complete = [one for one in points if one["status"] == "complete"]
        return {one["name"]: digest(self.out / one["bundle"]) for one in complete}

    def point(self) -> list[str]:
        """Interrupt the experiment, go on with it to its end, and return what happened."""
        draw, events = self.draw, list[str]()
        shutil.rmtree(self.out, ignore_errors=True)
        for path in self.folder.glob("*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        file = self.bench.file(self.text)
        before: dict[str, str] = {}
        for number in range(draw.randint(1, 3)):
            fresh = not (self.out / "experiment.json").exists()
            if fresh:
                shutil.rmtree(self.out, ignore_errors=True)
            how, after_s = draw.choice(ENDS), draw.uniform(0.5, LONGEST_S)
            events.append(f"{'run' if fresh else 'resume'}, {how} after {after_s:.2f} s")
            self._interrupted(file if fresh else self.out, how, after_s, number)
            self.bench.is_put_back()
            before = self._nothing_lost(before)
            between = draw.choice(BETWEEN) if before and len(before) < RUNS else "nothing"
            if between != "nothing":
                events.append(between)
                before = self._between(between, before)
                self.bench.is_put_back()
        if (self.out / "experiment.json").exists():
            self._resumed().ends(0)
        else:
            shutil.rmtree(self.out, ignore_errors=True)
            self.bench.ran("run", file).ends(0)
        self.bench.is_put_back()
        self._nothing_lost(before)
        self._as_undisturbed()
        return events

    def _resumed(self, *prefix: str) -> EndedVerb:
        """Go on, with consent for what the run that was interrupted left in the file."""
        consent = [word for path in self.folder.iterdir() for word in ("--i-accept-data-loss", str(path))]
        ran = _through(self.bench, prefix, "resume", self.out)
        return _through(self.bench, prefix, "resume", self.out, *consent) if ran.code == 2 else ran

    def _interrupted(self, path: Path, how: str, after_s: float, number: int) -> None:
        self.did[how] += 1
        action = "run" if path.is_file() else "resume"
        consent = [word for one in self.folder.iterdir() for word in ("--i-accept-data-loss", str(one))]
        words = consent if action == "resume" and number else []
        process = self.bench.start(action, path, *words)
        time.sleep(after_s)
        alive = process.poll() is None
        if how == "interrupt":
            process.send_signal(signal.SIGINT)
        elif how == "terminate":
            process.send_signal(signal.SIGTERM)
        elif alive:
            for one in _tree(process.pid) if how != "kill" else [process.pid]:
                try:
                    os.kill(one, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        self.bench.ended(process)
        self.did["while at it"] += alive
        if how in ("interrupt", "terminate"):
            return
        time.sleep(0.7)
        if how == "lose power":
            self._power_lost()
        self.bench.restore().ends(0)

    def _power_lost(self) -> None:
        """Come up as after a boot: settings are the kernel's, and what was not synced is cut off or gone."""
        Path("/proc/sys/vm/stat_interval").write_text(self.bench.before["sysctl"])
        queue = Path("/sys/block") / Path(self.device).name / "queue/scheduler"
        chosen = self.bench.before[f"{Path(self.device).name} scheduler"]
        queue.write_text(chosen.partition("[")[2].partition("]")[0])
        for journal in (self.bench.state / "changes").glob("*.jsonl"):
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
            journal.write_text(journal.read_text().replace(boot, "the boot before"))
        study = self.out / "study.json"
        points = json.loads(study.read_text())["points"] if study.exists() else []
        for point in points:
            if point["status"] is None and point.get("bundle"):
                for file in sorted((self.out / point["bundle"]).rglob("*")):
                    if file.is_file() and self.draw.random() < 0.5:
                        os.truncate(file, self.draw.randint(0, file.stat().st_size))

    def _nothing_lost(self, before: Mapping[str, str]) -> dict[str, str]:
        now = self.complete()
        if changed := sorted(name for name, value in before.items() if now.get(name) != value):
            raise WrongError(f"complete before, and lost or run again: {changed}")
        return now

    def _between(self, what: str, before: dict[str, str]) -> dict[str, str]:
        self.did[what] += 1
        match what:
            case "edit":
                file = self.bench.file(self.text.replace("[60, 120]", "[60, 130]"))
                self.bench.ran("resume", file, "--out", str(self.out)).ends(2).says("changed|other")
                self.bench.file(self.text)
            case "remove a bundle":
                name = self.draw.choice(sorted(before))
                points = json.loads((self.out / "study.json").read_text())["points"]
                (bundle,) = (one["bundle"] for one in points if one["name"] == name)
                shutil.rmtree(self.out / bundle)
                return {one: value for one, value in before.items() if one != name}
            case "resume twice":
                self._twice()
            case "other kernel":
                self._elsewhere("kernel", ("setarch", "--uname-2.6"))
            case _:
                self._elsewhere("host", ("unshare", "--uts", "sh", "-c", 'hostname another; exec "$@"', "sh"))
        return before

    def _twice(self) -> None:
        consent = [word for one in self.folder.iterdir() for word in ("--i-accept-data-loss", str(one))]
        first = self.bench.start("resume", self.out, *consent)
        time.sleep(self.draw.uniform(0.0, 3.0))
        second = self.bench.start("resume", self.out, *consent)
        time.sleep(self.draw.uniform(2.0, 6.0))
        codes = []
        for one in (first, second):
            one.send_signal(signal.SIGINT)
        for one in (first, second):
            ran = self.bench.ended(one)
            codes.append(ran.code)
            ran.ends(0, 2, 130, -signal.SIGINT)
        if sum(code in (0, 130) for code in codes) == 2 and 2 not in codes:
            self.did["neither of two was refused"] += 1

    def _elsewhere(self, what: str, prefix: Sequence[str]) -> None:
        ran = self._resumed(*prefix)
        if ran.code == 0 and what not in ran.err:
            raise WrongError(f"gone on with on another {what}, and nothing is said: {ran.err[-600:]}")

    def _as_undisturbed(self) -> None:
        runs = self.runs()
        planned = [{"name": one["name"], **one["levels"]} for one in runs]
        if planned != self.undisturbed:
            raise WrongError("other runs, levels or order than of the undisturbed experiment")
        points = json.loads((self.out / "study.json").read_text())["points"]
        complete = [one["name"] for one in points if one["status"] == "complete"]
        if sorted(complete) != sorted(one["name"] for one in runs):
            raise WrongError(f"complete are {complete}")
        if len({one["bundle"] for one in points}) != len(points):
            raise WrongError("two runs have one bundle")
        report = self.bench.ran("report", self.out, "--json").ends(0)
        effects = json.loads(report.out)["effects"]["effects"]
        (pace,) = (one for one in effects if one["factor"] == "pace" and one["metric"] == "iops")
        if not 1.9 < pace["change"]["ratio"] < 2.1:
            raise WrongError(f"the pace gives {pace['change']}")
        cells = [one for one in json.loads(report.out)["effects"]["cells"] if one["metric"] == "iops"]
        # A run that a busy host made not valid is left out of what was measured, not of the study.
        if {one["runs"] + one["left_out"] for one in cells} != {2}:
            raise WrongError(f"runs of the combinations: {cells}")


def _through(bench: AttackBench, prefix: Sequence[str], action: str, *words: str | Path) -> EndedVerb:
    """Run the verb, below other programs where there are some."""
    command = [*prefix, *LOADSTONE, "experiment", action, *map(str, words)]
    command += ["--no-calibration", "--no-report", "--no-progress"]
    process = subprocess.Popen(
        command, env=os.environ | {"LOADSTONE_STATE": str(bench.state)}, cwd=bench.folder, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    return bench.ended(process)


def _tree(pid: int) -> list[int]:
    """Return a process and all that it started."""
    try:
        children = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        children = []
    return [pid, *(process for child in children for process in _tree(child))]


def digest(folder: Path) -> str:
    """Return one digest of all files below a directory."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            whole.update(f"{path.relative_to(folder)}\n".encode())
            whole.update(path.read_bytes())
    return whole.hexdigest()


def drill(points: int, seed: int, keep: Path | None = None) -> dict[str, Any]:
    """Do all points; return what was not as it should be, whose studies are copied into `keep`."""
    wrong: list[dict[str, Any]] = []
    with Stage() as stage:
        device = stage.loop(128, written=False)
        call("mkfs.ext4", "-q", device)
        folder = stage.folder / "volume"
        folder.mkdir()
        call("mount", device, folder)
        stage._stack.callback(call, "umount", folder)
        shutil.rmtree(folder / "lost+found")
        bench = AttackBench(stage, random.Random(seed))
        resumes = ResumeBench(bench, device, folder)
        resumes.text = bench.text(FACTORS.replace("{device}", device), target=str(folder / "data"), load=LOAD)
        bench.before = bench.snapshot()
        bench.ran("run", bench.file(resumes.text)).ends(0)
        bench.is_put_back()
        resumes.undisturbed = [{"name": one["name"], **one["levels"]} for one in resumes.runs()]
        for number in range(points):
            try:
                events = resumes.point()
            except WrongError as error:
                wrong.append({"point": number, "wrong": str(error)})
                print(f"{number}: WRONG {error}", file=sys.stderr, flush=True)
                if keep is not None:
                    shutil.copytree(resumes.out, keep / f"{seed}-{number}", dirs_exist_ok=True)
                bench.restore()
                continue
            print(f"{number}: {'; '.join(events)}", file=sys.stderr, flush=True)
    return {"points": points, "seed": seed, "did": dict(resumes.did), "wrong": wrong}


def main() -> int:
    """Read the options, drill, and print what was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--points", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="directory for studies that are not as they should be")
    options = parser.parse_args()
    if reason := missing():
        print(f"cannot run here: {reason}", file=sys.stderr)
        return 2
    summary = drill(options.points, options.seed, options.keep)
    print(json.dumps(summary, indent=2))
    return 1 if summary["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
