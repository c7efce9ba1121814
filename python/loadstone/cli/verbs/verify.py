"""`loadstone verify`: read back what a run with a journal wrote, and name what is damaged.

Knows where the journal is in a bundle. What each block may hold is the engine's to know.
"""

from __future__ import annotations

import sys
from pathlib import Path

from loadstone.cli.options.arguments import Unverified  # noqa: TC001 - the argument parser reads it
from loadstone.cli.options.run_options import OutputOptions
from loadstone.errors import BundleError, InputError


def verify(
    bundle: Path,
    /,
    *,
    unverified: Unverified = False,
    told: OutputOptions = OutputOptions(),
) -> int:
    """Verify what a run with --journal wrote, also after a crash in the middle of it.

    Ends with exit code 1 when anything is damaged.

    Parameters
    ----------
    bundle
        Directory of the run that wrote; one that was killed will do.
    """
    from loadstone.api import exporting
    from loadstone.bundle import layout, members
    from loadstone.bundle.read import Bundle
    from loadstone.cli.display import run_summary
    from loadstone.plan.verification.journal import read_back
    from loadstone.session import RunRequest, run_plan

    exporting.refuse_study(bundle, "verify")
    wrote = Bundle.open(bundle, unverified=unverified)
    if wrote.plan.journal is None:
        raise InputError(f"{bundle}: the run kept no journal", hint="run it with --journal")
    journal = bundle / layout.JOURNAL
    plan = read_back(wrote.plan, journal)
    if not members.exists(bundle, layout.JOURNAL):
        raise BundleError(
            f"{journal}: there is no such file", hint="the run was killed before it began to write"
        )
    # The engine opens it by its name: no link, no device.
    members.open_member(bundle, layout.JOURNAL).close()
    asked = RunRequest(
        request={
            "argv": sys.argv,
            "cwd": str(Path.cwd()),
            "front_end": "verify",
            "options": {"bundle": str(bundle), "json": told.json},
            "first_request": wrote.request,
        },
        inputs=dict(wrote.inputs),
        workload_json=wrote.workload.model_dump_json(),
        notes=[] if wrote.doubt is None else [f"the journal is of a bundle that is {wrote.doubt}"],
    )
    result = run_summary.RunSummary()
    outcome = run_plan(
        plan,
        asked=asked,
        out_dir=told.directory("verify"),
        progress=run_summary.live(wanted=told.progress),
        result=result.document,
    )
    return run_summary.tell(outcome, result, told, judged=False)
