"""Commands as a factor: permitted or not, that fail, hang, stay in the background, or cannot be undone."""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path
from typing import Final

from lab.experiment_attacks.bench import PATIENCE_S, AttackBench, WrongError, line_of
from lab.experiment_attacks.valid import valid


def command(bench: AttackBench) -> None:
    """Commands, permitted and not, and one that fails."""
    mark = bench.folder / "mark"
    level = f'{{ name = "on", do = "touch {mark}", undo = "rm {mark}" }}'
    factor = f'\n[[factors]]\nname = "f"\nkind = "command"\nlevels = ["as is", {level}]\n'
    path = bench.file(bench.text(factor))
    for action in ("plan", "run"):
        bench.ran(action, path).ends(2).says("--allow-exec", line_of(path, "levels"))
    if mark.exists() or (bench.folder / "out").exists():
        raise WrongError("something was done without a permission")
    valid(bench, factor, 4, "--allow-exec")
    if mark.exists():
        raise WrongError("the command was not undone")
    shutil.rmtree(bench.folder / "out")
    path = bench.file(bench.text(factor.replace("touch", "false").replace("rm ", "rm -f ")))
    bench.ran("run", path, "--allow-exec").ends(2).says("ended with 1", "1 level cannot be set here")
    if (bench.folder / "out").exists():
        raise WrongError("a run was begun although a level cannot be set")


def wild_command(bench: AttackBench) -> None:
    """Commands that stay in the background, hang, print escapes, or cannot be undone."""
    kind = bench.draw.choice(["background", "hangs", "escapes", "cannot be undone"])
    number = bench.folder / "pid"
    does = {
        "background": (f"sleep 300 & echo $! > {number}", f"kill $(cat {number})"),
        "hangs": ("sleep 300", "true"),
        "escapes": (r"printf '\\033[2Jgone\\007\\n' >&2; exit 3", "true"),
        "cannot be undone": ("true", r"printf '\\033[2Jno way' >&2; exit 4"),
    }
    do, undo = does[kind]
    level = f'{{ name = "on", do = "{do}", undo = "{undo}" }}'
    path = bench.file(
        bench.text(f'\n[[factors]]\nname = "f"\nkind = "command"\nlevels = ["as is", {level}]\n')
    )
    out = bench.folder / "out"
    process = bench.start("run", path, "--allow-exec")
    if kind == "hangs":
        until_s = time.monotonic() + PATIENCE_S
        while not _children(process.pid, "sleep 300") and time.monotonic() < until_s:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        bench.ended(process).ends(130)
    elif kind == "background":
        bench.ended(process).ends(0)
        bench.complete(out, 4)
        if Path("/proc", number.read_text().strip()).exists():
            raise WrongError("the program in the background was not ended")
    elif kind == "escapes":
        bench.ended(process).ends(2).says(r"ended with 3: \\x1b\[2Jgone")
    else:
        bench.ended(process).ends(1).says("STILL CHANGED", r"ended with 4: \\x1b\[2Jno way")
        bench.restore().ends(1).says("ended with 4")
        bench.restore("--force").ends(0).says("forgotten")


def _children(number: int, words: str) -> bool:
    """Return whether a descendant of a process is this command."""
    for task in Path(f"/proc/{number}/task").glob("*/children"):
        for child in task.read_text().split():
            try:
                argv = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            except OSError:
                continue
            if argv == words or _children(int(child), words):
                return True
    return False


def grandchild(bench: AttackBench) -> None:
    """Killed while a command has a program of its own at work: what that makes later is undone, too."""
    mark, begun = bench.folder / "mark", bench.folder / "begun"
    level = f'{{ name = "on", do = "(touch {begun}; sleep 20; touch {mark}) & wait", undo = "rm -f {mark}" }}'
    factor = f'\n[[factors]]\nname = "f"\nkind = "command"\nlevels = [{level}, "as is"]\n'
    process = bench.start("run", bench.file(bench.text(factor)), "--allow-exec")
    until_s = time.monotonic() + 120
    while not begun.exists() and time.monotonic() < until_s:
        time.sleep(0.02)
    began_s = time.monotonic()
    time.sleep(bench.draw.uniform(0.0, 2.0))
    process.kill()
    bench.ended(process)
    bench.restore().ends(0)
    time.sleep(max(0.0, 22 + began_s - time.monotonic()))
    if mark.exists():
        raise WrongError("what a command's own program made after the kill is still there")


ATTACKS: Final = (command, wild_command, grandchild)
