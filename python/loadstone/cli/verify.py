"""`loadstone verify`: read back what a run with a journal wrote, and name what is damaged.

Knows where the journal is in a bundle. What each block may hold is the engine's to know.
"""

from __future__ import annotations

import sys
from pathlib import Path

from loadstone.bundle import layout
from loadstone.bundle.read import Bundle
from loadstone.cli import finish, study
from loadstone.cli.manner import Told
from loadstone.errors import BundleError, InputError
from loadstone.plan.journal import read_back
from loadstone.session import Asked, run_plan


def verify(
    bundle: Path,
    /,
    *,
    told: Told = Told(),
) -> int:
    """Verify what a run with --journal wrote, also after a crash in the middle of it.

    Ends with exit code 1 when anything is damaged.

    Parameters
    ----------
    bundle
        Directory of the run that wrote; one that was killed will do.
    """
    study.refuse(bundle, "verify")
    wrote = Bundle.open(bundle)
    if wrote.plan.journal is None:
        raise InputError(f"{bundle}: the run kept no journal", hint="run it with --journal")
    journal = bundle / layout.JOURNAL
    plan = read_back(wrote.plan, journal)
    if not journal.is_file():
        raise BundleError(
            f"{journal}: there is no such file", hint="the run was killed before it began to write"
        )
    asked = Asked(
        request={
            "argv": sys.argv,
            "cwd": str(Path.cwd()),
            "front_end": "verify",
            "options": {"bundle": str(bundle), "json": told.json},
            "first_request": wrote.request,
        },
        inputs=dict(wrote.inputs),
        workload_json=(wrote.path / layout.WORKLOAD).read_text(),
        notes=[],
    )
    result = finish.Result()
    outcome = run_plan(
        plan,
        asked=asked,
        out_dir=told.directory("verify"),
        progress=finish.live(wanted=told.progress),
        result=result.document,
    )
    return finish.tell(outcome, result, told, judged=False)
