"""Signals at drawn moments, kills, and what puts the machine back after them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

from lab.experiment_attacks.bench import VARIED, AttackBench, WrongError, begun
from lab.parts import LOADSTONE


def _interrupt(bench: AttackBench, number: int, text: str | None = None) -> None:
    path, out = bench.file(text or bench.text()), bench.folder / "out"
    process = bench.start("run", path)
    time.sleep(bench.draw.uniform(0.0, 8.0))
    alive = process.poll() is None
    if alive:
        process.send_signal(number)
    ran = bench.ended(process)
    if number != signal.SIGKILL:
        ran.ends_asked(0 if out.exists() else number)
    if number == signal.SIGKILL and alive:
        time.sleep(0.5)
        bench.restore().ends(0)
    bench.is_put_back()
    if not (out / "experiment.json").exists():
        return
    # What a kill left in a file, or half of a file system on a device, is nobody's: consent is asked for.
    unknown = number == signal.SIGKILL or text is not None
    complete = [name for name, status in bench.runs(out).items() if status == "complete"]
    if bench.draw.random() < 0.5:
        process = bench.start("resume", out)
        time.sleep(bench.draw.uniform(0.0, 4.0))
        process.send_signal(signal.SIGINT)
        code = bench.ended(process).code
        if code not in (130, 0, -signal.SIGINT, 2 if unknown else 0):
            raise WrongError(f"exit code {code} after an interrupted resume")
        bench.is_put_back()
    (bench.resumed(out) if unknown else bench.ran("resume", out)).ends(0)
    bench.complete(out, 4)
    if not set(complete) <= set(bench.runs(out)):
        raise WrongError("a run that was complete is gone")


def interrupted(bench: AttackBench) -> None:
    """Ctrl-C at a drawn moment of run and resume."""
    _interrupt(bench, signal.SIGINT)


def terminated(bench: AttackBench) -> None:
    """SIGTERM."""
    _interrupt(bench, signal.SIGTERM)


def killed(bench: AttackBench) -> None:
    """SIGKILL, then `loadstone restore`, then resume."""
    _interrupt(bench, signal.SIGKILL)


def _layouts(bench: AttackBench) -> str:
    """Return a file with two layouts of two devices, on each of which a scheduler is set."""
    devices = [bench.stage.loop(200, written=False) for _ in range(2)]
    bench.before = bench.snapshot()
    names = ", ".join(f'"{one}"' for one in devices)
    factors = (
        f'\n[layouts.array]\nmanager = "btrfs"\nraid = "{bench.draw.choice("01")}"\n'
        '\n[layouts.each]\nfilesystem = "ext4"\n'
        '\n[[factors]]\nname = "f"\nkind = "layout"\nlevels = ["array", "each"]\n'
        f'\n[[settings]]\ncontrol = "io_scheduler"\nsubject = "{devices[0]}"\nvalue = "none"\n'
    )
    return f"devices = [{names}]\n{bench.text(factors, target='{file}')}"


def interrupted_building(bench: AttackBench) -> None:
    """Ctrl-C while layouts are built and taken down."""
    _interrupt(bench, signal.SIGINT, _layouts(bench))


def killed_building(bench: AttackBench) -> None:
    """SIGKILL there."""
    _interrupt(bench, signal.SIGKILL, _layouts(bench))


def interrupted_plan(bench: AttackBench) -> None:
    """Ctrl-C during plan."""
    process = bench.start("plan", bench.file(bench.text()))
    time.sleep(bench.draw.uniform(0.0, 1.5))
    process.send_signal(signal.SIGINT)
    bench.ended(process).ends_asked(signal.SIGINT)


def rebooted(bench: AttackBench) -> None:
    """Killed in a run, and the host boots: settings are the kernel's again, what was made on disk is not."""
    mark = bench.folder / "mark"
    level = f'{{ name = "on", do = "touch {mark}", undo = "rm {mark}" }}'
    factors = VARIED + f'\n[[factors]]\nname = "f"\nkind = "command"\nlevels = [{level}, "as is"]\n'
    path, out = bench.file(bench.text(factors, runtime="2s")), bench.folder / "out"
    process = bench.start("run", path, "--allow-exec")
    begun(process, out, bench.draw.randrange(1, 6))
    process.kill()
    bench.ended(process)
    time.sleep(0.5)
    Path("/proc/sys/vm/stat_interval").write_text(bench.before["sysctl"])
    for journal in (bench.state / "changes").glob("*.jsonl"):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        journal.write_text(journal.read_text().replace(boot, "the boot before"))
    bench.restore().ends(0)
    if mark.exists():
        raise WrongError("what the command made is still there")
    bench.is_put_back()
    bench.resumed(out, "--allow-exec").ends(0)
    bench.complete(out, 8)


def restored_twice(bench: AttackBench) -> None:
    """Killed, and two `loadstone restore` at once, then a third: nothing is undone twice."""
    marks = bench.folder / "undone"
    level = f'{{ name = "on", do = "true", undo = "echo x >> {marks}" }}'
    factors = VARIED + f'\n[[factors]]\nname = "f"\nkind = "command"\nlevels = [{level}, "as is"]\n'
    path, out = (
        bench.file(bench.text(factors, runtime="3s").replace('"random"', '"given"')),
        bench.folder / "out",
    )
    process = bench.start("run", path, "--allow-exec")
    begun(process, out, bench.draw.randrange(1, 8))
    time.sleep(bench.draw.uniform(0.0, 2.0))
    process.kill()
    bench.ended(process)
    time.sleep(0.5)
    undone = marks.read_text().count("x") if marks.exists() else 0
    command = [*LOADSTONE, "restore"]
    environment = os.environ | {"LOADSTONE_STATE": str(bench.state)}
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [one.communicate()[0] for one in both]
    if any(one.returncode for one in both):
        raise WrongError(f"two at once: {outputs}")
    bench.restore().ends(0).says("nothing was left changed")
    now = marks.read_text().count("x") if marks.exists() else 0
    if now > undone + 1:
        raise WrongError(f"a command was undone {now - undone} times")
    bench.is_put_back()


ATTACKS: Final = (
    interrupted,
    terminated,
    killed,
    interrupted_building,
    killed_building,
    interrupted_plan,
    rebooted,
    restored_twice,
)
