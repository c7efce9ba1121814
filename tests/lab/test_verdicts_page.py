"""The page of verdicts counts what it says it counts."""

from __future__ import annotations

from typing import Any

from lab.probes import page
from lab.verdicts.outside_page import beside_all, outside_lines


def line(verdict: str, *findings: str, spinning: int = 0, suspicions: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "seed": 9101,
        "kind": "honest_disk_in_memory",
        "absent": None,
        "busy": True,
        "spinning": spinning,
        "also": ["generator_cpu"],
        "verdict": verdict,
        "confidence": 0.9,
        "findings": [[rule, 0.9] for rule in (*findings, *suspicions)],
        "plain": {
            "causes": [
                *([rule, 0.9, "limited"] for rule in findings),
                *([rule, 0.6, "suspect"] for rule in suspicions),
            ]
        },
    }


def test_every_honest_run_counts_however_busy_its_host_was() -> None:
    lines = [
        line("measures_storage"),
        line("limited", "generator_cpu", spinning=1, suspicions=("not_steady",)),
        line("limited", "throttled", spinning=2),
        line("cannot_tell", "generator_cpu", spinning=2),
    ]
    told = "\n".join(page.honest_lines(lines))
    assert "| nothing of ours | 1 | 0 of 1" in told
    assert "| 2 programs that spin | 2 | 2 of 2" in told
    assert "| all | 4 | 2 of 4" in told
    assert not list(page.honest_lines([]))


def test_a_section_of_an_earlier_session_is_marked_and_stands_only_where_there_is_none_anew() -> None:
    told = list(page.earlier(["## Kinds from outside"]))
    titles = [line for line in told if line.startswith("## ")]
    assert "## Staged by hand (earlier rules)" in titles
    assert not any(line.startswith("## Kinds from outside") for line in titles)
    assert told.count(page.OLD) == len(titles)


def test_a_lie_is_counted_by_what_was_said_before_and_after_its_probes() -> None:
    def verdict_of(verdict: str, confidence: float, *, named: bool) -> dict[str, Any]:
        return {
            **line(verdict, "probes" if named else "generator_cpu"),
            "confidence": confidence,
            "named": named,
            "named_first": named,
            "plain": {"explanations": {"cache": 0.6}},
            "expected": "probes",
        }

    believed, doubted = (verdict_of("measures_storage", sure, named=False) for sure in (0.9, 0.7))
    lines = [
        verdict_of("limited", 0.9, named=True) | {"alone": doubted},
        verdict_of("measures_storage", 0.9, named=False) | {"alone": believed},
        line("limited", "generator_cpu")
        | {"expected": None, "named": False, "alone": line("limited", "throttled") | {"named": False}},
    ]
    lines[2]["plain"] |= {"explanations": {"medium": 0.9}}
    told = "\n".join(outside_lines(lines))
    assert "| lies | named first | 0 of 2" in told
    assert "1 of 2: 50.0 % (9.5 to 90.5) |\n| lies | named" in told
    assert "| lies | not believed | 1 of 2" in told
    assert "| honest runs | accused | 1 of 1" in told
    assert not list(outside_lines([]))


def test_a_page_says_when_findings_may_be_true_of_the_host() -> None:
    lines = [line("measures_storage") | {"taken": taken} for taken in (0.1, None, 0.5)]
    lines[1]["busy"] = False
    told = beside_all(lines)
    assert told.startswith("2 of 3 runs were not alone: others used 50 % of the CPUs or more before they")
    assert "take 2 % or more during them. Those could take 10 % to 50 % of a rate, 30 % in" in told
    assert beside_all(lines[1:2]).endswith("during them.")
    assert "others used. Those could take" in "\n".join(page.honest_lines(lines))
