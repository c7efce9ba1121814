"""`loadstone rerun`: the Plan of a bundle once more, or those of a study, into a new one.

Knows that nothing is resolved again: the same Plans run. The safety check is made anew,
because what a target holds may have changed since.
"""

from __future__ import annotations

from pathlib import Path

from loadstone.cli.display import console
from loadstone.cli.options.arguments import Unverified  # noqa: TC001 - the argument parser reads it
from loadstone.cli.options.run_options import RunOptions
from loadstone.messages import say


def rerun(
    bundle: Path,
    /,
    *,
    probe: str | None = None,
    unverified: Unverified = False,
    run_options: RunOptions = RunOptions(),
) -> int:
    """Run the Plan of a bundle again, or all of a study's in their order.

    Nothing is resolved or decided anew: a curve is measured at the loads of then. Commands of
    the job file are not run. What ran on several hosts needs --hosts of the same names.

    Parameters
    ----------
    bundle
        Directory of the run or the study to do again.
    probe
        After the run, tell by short extra runs what lies behind its number, for so long at most:
        --probe or --probe=60s [default: 20s]. They read, and write only where the run does.
    """
    from loadstone.api.rerunning import is_study
    from loadstone.cli.options.arguments import SHELL

    if is_study(bundle):
        SHELL.refuse("a study", probe=probe)
        return _study(bundle, run_options, unverified=unverified)
    return _run(bundle, run_options, probe, unverified=unverified)


def _run(path: Path, run_options: RunOptions, probe: str | None, *, unverified: bool) -> int:
    import loadstone
    from loadstone.api.one_run import HowRun
    from loadstone.api.rerunning import rerun_bundle
    from loadstone.cli.display import run_summary
    from loadstone.cli.options.arguments import SHELL
    from loadstone.cli.running import probing
    from loadstone.cli.running.consent import consent

    old = loadstone.open_bundle(path, unverified=unverified)
    if old.altered is not None:
        console.doubts([say("cli.rerun.altered", alteration=old.altered)])
    if old.bundle.hosts is not None:
        SHELL.refuse("a run on hosts that is run again", probe=probe)
    agreed = consent(run_options.i_accept_data_loss)
    figures = None
    if probe is not None:
        figures = probing.figures(probing.read_budget(probe), agreed, progress=run_options.progress)
    settings = HowRun(
        run_options.directory("rerun"),
        agreed,
        calibration=run_options.calibration,
        progress=run_summary.live(wanted=run_options.progress),
        check=False,
        say=console.say,
    )
    watched = run_options.watched()
    result = rerun_bundle(old.bundle, run_options.on_hosts(), settings, watched, figures)
    return run_summary.tell(result, run_options, require_valid=run_options.require_valid)


def _study(path: Path, run_options: RunOptions, *, unverified: bool) -> int:
    from loadstone.api.studies.study_rerun import prepare_again
    from loadstone.cli.running import several_runs
    from loadstone.cli.running.consent import consent

    prepared, old = prepare_again(
        path, run_options.on_hosts(), consent(run_options.i_accept_data_loss), unverified=unverified
    )
    notes = []
    if old.left_out:
        notes.append(say("cli.rerun.left_out", path=path, count=old.left_out))
    if old.commands:
        notes.append(say("cli.rerun.commands"))
    if old.doubt is not None:
        console.doubts([say("cli.rerun.altered", alteration=old.doubt)])
    return several_runs.execute(prepared, run_options, notes=notes)
