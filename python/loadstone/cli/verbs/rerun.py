"""`loadstone rerun`: the Plan of a bundle once more, or those of a study, into a new one.

Knows that nothing is resolved again: the same Plans run. The safety check is made anew,
because what a target holds may have changed since.
"""

from __future__ import annotations

from pathlib import Path

from loadstone.cli.display import console
from loadstone.cli.options.arguments import Unverified  # noqa: TC001 - the argument parser reads it
from loadstone.cli.options.run_options import RunOptions


def rerun(
    bundle: Path,
    /,
    *,
    unverified: Unverified = False,
    run_options: RunOptions = RunOptions(),
) -> int:
    """Run the Plan of a bundle again, or all of a study's in their order.

    Nothing is resolved or decided anew: a curve is measured at the loads of then. Commands of
    the job file are not run.

    Parameters
    ----------
    bundle
        Directory of the run or the study to do again.
    """
    import loadstone
    from loadstone.api import rerunning
    from loadstone.cli.display import run_summary
    from loadstone.cli.running import hosts as on_hosts
    from loadstone.cli.running.consent import consent

    what = rerunning.what_ran(bundle)
    if what == "study":
        return _study(bundle, run_options, unverified=unverified)
    if what == "run on hosts":
        before = loadstone.open_bundle(bundle, unverified=unverified).bundle
        agreed = consent(run_options.i_accept_data_loss)
        request = rerunning.rerun_request(bundle, agreed, before.request)
        return on_hosts.again(before, bundle, request, run_options)
    on_hosts.refuse_hosts(run_options, "a run of one host that is run again")
    old = loadstone.open_bundle(bundle, unverified=unverified)
    if old.altered is not None:
        console.doubts([f"the Plan is of a bundle that is {old.altered}"])
    result = loadstone.rerun(
        old,
        accept_data_loss=consent(run_options.i_accept_data_loss),
        calibration=run_options.calibration,
        out=run_options.out,
        watch=run_options.watched(),
        progress=run_summary.live(wanted=run_options.progress),
        check=False,
    )
    return run_summary.tell(result, run_options, require_valid=run_options.require_valid)


def _study(path: Path, run_options: RunOptions, *, unverified: bool) -> int:
    from loadstone.api.studies.again import prepare_again
    from loadstone.cli.running import study
    from loadstone.cli.running.consent import consent

    prepared, old = prepare_again(path, consent(run_options.i_accept_data_loss), unverified=unverified)
    if old.left_out:
        console.say(f"{path} ended before {old.left_out} of its runs began; the others are run again")
    if old.commands:
        console.say("the commands of the job file are not run again")
    if old.doubt is not None:
        console.doubts([f"the Plan is of a bundle that is {old.doubt}"])
    return study.execute(prepared, run_options)
