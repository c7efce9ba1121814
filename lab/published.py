"""What the audit says of results that other people published: how many phases, and which it calls not valid.

    python -m lab.published DIR... [--agreed FILE] [--rule NAME]

A published result is taken for an honest one, so every 'not valid' is listed to be looked at, and counts as
false unless --agreed names it: lines of a result's path below its DIR, a tab, and why it is so. --rule lists
where one rule found something, whatever became of it. The exit code is 1 when anything false is left, or a
reader broke. Knows no format: what is a result is the audit's to say.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.audit import find_results
from loadstone.audit.foreign.reader import BROKEN
from loadstone.audit.judge import judge_case

if TYPE_CHECKING:
    from loadstone.verdict import Cause


@dataclass(slots=True)
class PublishedResults:
    """What was found, by the tool that wrote it."""

    results: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    false: list[str] = field(default_factory=list)
    agreed: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


def look(root: Path, agreed: frozenset[str], rule: str | None, seen: PublishedResults) -> None:
    """Judge every result under a directory."""
    for one in find_results.find(root, find_results.SearchProgress(limit=sys.maxsize)):
        if isinstance(one, find_results.PassedOver):
            if one.broken:
                seen.unread.append(f"{one.path.relative_to(root)}: {one.why}")
            continue
        path, result = one
        place = str(path.relative_to(root))
        seen.results[result.format] += 1
        for case in result.cases:
            verdict = judge_case(case)
            seen.verdicts[result.format, verdict.kind] += 1
            if verdict.kind == "not_valid":
                verdict_line = f"{place}: {case.name}: {_line(verdict.causes[0])}"
                (seen.agreed if place in agreed else seen.false).append(verdict_line)
            seen.asked += [
                f"{place}: {case.name}: {_line(one)}" for one in verdict.causes if one.rule == rule
            ]


def _line(cause: Cause) -> str:
    return f"{cause.rule}, {cause.effect}, {cause.confidence:.0%}: {cause.text}"


def report(seen: PublishedResults) -> str:
    """Return what was found, in lines."""
    lines = []
    for tool, results in sorted(seen.results.items()):
        kinds = {kind: count for (of, kind), count in sorted(seen.verdicts.items()) if of == tool}
        counts = ", ".join(f"{kind.replace('_', ' ')} {count}" for kind, count in kinds.items())
        lines.append(f"{tool}: {results} results, {sum(kinds.values())} phases: {counts}")
    for name, entries in (
        ("false 'not valid'", seen.false),
        ("agreed 'not valid'", seen.agreed),
        ("not read", seen.unread),
        ("asked for", seen.asked),
    ):
        lines += [f"{name}: {len(entries)}", *(f"  {one}" for one in entries)]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Look, tell, and fail when something is condemned that nobody agreed to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("roots", type=Path, nargs="+", metavar="DIR")
    parser.add_argument("--agreed", type=Path, help="results that are known not to be valid, and why")
    parser.add_argument("--rule", help="list what this rule found, too")
    options = parser.parse_args()
    lines = options.agreed.read_text().splitlines() if options.agreed else []
    agreed = frozenset(line.partition("\t")[0] for line in lines)
    results = PublishedResults()
    for root in options.roots:
        look(root, agreed, options.rule, results)
    sys.stdout.write(report(results))
    return 1 if results.false or any(BROKEN in line for line in results.unread) else 0


if __name__ == "__main__":
    raise SystemExit(main())
