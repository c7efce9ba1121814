"""docs/thresholds.md is written from the constants of the audit, of what it rests on, and from the fit."""

from __future__ import annotations

import ast
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.audit.rules import RULES
from loadstone.explanations.weights import FITTED, Weights

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "thresholds.md"
PACKAGE = ROOT / "python" / "loadstone"
ROOMS = ("audit/rules", "audit", "analysis/contention.py", "analysis/filling.py",
         "analysis/time_structure.py", "analysis/statistics/steady.py",
         "explanations", "probe", "probe/probes")  # fmt: skip
ON_DATA = re.compile(r"\bseeds?\b|`lab/|situations|simulated", re.IGNORECASE)
PUBLISHED = re.compile(
    r"\b(SNIA|Fisher|Kolmogorov|Hawkins|Buzen|Little|vdbench|kernel|NFS|chi-square|normal values|\d{4}\))"
)
ARITHMETIC = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
HEAD = """\
# Every threshold of a verdict

Look up which number decides what, and which data it came from.

Written by `make docs` from the source. *Data*: chosen or tried on situations whose truth is known, as the
note says. *Published*: from the source that the note or the rule's basis names. *Reasoned*: follows from how
the part works, or is a choice; how often verdicts that rest on it are right is in [verdicts.md](verdicts.md).
"""


@dataclass(frozen=True)
class Threshold:
    file: str
    name: str
    value: str
    note: str

    @property
    def from_(self) -> str:
        if ON_DATA.search(self.note):
            return "data"
        return "published" if PUBLISHED.search(self.note) else "reasoned"


def thresholds() -> Iterator[Threshold]:
    for room in ROOMS:
        path = PACKAGE / room
        for file in [path] if path.suffix else sorted(path.glob("*.py")):
            yield from _of(file)


def _of(file: Path) -> Iterator[Threshold]:
    body = ast.parse(file.read_text()).body
    waiting: list[tuple[str, str]] = []
    shown = str(file.relative_to(PACKAGE))
    for index, node in enumerate(body):
        found = _constant(node)
        if found is None:
            continue
        waiting.append(found)
        after = body[index + 1] if index + 1 < len(body) else None
        note = _note(after)
        if note is None and after is not None and _constant(after) is not None:
            continue
        # A note is about the constant above it, and says so when it is about those above that, too.
        for at, (name, value) in enumerate(waiting):
            mine = note is not None and (at == len(waiting) - 1 or "those above" in note)
            yield Threshold(shown, name, value, " ".join((note or "").split()) if mine else "")
        waiting = []


def _constant(node: ast.stmt) -> tuple[str, str] | None:
    if not isinstance(node, ast.AnnAssign) or node.value is None or not isinstance(node.target, ast.Name):
        return None
    if not ast.unparse(node.annotation).startswith("Final"):
        return None
    inside = [part for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
    if not inside or not all(isinstance(part, ARITHMETIC) for part in ast.walk(node.value)):
        return None
    numbers = all(isinstance(part.value, int | float) for part in inside)
    return (node.target.id, ast.unparse(node.value)) if numbers else None


def _note(node: ast.stmt | None) -> str | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return str(node.value.value)
    return None


COUNTED = (
    "frequency",
    "open_frequency",
    "decided",
    "causes",
    "decided_causes",
    "pointed",
)
REGRESSIONS = {
    "untried": "regression of 'measures the storage'",
    "probed": "regression of 'measures the storage'",
    "unexplained": "regression of 'its cause is in no list'",
}


def made() -> str:
    lines = [HEAD, "## Fitted", "", _source(), "", "| name | value | what it is |", "|---|---|---|"]
    for name, field in Weights.model_fields.items():
        value = getattr(FITTED.weights, name)
        if not isinstance(value, dict):
            lines.append(f"| `{name}` | {value:g} | {field.description} |")
    lines += [f"| `surprise_of({name})` | {value:g} | its own share, where enough were seen |"
              for name, value in sorted(FITTED.weights.surprises.items())]  # fmt: skip
    for told, of in REGRESSIONS.items():
        fit = getattr(FITTED, told)
        slopes = ", ".join(f"{name} {value:g}" for name, value in fit.slopes.items())
        lines.append(f"| `{told}` | {fit.intercept:g}; {slopes} | {of} |")
    for told in COUNTED:
        known = getattr(FITTED, told)
        steps = zip(known.told[1::2], known.right[1::2], strict=True)
        told_as = ", ".join(f"{upto:.3g}: {right:.3g}" for upto, right in steps)
        lines.append(f"| `{told}` | {told_as} | {type(FITTED).model_fields[told].description}, up to each |")
    lines += ["", "How often findings were right, beside how sure their rule makes them:", "",
              "| rule | effect | rule says | told as |", "|---|---|---|---|"]  # fmt: skip
    for key, value in FITTED.findings.items():
        rule, effect, sure = key.split()
        lines.append(f"| `{rule}` | {effect.replace('_', ' ')} | {float(sure):.0%} | {value:.0%} |")
    bases = {rule.name: rule.basis for rule in RULES}
    lines += ["", "## Set", "", "| file | name | value | from | note |", "|---|---|---|---|---|"]
    for one in thresholds():
        note = one.note.replace("|", "\\|")
        lines.append(f"| `{one.file}` | `{one.name}` | {one.value} | {one.from_} | {note or '–'} |")
    lines += ["", "## Bases of rules", "", "| rule | basis |", "|---|---|"]
    lines += [f"| `{name}` | {basis} |" for name, basis in bases.items()]
    return "\n".join(lines) + "\n"


def _source() -> str:
    source = FITTED.source
    return (
        f"`{source.command}` on {source.situations} simulated situations of {source.kinds} kinds, seeds "
        f"{', '.join(source.seeds)}, kept in `lab/fit/situations.jsonl.xz`."
    )


def test_the_page_is_fresh() -> None:
    page = made()
    if os.environ.get("LOADSTONE_WRITE_GENERATED"):
        PAGE.write_text(page)
    assert page == PAGE.read_text(), "docs/thresholds.md is stale: run `make docs`"


def test_every_rule_with_numbers_is_there() -> None:
    told = {one.file for one in thresholds()}
    for rule in ("throttled", "time_structure", "not_steady", "generator_cpu"):
        assert f"audit/rules/{rule}.py" in told
    assert len(list(thresholds())) > 100
