"""Fuzz the engine's Plan reader: no crash, no hang, and a reason for every refusal.

Starts from Plans that are valid, changes a few places in each (values at their limits, other
types, missing and unknown fields, damaged bytes) and gives the result to
`loadstone-engine check`. A Plan it accepts whose I/O is all virtual, or in small trees of a folder
of the fuzzer's own, is also run for a moment.

    python -m tests.fuzz.fuzz_plan --minutes 10 --seed 1 [--engine PATH]
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.support.json_places import places

LIMITS: list[Any] = [
    0, 1, -1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64,
    0.0, -0.0, 0.5, 1e-308, 1e308, -1e308, 100, 101, True, False, None, "", "/dev/null", "\u0000", [],
    {}, [0], {"type": "x"},
]  # fmt: skip
CHECK_SECONDS = 10.0
RUN_SECONDS = 20.0
ACCEPTABLE = {0, 2}
"""Done, or the Plan is not acceptable."""
RUN_ACCEPTABLE = {0, 2, 3}
"""The same, or a target could not be prepared."""


SCRATCH = "SCRATCH"
"""In a Plan's text: the folder that trees of the fuzzer are in."""
MOST_FILES = 10_000
MOST_FILE_BYTES = 1 << 20


class FindingError(Exception):
    """The engine did what it must not do."""


def mutate(plan: dict[str, Any], rng: random.Random) -> bytes:
    """A damaged copy of a Plan, as the bytes given to the engine."""
    plan = copy.deepcopy(plan)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        change_one(plan, rng)
    data = json.dumps(plan).encode()
    if rng.random() < 0.1:
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 8)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        data = bytes(damaged)
    return data[: rng.randrange(len(data))] if rng.random() < 0.03 else data


def change_one(plan: dict[str, Any], rng: random.Random) -> None:
    """Change one place of a Plan in one way."""
    path = rng.choice(places(plan))
    holder: Any = plan
    for key in path[:-1]:
        holder = holder[key]
    key = path[-1]
    match rng.randrange(6):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[f"{key}x"] = rng.choice(LIMITS)
        case 2 if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(rng.choice(holder)))
        case 3 if isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
            holder[key] = holder[key] * rng.choice([-1, 2, 1000]) + rng.choice([-1, 0, 1])
        case _:
            holder[key] = copy.deepcopy(rng.choice(LIMITS))


def is_contained(data: bytes, scratch: Path) -> bool:
    """Whether running the Plan touches nothing but small trees in `scratch`: only then may it be run."""
    try:
        plan = json.loads(data)
        backends = {w["backend"]["type"] for w in plan["workers"]}
        anchors = {t["path"] for t in plan["targets"] if t["kind"] != "virtual"}
        kinds = {t["kind"] for t in plan["targets"]}
        small = all(is_small(tree) for tree in plan.get("trees", ()))
    except (ValueError, KeyError, TypeError):
        return False
    own = {str(scratch / "one"), str(scratch / "two")}
    return backends <= {"null", "sim", "files"} and kinds <= {"virtual", "tree"} and anchors <= own and small


def is_small(tree: dict[str, Any]) -> bool:
    """Whether a tree is one that a moment's run may make."""
    sizes = tree["sizes"]
    largest = max((entry["bytes"] for entry in sizes.get("table", ())), default=sizes.get("mean_bytes", 0))
    holders = sum(tree["width"] ** level for level in range(1, min(tree["depth"], 64) + 1))
    return bool(holders * tree["files"] <= MOST_FILES and largest <= MOST_FILE_BYTES)


def check(engine: str, file: Path) -> int:
    """Give a Plan to `check`; return its exit code, or raise what is wrong with it."""
    try:
        done = subprocess.run(
            [engine, "check", str(file)], capture_output=True, timeout=CHECK_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise FindingError(f"check takes longer than {CHECK_SECONDS} s") from late
    if done.returncode not in ACCEPTABLE:
        raise FindingError(f"check ended with {done.returncode}: {done.stderr[-400:]!r}")
    if done.returncode and not (done.stdout or done.stderr).strip():
        raise FindingError("check refused without a reason")
    if b"panicked" in done.stderr:
        raise FindingError(f"check panicked: {done.stderr[-400:]!r}")
    return done.returncode


def run(engine: str, file: Path, rng: random.Random) -> None:
    """Run an accepted, contained Plan for a moment, then stop it."""
    with tempfile.TemporaryDirectory() as out:
        engine_run = subprocess.Popen(
            [engine, "run", str(file), "--out", out],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                engine_run.wait(timeout=rng.choice([0.05, 0.2]))
            _, err = engine_run.communicate(timeout=RUN_SECONDS)  # closes its standard input: it must end
        except subprocess.TimeoutExpired as late:
            raise FindingError("run goes on after its standard input was closed") from late
        finally:
            engine_run.kill()
    if engine_run.returncode not in RUN_ACCEPTABLE or b"panicked" in err:
        raise FindingError(f"run ended with {engine_run.returncode}: {err[-400:]!r}")


def main() -> int:
    """Fuzz until the time is over; print one line and return 1 at the first finding."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", default="target/release/loadstone-engine")
    parser.add_argument(
        "--plans", type=Path, default=Path(__file__).parent / "plans", help="folder of valid Plans"
    )
    options = parser.parse_args()
    rng = random.Random(options.seed)
    plans = [json.loads(f.read_text()) for f in sorted(options.plans.glob("*.json"))]
    if not plans:
        parser.error(f"no Plan in {options.plans}")
    counts = {"tried": 0, "accepted": 0, "run": 0}
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        file, scratch = Path(folder) / "plan.json", Path(folder) / "trees"
        scratch.mkdir()
        while time.monotonic() < end:
            data = mutate(rng.choice(plans), rng).replace(SCRATCH.encode(), bytes(scratch))
            file.write_bytes(data)
            try:
                counts["tried"] += 1
                if check(options.engine, file) == 0:
                    counts["accepted"] += 1
                    if is_contained(data, scratch):
                        counts["run"] += 1
                        run(options.engine, file, rng)
            except FindingError as finding:
                kept = Path(f"fuzz-plan-{options.seed}-{counts['tried']}.json")
                kept.write_bytes(data)
                print(f"{finding}\nkept in {kept} after {counts}", file=sys.stderr)
                return 1
    print(f"fuzz_plan: nothing found; {counts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
