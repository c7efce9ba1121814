"""The page of verdicts counts what it says it counts."""

from __future__ import annotations

from typing import Any

from lab.probes import page


def line(verdict: str, *findings: str, spinning: int = 0) -> dict[str, Any]:
    return {
        "seed": 9101,
        "kind": "honest_disk_in_memory",
        "absent": None,
        "busy": True,
        "spinning": spinning,
        "also": ["generator_cpu"],
        "verdict": verdict,
        "confidence": 0.9,
        "findings": [[rule, 0.9] for rule in findings],
    }


def test_every_honest_run_counts_however_busy_its_host_was() -> None:
    lines = [
        line("measures_storage"),
        line("limited", "generator_cpu", spinning=1),
        line("limited", "throttled", spinning=2),
        line("cannot_tell", "generator_cpu", spinning=2),
    ]
    told = "\n".join(page.honest_lines(lines))
    assert "| nothing of ours | 1 | 0 of 1" in told
    assert "| 2 programs that spin | 2 | 2 of 2" in told
    assert "| all | 4 | 2 of 4" in told
    assert not list(page.honest_lines([]))
