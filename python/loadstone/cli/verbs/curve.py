"""`loadstone curve`: latency against load, the knee, and the load up to which a limit holds.

Knows how its options are read. Which loads are measured is the controller's business, what
they say the analysis'.
"""

from __future__ import annotations

from dataclasses import asdict

from loadstone.cli.options.arguments import LoadOptions, OneJob, Sheet
from loadstone.cli.options.run_options import RunOptions


def curve(
    job: OneJob,
    /,
    *,
    points: str | None = None,
    slo: str | None = None,
    repeat: int | None = None,
    spec: Sheet = None,
    load: LoadOptions = LoadOptions(),
    run_options: RunOptions = RunOptions(),
) -> int:
    """Find the maximum, then measure latency in an open loop at shares of it.

    Jobs behind a stonewall have curves of their own. Several curves in one picture:
    `loadstone report STUDY STUDY...`.

    Parameters
    ----------
    points
        Percents of the maximum, as 10,50,70,80,90,100 (the default), or `adaptive`: where latency changes.
    slo
        A limit on latency, as 'p99<1ms' or 'mean<200us': the highest load that keeps it is searched for.
    repeat
        Measure every load so often [default: once, and what is noisy up to three times].
    """
    from loadstone.api.studies.curves import prepare_curve
    from loadstone.cli.running import several_runs

    options = {"job": job, **asdict(load)}
    of_job = several_runs.of_job("curve", job, load, spec=spec, options=options, run_options=run_options)
    return several_runs.execute(prepare_curve(of_job, points=points, slo=slo, repeat=repeat), run_options)
