"""Whole situations drawn from a seed: `python -m lab.hosts.drawn --seed 1 --draws 60 [--keep FILE]`.

A situation is a way to the hosts, how many they are, a verb, a kind of job file, targets of their own or one
that all see, writes or reads, consents, a place in which a user put a secret, and a fault in one of its runs.
From outside is held what must be true of all: the exit code, engines gone, bundles that open, sums to the
I/O, nothing written without leave on any host, no secret where others can read it, and a sentence with the
host and the remedy. Needs root, sshd and, for some, Slurm.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.hosts import drawn_jobs, namespaces, slurm
from lab.hosts.attack import CLOCK
from lab.hosts.drawn_secrets import PLACES, REFUSED, Secret
from lab.hosts.namespaces import NamespaceHosts
from lab.hosts.standing import StandingScheduler
from lab.hosts.trial import HostsTrial, kill, opens
from lab.parts import LOADSTONE, loadstone_with

if TYPE_CHECKING:
    from collections.abc import Callable

LAUNCHES = ("pipe", "dask", "scheduler", "srun")
VERBS = ("run", "repeats", "curve", "sweep", "experiment", "replay")
LATER = ("agent killed", "engine killed", "SIGKILL", "SIGTERM", "Ctrl-C", "link down", "link short")
BY_SSH = ("clock", "disk full", "wrong version", "key refused")
"""Faults of one host's own Loadstone, which a hosts file names where ssh starts it."""
BEFORE = ("disk full", "wrong version", "key refused")
ENDS_AT_ONCE = {"SIGKILL", "SIGTERM", "Ctrl-C"}
GONE_S = 2.0
ENDS_S = 240.0
RUN_S = 7
LOST_S = 6


@dataclass(frozen=True)
class HostsSituation:
    """What is tried."""

    seed: int
    launch: str
    hosts: int
    verb: str
    language: str
    shared: bool
    writes: bool
    divide: bool
    consents: str
    secret: str
    fault: str
    struck: str
    number: int
    share: float

    @classmethod
    def of(cls, seed: int) -> HostsSituation:
        drawn = random.Random(seed)
        verb = drawn.choice(VERBS)
        language = drawn.choice(drawn_jobs.LANGUAGES)
        if verb == "experiment":
            language = "toml"
        elif verb in {"curve", "sweep"} or language == "toml":
            language = "fio"
        hosts = 3 if language == "icf" else drawn.randint(1, 4)
        launch = drawn.choice(LAUNCHES)
        ssh = launch in {"pipe", "dask"}
        fault = drawn.choice((*LATER, "none", "none", *(BY_SSH if ssh else ())))
        writes, is_shared = drawn.random() < 0.5 and language != "icf", drawn.random() < 0.5
        return cls(
            seed, launch, hosts, verb, language, is_shared, writes,
            writes and is_shared and hosts > 1 and drawn.random() < 0.5,
            drawn.choice(("all", "all", "all", "none", "some")), drawn.choice(PLACES), fault,
            f"h{drawn.randint(1, hosts)}", drawn.randint(1, drawn_jobs.RUNS[verb]), drawn.uniform(0.05, 0.6),
        )  # fmt: skip

    @property
    def is_refused(self) -> bool:
        """Whether it must end before anything is begun: a secret or a write that is not allowed."""
        return self.secret in REFUSED or (self.writes and not self._is_allowed)

    @property
    def _is_allowed(self) -> bool:
        if self.hosts > 1 and self.shared and not self.divide:
            return False
        return self.consents == "all" or (self.consents == "some" and self.hosts == 1)

    def consented(self, names: list[str], file: Path) -> list[str]:
        """Return the words of consent, for all hosts, none, or all but the last."""
        count = {"all": len(names), "none": 0, "some": max(1, len(names) - 1)}[self.consents]
        consents = [f"{name}:{file}" for name in names[:count]] if self.writes else []
        return [word for one in consents for word in ("--i-accept-data-loss", one)]


