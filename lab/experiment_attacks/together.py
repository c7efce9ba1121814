# ruff: noqa: E501 - files as people write them
"""Files with two to four mistakes each: all are told in one round, and none that is not there.

    python -m lab.experiment_attacks.together --files 40 --seed 157001

Draws mistakes of different parts of one file that is right, and holds what `experiment plan` says against
them: as many mistakes as were made, each with its line and what names it.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lab.parts import LOADSTONE

RIGHT: Final = """title = "Together"
question = "What matters?"
repeats = 2
seed = 5
order = "random"
design = "full"
runtime = "$time"
size = "4m"
pause = "1s"
metrics = ["iops", "lat_p99_ns"]
studied = ["page_cache_read"]
targets = ["$folder/data"]

[parameters]
time = "1s"
folder = "FOLDER"

[budget]
time = "10m"
written = "1g"

[[aims]]
most = "iops"
limit = "lat_p99_ns"
at_most = "2ms"

[[settings]]
control = "sysctl"
subject = "vm.swappiness"
value = 20

[[patterns]]
name = "mixed"
options = { ioengine = "psync", rw = "randrw", bs = "4k", rate_iops = 400 }

[[patterns]]
name = "named"
workload = "four-corners"
options = { iodepth = 2 }
set = { random_depth = 4 }

[[factors]]
name = "pressure"
control = "sysctl"
subject = "vm.stat_interval"
levels = [1, 7]

[[factors]]
name = "block"
option = "bs"
levels = ["4k", "8k"]

[[factors]]
name = "mix"
option = "rwmixread"
levels = [30, 70]
patterns = ["mixed"]

