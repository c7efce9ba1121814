"""Loadstone: storage load testing that can be believed.

What stands in `__all__` is the public Python API (docs/python.md); it is imported when it is used,
so that `import loadstone` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from loadstone.errors import (
    BundleError,
    EngineError,
    InputError,
    LoadstoneError,
    RefusedError,
    RunError,
)
from loadstone.version import __version__

if TYPE_CHECKING:
    from loadstone.api.auditing import Audit, audit_results
    from loadstone.api.comparing import Comparison, compare
    from loadstone.api.experimenting import (
        Experiment,
        PlannedExperiment,
        open_experiment,
        plan_experiment,
        resume_experiment,
        run_experiment,
    )
    from loadstone.api.listing import list_runs
    from loadstone.api.machine import check_host, list_controls, restore_settings
    from loadstone.api.named import workloads
    from loadstone.api.planning import PlannedJob, PlannedRuns, plan_job, plan_runs
    from loadstone.api.reporting import write_report
    from loadstone.api.rerunning import rerun, verify
    from loadstone.api.results import Result, Study, open_bundle, open_study
    from loadstone.api.running import run
    from loadstone.api.studying import curve, repeat, rerun_study, run_all, sweep
    from loadstone.plan.safety.guard import Consent
    from loadstone.verdict import Verdict

__all__ = [
    "Audit",
    "BundleError",
    "Comparison",
    "Consent",
    "EngineError",
    "Experiment",
    "InputError",
    "LoadstoneError",
    "PlannedExperiment",
    "PlannedJob",
    "PlannedRuns",
    "RefusedError",
    "Result",
    "RunError",
    "Study",
    "Verdict",
    "__version__",
    "audit_results",
    "check_host",
    "compare",
    "curve",
    "list_controls",
    "list_runs",
    "open_bundle",
    "open_experiment",
    "open_study",
    "plan_experiment",
    "plan_job",
    "plan_runs",
    "repeat",
    "rerun",
    "rerun_study",
    "restore_settings",
    "resume_experiment",
    "run",
    "run_all",
    "run_experiment",
    "sweep",
    "verify",
    "workloads",
    "write_report",
]

_WHERE: Final = {
    "Audit": "loadstone.api.auditing",
    "Comparison": "loadstone.api.comparing",
    "Consent": "loadstone.plan.safety.guard",
    "Experiment": "loadstone.api.experimenting",
    "PlannedExperiment": "loadstone.api.experimenting",
    "PlannedJob": "loadstone.api.planning",
    "PlannedRuns": "loadstone.api.planning",
    "Result": "loadstone.api.results",
    "Study": "loadstone.api.results",
    "Verdict": "loadstone.verdict",
    "audit_results": "loadstone.api.auditing",
    "check_host": "loadstone.api.machine",
    "compare": "loadstone.api.comparing",
    "curve": "loadstone.api.studying",
    "list_controls": "loadstone.api.machine",
    "list_runs": "loadstone.api.listing",
    "open_bundle": "loadstone.api.results",
    "open_experiment": "loadstone.api.experimenting",
    "open_study": "loadstone.api.results",
    "plan_experiment": "loadstone.api.experimenting",
    "plan_job": "loadstone.api.planning",
    "plan_runs": "loadstone.api.planning",
    "repeat": "loadstone.api.studying",
    "rerun": "loadstone.api.rerunning",
    "rerun_study": "loadstone.api.studying",
    "restore_settings": "loadstone.api.machine",
    "resume_experiment": "loadstone.api.experimenting",
    "run": "loadstone.api.running",
    "run_all": "loadstone.api.studying",
    "run_experiment": "loadstone.api.experimenting",
    "sweep": "loadstone.api.studying",
    "verify": "loadstone.api.rerunning",
    "workloads": "loadstone.api.named",
    "write_report": "loadstone.api.reporting",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_WHERE[name]), name)
    if not isinstance(value, type):
        value = importlib.import_module("loadstone.api.argument_types").checked(value)
    # From now on it is found without asking here.
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