@dataclass
class DrawnOutcome:
    """What became of it, and what of that is wrong."""

    situation: HostsSituation
    code: int | None = None
    said: str = ""
    kept: str = ""
    engines_gone_s: float | None = None
    wrong: list[str] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    if (why := namespaces.missing()) is not None:
        print(f"not tried: {why}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    wrong = 0
    for seed in range(options.seed, options.seed + options.draws):
        outcome = tried(HostsSituation.of(seed))
        wrong += bool(outcome.wrong)
        line = json.dumps(asdict(outcome))
        print(line, flush=True)
        if options.keep is not None:
            with options.keep.open("a") as file:
                file.write(line + "\n")
    print(f"{options.draws} situations, {wrong} not as they should be")
    return 1 if wrong else 0


def tried(situation: HostsSituation) -> DrawnOutcome:
    """Try one situation on hosts of its own."""
    outcome = DrawnOutcome(situation)
    try:
        with (
            NamespaceHosts(situation.hosts, name="drawn", own_mounts=True) as hosts,
            tempfile.TemporaryDirectory(prefix="loadstonedrawn") as directory,
            Secret(situation.secret, Path(directory)) as secret,
        ):
            TriedSituation(situation, hosts, Path(directory), secret, outcome).go()
    except Exception as error:  # noqa: BLE001 # what cannot be staged is told, and the next one is tried
        outcome.wrong.append(f"not staged: {type(error).__name__}: {error}")
    return outcome


class TriedSituation:
    """One situation while it is tried."""

    def __init__(
        self,
        situation: HostsSituation,
        hosts: NamespaceHosts,
        place: Path,
        secret: Secret,
        outcome: DrawnOutcome,
    ) -> None:
        self.at = situation
        self.hosts = hosts
        self.place = place
        self.secret = secret
        self.outcome = outcome
        self.bystanders: dict[str, str] = {}
        self.targets: dict[str, str] = {}
        self.undo: list[Callable[[], object]] = []

    def go(self) -> None:
        self._make_targets()
        with self._scheduler() as scheduler:
            self.trial = HostsTrial(self.hosts, self.place, self.at.launch, scheduler)
            try:
                if self.at.verb == "replay":
                    self._run_first()
                self.trial.begin(*self._command())
                self.secret.look_while(self.trial, self.hosts)
                self._strike()
                self.trial.finish(ENDS_S)
            finally:
                self.secret.stop()
                for undo in self.undo:
                    undo()
                self.undo.clear()
            self.trial.settle(30)
            self._judge()

    def _scheduler(self) -> Any:
        if self.at.launch == "scheduler":
            return StandingScheduler(self.hosts)
        if self.at.launch == "srun":
            return slurm.SrunScheduler(self.hosts)
        return contextlib.nullcontext()

    # What is there before.

    @property
    def folder(self) -> Path:
        """Where targets are: the same path on all hosts."""
        return self.place / "targets"

    def _make_targets(self) -> None:
        self.folder.mkdir()
        names = self.hosts.names
        if not self.at.shared:
            for name in names:
                self.hosts.inside(name, "mount", "-t", "tmpfs", "-o", "size=16m", "own", self.folder)
        for name in names:
            for file in ("data", "bystander"):
                self.hosts.inside(
                    name,
                    "dd",
                    "if=/dev/urandom",
                    f"of={self.folder / file}",
                    "bs=1M",
                    "count=1",
                    "status=none",
                )
        self.targets, self.bystanders = self._digests("data"), self._digests("bystander")

    def _digests(self, file: str) -> dict[str, str]:
        return {
            name: self.hosts.inside(name, "sha256sum", self.folder / file).split()[0]
            for name in self.hosts.names
        }

    # The command.

    def _command(self) -> tuple[list[str], dict[str, str]]:
        file = self.folder / "data"
        at, secret = self.at, self.secret
        job = drawn_jobs.write(at, self.place, self.hosts, file, RUN_S)
        words = [*LOADSTONE, *drawn_jobs.verb_words(at, job, self.place / "first")]
        words += ["--hosts", secret.hosts_word(self._hosts_file(), self.hosts), "--out", str(self.trial.out)]
        words += ["--no-report", "--no-calibration"] if at.verb != "experiment" else []
        words += ["--divide"] if at.divide and at.verb != "replay" else []
        words += at.consented(self.hosts.names, file)
        words += secret.words
        return words, {**os.environ, **secret.environment, "LOADSTONE_STATE": str(self.place / "state")}

    def _hosts_file(self) -> Path:
        standing = self.trial.standing
        run = f'transport = "{self.at.launch}"' if standing is None else standing.settings
        lost = 20 if self.at.fault == "link short" else LOST_S
        run += f"\nlost_after_s = {lost}\nconnect_s = 120"
        return self.hosts.hosts_toml(run=run, hosts={self.at.struck: self._struck_host() or ""})

    def _struck_host(self) -> str | None:
        """Return lines of the hosts file that stage a fault which is there from the start."""
        if self.at.is_refused:
            return None
        match self.at.fault:
            case "disk full":
                small = self.place / "small"
                small.mkdir(exist_ok=True)
                # On the host, which has mounts of its own; a run of a second keeps some 100 KiB there.
                self.hosts.inside(self.at.struck, "mount", "-t", "tmpfs", "-o", "size=48k", "full", small)
                return f'directory = "{small}"\n'
            case "wrong version":
                copy = self.place / "old"
                source = Path(os.environ["PYTHONPATH"].split(":")[0]) / "loadstone"
                subprocess.run(["mkdir", "-p", str(copy)], check=True)
                subprocess.run(["cp", "-r", str(source), str(copy)], check=True)
                (copy / "loadstone" / "version.py").write_text('__version__ = "0.0.9"\n')
                return self._program(str(copy))
            case "clock":
                shim = self.place / "shim"
                shim.mkdir(exist_ok=True)
                (shim / "sitecustomize.py").write_text(CLOCK.format(mark=str(self.place / "clock")))
                return self._program(f"{shim}:{os.environ['PYTHONPATH']}")
            case "key refused":
                key = self.place / "other"
                subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
                return f'identity_file = "{key}"\n'
            case _:
                return None

    def _program(self, path: str) -> str:
        return f"program = {json.dumps(loadstone_with(PYTHONPATH=path))}\n"

    def _run_first(self) -> None:
        """Do the run that is replayed."""
        job = drawn_jobs.write(self.at, self.place, self.hosts, self.folder / "data", RUN_S)
        standing = self.trial.standing
        run = f'transport = "{self.at.launch}"' if standing is None else standing.settings
        toml = self.hosts.hosts_toml(run=f"{run}\nconnect_s = 120")
        words = [*LOADSTONE, "run", str(job), "--hosts", str(toml)]
        words += ["--out", str(self.place / "first"), "--no-report", "--no-calibration"]
        # Reads, or with everybody's leave: it must be there to be run again.
        file = self.folder / "data"
        words += ["--divide"] if self.at.divide else []
        if self.at.writes:
            consents = [f"{name}:{file}" for name in self.hosts.names]
            consents += (
                [f"shared:{file}"] if self.at.shared and self.at.hosts > 1 and not self.at.divide else []
            )
            words += [word for one in consents for word in ("--i-accept-data-loss", one)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=ENDS_S)
        if done.returncode:
            raise RuntimeError(f"the first run: code {done.returncode}: {done.stderr[-600:]}")
        for name in self.hosts.names:
            self.hosts.sweep(name)
        self.targets = self._digests("data")

    # The fault.

    def _strike(self) -> None:
        at, trial = self.at, self.trial
        if at.is_refused or at.fault in BEFORE or at.fault == "none":
            return
        trial.until(trial.begun(at.number), 240)
        time.sleep(at.share * RUN_S)
        if trial.process is None or trial.process.poll() is not None:
            self.outcome.wrong.append("the command had ended before the moment came")
            return
        match at.fault:
            case "agent killed":
                kill(self.hosts.agents(at.struck))
            case "engine killed":
                kill(self.hosts.engines(at.struck))
            case "SIGKILL" | "SIGTERM":
                kill(trial.coordinator(), getattr(signal, at.fault))
                self.outcome.engines_gone_s = trial.gone_within(30)
            case "Ctrl-C":
                kill(trial.coordinator()[:1], signal.SIGINT)
                self.outcome.engines_gone_s = trial.gone_within(30)
            case "link down" | "link short":
                self.hosts.link(at.struck, "down")
                if at.fault == "link short":
                    time.sleep(3)
                    self.hosts.link(at.struck, "up")
                else:
                    self.undo.append(lambda: self.hosts.link(at.struck, "up"))
            case _:
                (self.place / "clock").touch()

    # What must be true.

    def _judge(self) -> None:
        outcome, trial = self.outcome, self.trial
        outcome.code, outcome.said, outcome.kept = trial.code, trial.said[-1500:], self._readable_parts()
        wrong = outcome.wrong
        wrong += trial.notes
        wrong += self._wrong_code()
        wrong += self.secret.leaks(trial)
        wrong += ["it told a traceback"] if "Traceback" in trial.said else []
        if self.at.fault in ENDS_AT_ONCE and not self.at.is_refused:
            gone_s = outcome.engines_gone_s
            wrong += [f"engines gone after {gone_s}"] if gone_s is None or gone_s > GONE_S else []
        wrong += [trial.back()] if "LEFT" in trial.back() else []
        wrong += self._unreadable()
        wrong += self._wrong_sums()
        wrong += self._written()

    def _wrong_code(self) -> list[str]:
        at, trial = self.at, self.trial
        expected = {
            "none": {0}, "agent killed": {1}, "engine killed": {1}, "SIGKILL": {-9, 137}, "SIGTERM": {130},
            "Ctrl-C": {130}, "link down": {1}, "link short": {0}, "clock": {0}, "disk full": {1, 2},
            "wrong version": {1, 2}, "key refused": {1, 2},
        }[at.fault]  # fmt: skip
        if at.is_refused:
            expected = {2}
        wrong = [] if trial.code in expected else [f"code {trial.code}, not {expected}"]
        if at.is_refused and (trial.out / "manifest.json").exists():
            wrong.append("it was refused, and left a bundle")
        if trial.code == 1 and expected != {0}:
            names = {at.struck, self.hosts.address(at.struck)}
            wrong += [] if any(name in trial.said for name in names) else ["the host is not named"]
            wrong += [] if "hint:" in trial.said else ["no remedy is told"]
        return wrong

    def _readable_parts(self) -> str:
        study = self.trial.out / "study.json"
        if not study.exists():
            return self.trial.kept()
        record = json.loads(study.read_text())
        return f"study {record['status']}, runs: {[point['status'] for point in record['points']]}"

    def _unreadable(self) -> list[str]:
        roots = [self.trial.out, *(self.hosts.directory / name for name in self.hosts.names)]
        begun = [path.parent for root in roots for path in root.rglob("plan.json")]
        return [f"{path} cannot be read" for path in begun if not opens(path)]

    def _wrong_sums(self) -> list[str]:
        wrong = []
        for path in self.trial.out.rglob("result.json"):
            result = json.loads(path.read_text())
            if "hosts" not in result or not result["hosts"]:
                continue
            total = result["total"]["operations"]
            hosts = [host["ops"] or 0 for host in result["hosts"]]
            if total != sum(hosts):
                wrong.append(f"{path.parent.name}: {total} in total, and {hosts}")
            if self.at.fault == "none" and not all(hosts):
                wrong.append(f"{path.parent.name}: a host did nothing: {hosts}")
        if (
            self.at.fault == "none"
            and not self.at.is_refused
            and not list(self.trial.out.rglob("result.json"))
        ):
            wrong.append("there is no result")
        return wrong

    def _written(self) -> list[str]:
        wrong = []
        if self._digests("bystander") != self.bystanders:
            wrong.append("a file that is no target was changed")
        now = self._digests("data")
        if (not self.at.writes or self.at.is_refused) and now != self.targets:
            wrong.append("a target was changed without leave")
        for path in self.trial.out.rglob("hosts.json"):
            parts = drawn_jobs.parts_of(path.parent) if self.at.divide and self.at.shared else []
            if any(one[1] > two[0] for one, two in itertools.pairwise(parts)):
                wrong.append(f"parts overlap: {parts}")
        return wrong


if __name__ == "__main__":
    sys.exit(main())
