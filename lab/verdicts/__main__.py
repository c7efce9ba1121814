"""`make verdicts`: every labelled run, and the table of what was said of each.

Prints the table when all scenarios were run; with names on the command line only those are run.
Ends with 1 when a part broke, a lie was not named or an honest run was accused. `docs/verdicts.md`
has runs whose parameters are drawn (`drawn`, `collect`).
"""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING

from lab.parts import missing
from lab.verdicts.scenarios import SCENARIOS
from lab.verdicts.score import STOLEN, ScoredScenario, calibration, score

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def main(names: Sequence[str]) -> int:
    """Run the scenarios of these names, or all."""
    unknown = set(names) - {one.name for one in SCENARIOS}
    if unknown:
        print(f"no such scenario: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    absent = missing()
    if absent is not None:
        print(f"cannot stage anything: {absent}", file=sys.stderr)
        return 2
    scored: list[ScoredScenario] = []
    broken = 0
    for scenario in SCENARIOS:
        if names and scenario.name not in names:
            continue
        try:
            one = score(scenario)
        except RuntimeError as error:
            print(f"     {scenario.name}: could not be staged: {error}", file=sys.stderr, flush=True)
            broken += 1
            continue
        scored.append(one)
        print(f"{'ok  ' if one.passed else '    '} {scenario.name}: {_findings_cell(one)}", flush=True)
    if broken:
        return 1
    if not names:
        print("\n".join(_document(scored)))
    return 0 if all(one.passed or one.absent for one in scored) else 1


def _document(scored: Sequence[ScoredScenario]) -> Iterator[str]:
    lies = [one for one in scored if one.scenario.expected is not None and one.absent is None]
    honest = [one for one in scored if one.scenario.expected is None and one.absent is None]
    yield from _in_short(scored, lies, honest)
    yield "## Lies"
    yield ""
    yield "| run | expected | verdict | found (confidence) | |"
    yield "|---|---|---|---|---|"
    for one in lies:
        yield _row(one, f"`{one.scenario.expected}`", "named" if one.named else "**missed**")
    yield ""
    yield "## Honest runs"
    yield ""
    yield "| run | true beside | verdict | found (confidence) | |"
    yield "|---|---|---|---|---|"
    for one in honest:
        beside = ", ".join(f"`{rule}`" for rule in one.scenario.also) or "–"
        outcome = "as it should be" if one.passed else "**false alarm**"
        yield _row(one, beside, "not counted: the host was busy" if one.uncounted else outcome)
    yield ""
    yield "## What a confidence was worth"
    yield ""
    yield (
        "Findings of all runs above by the confidence they were told with. A finding is right when it is "
        "the expected one, or known to be true beside it."
    )
    yield ""
    yield "| confidence | findings | right | share |"
    yield "|---|---|---|---|"
    for low, high, right, whole in calibration(scored):
        share = f"{100 * right / whole:.0f} %" if whole else "–"
        yield f"| {100 * low:.0f} to {100 * high:.0f} % | {whole} | {right} | {share} |"
    for one in scored:
        if one.absent is not None:
            yield ""
            yield f"Not staged: {one.scenario.name} ({one.absent})."


def _in_short(
    scored: Sequence[ScoredScenario], lies: Sequence[ScoredScenario], honest: Sequence[ScoredScenario]
) -> Iterator[str]:
    """Yield how many were named and how many accused, and on which host."""
    counted = [one for one in honest if not one.uncounted]
    alarms = sum(not one.passed for one in counted)
    yield "# Verdicts on labelled runs"
    yield ""
    yield (
        "Written by `make verdicts`. Each run is staged with real parts (loop devices, ext4, btrfs, zram, "
        "control groups, block devices served from user space), judged like any other, and taken down. A "
        "*lie* is a run whose number is not the storage's at work; the cause has to be named."
    )
    yield ""
    yield (
        f"**{sum(one.named for one in lies)} of {len(lies)} lies named, "
        f"{alarms} false alarm{'s' if alarms != 1 else ''} on {len(counted)} honest runs"
        + (f" ({len(honest) - len(counted)} more are not counted)" if len(counted) < len(honest) else "")
        + ".** "
        f"Linux {platform.release().partition('-')[0]}, {os.cpu_count()} CPUs; runs of 3 to 6 s, "
        "which is short, and raised above whatever else the host did. "
        f"In {sum(one.busy for one in scored)} of {len(scored)} cases others used half of the CPUs or "
        f"more before the run began, or the hypervisor took {100 * STOLEN:.0f} % or more in it; "
        "there `generator_cpu`, `not_steady` and `time_structure`, which may be true of the host, are not "
        "counted."
    )
    yield ""


def _row(one: ScoredScenario, label: str, outcome: str) -> str:
    verdict = one.verdict
    kind_text = verdict.kind.replace("_", " ") if verdict is not None else "–"
    return f"| {one.scenario.story} | {label} | {kind_text} | {_findings_cell(one)} | {outcome} |"


def _findings_cell(one: ScoredScenario) -> str:
    if one.absent is not None:
        return f"not staged: {one.absent}"
    return (
        ", ".join(f"`{cause.rule}` ({100 * cause.confidence:.0f} %)" for cause in one.findings) or "nothing"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