[[factors]]
name = "cache"
kind = "page_cache"
levels = ["kept", "dropped"]
"""


@dataclass(frozen=True, slots=True)
class Slip:
    """One mistake."""

    part: str
    """Of the file; a file has one mistake in each part at the most."""
    right: str
    wrong: str
    line: str
    """What the line has that it is told of."""
    says: str


SLIPS: Final = (
    Slip("repeats", "repeats = 2", "repaets = 2", "repaets", "did you mean 'repeats'"),
    Slip("repeats", "repeats = 2", "repeats = 0", "repeats = 0", "at least 1, found 0"),
    Slip("repeats", "repeats = 2", 'repeats = "two"', "repeats =", "whole number, found 'two'"),
    Slip("order", '"random"\ndesign', '"rnadom"\ndesign', "rnadom", "did you mean 'random'"),
    Slip("design", 'design = "full"', 'design = "fraktion"', "fraktion", "did you mean 'fraction'"),
    Slip("size", 'size = "4m"', 'size = "four"', "four", "expected a size"),
    Slip("pause", 'pause = "1s"', "pause = 1", "pause", "expected"),
    Slip("metrics", '"iops", "lat', '"iosp", "lat', "metrics", "did you mean 'iops'"),
    Slip("metrics", '["iops", "lat_p99_ns"]', '["iops", "iops"]', "metrics", "has 'iops' twice"),
    Slip("studied", "page_cache_read", "page_cash_read", "page_cash", "page_cache_read"),
    Slip("targets", "$folder/data", "$foldr/data", "$foldr", "did you mean 'folder'"),
    Slip("targets", 'targets = [', 'tragets = [', "tragets", "did you mean 'targets'"),
    Slip("parameters", 'time = "1s"', 'time = "1s"\nspare = 3', "spare", "nothing refers to it"),
    Slip("budget", 'time = "10m"', 'time = "10"', '"10"', "expected a time with its unit"),
    Slip("budget", 'written = "1g"', 'writen = "1g"', "writen", "did you mean 'written'"),
    Slip("aims", 'at_most = "2ms"', 'at_most = "2 parsecs"', "parsecs", "parsecs"),
    Slip("aims", 'most = "iops"\nlimit', 'most = "iops"\nleast = "iops"\nlimit', "[[aims]]", "one of most and least"),
    Slip("settings", 'control = "sysctl"\nsubject = "vm.swap', 'control = "sysctrl"\nsubject = "vm.swap', "sysctrl", "sysctl"),
    Slip("settings", "vm.swappiness", "vm.swapiness", "value = 20", "vm.swapiness"),
    Slip("settings", "vm.swappiness", "vm.stat_interval", "control = ", "sets for all runs"),
    Slip("mixed", "rate_iops", "rate_iosp", "rate_iosp", "rate_iops"),
    Slip("mixed", 'bs = "4k"', 'bs = "4q"', "4q", "4q"),
    Slip("mixed", "[[patterns]]", '[[patterns]]\nmeening = "x"', "meening", "did you mean 'meaning'"),
    Slip("named", "four-corners", "for-corners", "for-corners", "four-corners"),
    Slip("named", "iodepth = 2", "iodepht = 2", 'name = "named"|iodepht', "iodepth"),
    Slip("named", "random_depth", "random_dpeth", 'name = "named"', "random_depth"),
    Slip("pressure", "levels = [1, 7]", "levles = [1, 7]", "levles", "did you mean 'levels'"),
    Slip("pressure", "levels = [1, 7]", "levels = [7]", "levels = [7]", "at least 2 values"),
    Slip("pressure", "levels = [1, 7]", "levels = [7, 7]", "levels = [7, 7]", "twice"),
    Slip("pressure", 'control = "sysctl"\nsubject = "vm.stat', 'control = "syscttl"\nsubject = "vm.stat', "syscttl", "sysctl"),
    Slip("pressure", 'control = "sysctl"\nsubject = "vm.stat', 'control = "sysctl"\nkind = "target"\nsubject = "vm.stat', "[[factors]]", "kind"),
    Slip("block", 'option = "bs"', 'option = "blcksize"', "blcksize", "bs|blocksize"),
    Slip("block", '["4k", "8k"]', '["4k", "8kk"]', "8kk", "8kk"),
    Slip("block", '["4k", "8k"]', '["4k", "4096"]', "4096", "makes no difference"),
    Slip("block", '["4k", "8k"]', '["4k", ["8k"]]', '["8k"]', "expected text, a number"),
    Slip("mix", 'patterns = ["mixed"]', 'patterns = ["mixd"]', "mixd", "did you mean 'mixed'"),
    Slip("mix", "levels = [30, 70]", "levels = [30, 170]", "170", "100"),
    Slip("mix", 'name = "mix"', 'name = "mi/x"', "mi/x", "expected a name"),
    Slip("cache", '"kept", "dropped"', '"kept", "droped"', "droped", "did you mean 'dropped'"),
    Slip("cache", 'kind = "page_cache"', 'kind = "page_cashe"', "page_cashe", "did you mean 'page_cache'"),
    Slip("cache", 'kind = "page_cache"', 'kind = "page_cache"\nof = "1g"', 'of = "1g"', "only cache_share"),
)  # fmt: skip


def drawn(draw: random.Random) -> list[Slip]:
    """Return two to four mistakes of different parts."""
    slips: dict[str, Slip] = {}
    count = draw.randint(2, 4)
    while len(slips) < count:
        one = draw.choice(SLIPS)
        slips.setdefault(one.part, one)
    return list(slips.values())


def differences(slips: list[Slip], folder: Path) -> list[str]:
    """Write a file with these mistakes, and return how what is said differs from them."""
    text = RIGHT.replace("FOLDER", str(folder))
    for one in slips:
        if one.right not in text:
            return [f"cannot be made: {one.right}"]
        text = text.replace(one.right, one.wrong, 1)
    path = folder / "together.toml"
    path.write_text(text)
    command = [*LOADSTONE, "experiment", "plan", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said_lines = done.stderr.strip().splitlines()
    starts = [at for at, line in enumerate(said_lines) if "together.toml" in line.partition(": ")[2] or line.startswith(str(path))]  # fmt: skip
    texts = ["\n".join(said_lines[at:end]) for at, end in zip(starts, [*starts[1:], None], strict=True)]
    wrong = (
        [] if done.returncode == 2 and "Traceback" not in done.stderr else [f"exit code {done.returncode}"]
    )
    left = list(texts)
    for one in slips:
        numbers = [at for at, line in enumerate(text.splitlines(), 1) if any(word in line for word in one.line.splitlines()[0].split("|"))]  # fmt: skip
        hits = [
            told_text for told_text in left
            if re.search(one.says, told_text) and any(f":{number}:" in told_text for number in numbers)
        ]  # fmt: skip
        if hits:
            left.remove(hits[0])
        else:
            wrong.append(f"not told: {one.wrong!r}")
    wrong += [f"invented: {one}" for one in left]
    return [*wrong, done.stderr] if wrong else []


def main() -> int:
    """Draw files, and tell which were not told as they should be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    count = mistakes = 0
    for number in range(options.files):
        slips = drawn(random.Random(f"{options.seed} {number}"))
        mistakes += len(slips)
        with tempfile.TemporaryDirectory(prefix="loadstone-together-") as folder:
            wrong = differences(slips, Path(folder))
        count += bool(wrong)
        print(f"{number}: {'as it should be' if not wrong else 'WRONG: ' + chr(10).join(wrong)}", flush=True)
    print(f"{options.files - count} of {options.files} files with {mistakes} mistakes as they should be")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
