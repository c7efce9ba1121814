"""`python -m lab.probes`: draw situations, probe them, and write the table to docs/probes-tried.md."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

from lab.probes.draw import HONEST, KINDS
from lab.probes.page import write
from lab.probes.simulate import attempt

from loadstone.explanations.names import BY_NAME, UNEXPLAINED

PAGE = Path(__file__).parents[2] / "docs" / "probes-tried.md"
MEASURES = frozenset(name for name, row in BY_NAME.items() if row.effect == "measures")
BELIEVED = 0.8
NAMED = 0.1
ALARM = 0.5


def measures(chances: dict[str, float]) -> float:
    """Return how probable it is that the number measures the storage."""
    return sum(chance for name, chance in chances.items() if name in MEASURES)


def record(kind: str, seed: int) -> dict[str, object]:
    """Try one and keep what is needed for the table."""
    tried = attempt(kind, seed)
    truth = tried.situation.truth
    order = sorted(tried.chances, key=lambda name: -tried.chances[name])
    removed = tried.without(frozenset(truth)) if kind not in HONEST else {}
    return {
        "kind": kind,
        "seed": seed,
        "first": order[0],
        "chances": {name: round(tried.chances[name], 4) for name in order},
        "truth": round(sum(tried.chances.get(name, 0.0) for name in truth), 4),
        "measures": round(measures(tried.chances), 4),
        "removed_first": max(removed, key=lambda name: removed[name]) if removed else None,
        "removed_measures": round(measures(removed), 4) if removed else None,
        "probes": [one.name for one in tried.probed.tried],
        "readings": {
            one.name: [round(one.value, 3), round(one.error, 3)]
            for probe in tried.probed.tried
            for one in probe.readings
        },
    }


def table(rows: list[dict[str, object]]) -> str:
    """Return the page."""
    by_kind: dict[str, list[dict[str, object]]] = defaultdict(list)
    for row in rows:
        by_kind[str(row["kind"])].append(row)
    lines = [
        "| kind | runs | named first | named | doubted | believed | its explanation removed: "
        "unexplained first | believed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        mine = by_kind.get(kind, [])
        if not mine:
            continue
        honest = kind in HONEST
        first = sum(row["first"] in MEASURES if honest else row["first"] == kind for row in mine)
        named = sum(float(str(row["truth"])) >= NAMED for row in mine)
        believed = sum(float(str(row["measures"])) >= BELIEVED for row in mine)
        unexplained = sum(row["removed_first"] == UNEXPLAINED for row in mine)
        still = sum(
            row["removed_measures"] is not None and float(str(row["removed_measures"])) >= BELIEVED
            for row in mine
        )
        removed = ("–", "–") if honest else (str(unexplained), str(still))
        cells = (kind, len(mine), first, named, len(mine) - believed, believed, *removed)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def reliability(rows: list[dict[str, object]]) -> str:
    """Return what a probability of the first explanation was worth."""
    bins: dict[int, list[bool]] = defaultdict(list)
    for row in rows:
        chances = row["chances"]
        assert isinstance(chances, dict)
        first = str(row["first"])
        sure = float(chances[first])
        right = first in MEASURES if str(row["kind"]) in HONEST else first == row["kind"]
        if first in MEASURES:
            sure = float(str(row["measures"]))
        bins[min(9, int(sure * 10))].append(right)
    lines = ["| probability told | runs | right | share |", "|---|---|---|---|"]
    for number in sorted(bins):
        right = sum(bins[number])
        told, whole = f"{number * 10} to {number * 10 + 10} %", len(bins[number])
        lines.append(f"| {told} | {whole} | {right} | {right / whole:.0%} |")
    return "\n".join(lines)


def main() -> int:
    """Try, and print or write."""
    options = argparse.ArgumentParser(prog="python -m lab.probes", description=__doc__)
    options.add_argument(
        "--seeds", default="10001:10170", help="first and last, of which kind after kind takes one"
    )
    options.add_argument("--kind", action="append", choices=KINDS)
    options.add_argument("--keep", type=Path, help="file of one JSON line per situation, gone on with")
    options.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    asked = options.parse_args()
    first, last = (int(word) for word in asked.seeds.split(":"))
    kinds = asked.kind or KINDS
    rows: list[dict[str, object]] = []
    if asked.keep and asked.keep.exists():
        rows = [json.loads(line) for line in asked.keep.read_text().splitlines()]
    known = {row["seed"] for row in rows}
    for seed in range(first, last + 1):
        if seed in known:
            continue
        row = record(kinds[seed % len(kinds)], seed)
        rows.append(row)
        sys.stderr.write(f"{seed} {row['kind']}: {row['first']} {row['truth']} {row['measures']}\n")
        if asked.keep:
            with asked.keep.open("a") as file:
                file.write(json.dumps(row) + "\n")
    text = f"{table(rows)}\n\n{reliability(rows)}\n"
    sys.stdout.write(text)
    alarms = Counter(
        str(row["first"])
        for row in rows
        if row["kind"] in HONEST and row["first"] not in MEASURES and float(str(row["truth"])) < ALARM
    )
    sys.stdout.write(f"\nfalse alarms on honest devices: {dict(alarms)}\n")
    if asked.write:
        write(PAGE, rows, text, f"{first}:{last}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
