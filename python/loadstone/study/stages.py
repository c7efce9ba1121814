"""A Workload taken apart at its walls: jobs that run one after the other become runs of their own.

Knows that jobs from one stonewall to the next run together. Rates of jobs that do not run at
the same time have no sum, so a study that looks at a rate takes each stage by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loadstone.plan.model import Plan
    from loadstone.workload.model import Job, Workload


def stages(workload: Workload) -> list[tuple[str, Workload]]:
    """Return name and Workload of each stage; a name that comes again is numbered."""
    groups: list[list[Job]] = []
    for job in workload.jobs:
        if job.schedule.stonewall or not groups:
            groups.append([])
        groups[-1].append(job)
    named_stages: list[tuple[str, Workload]] = []
    for jobs in groups:
        base = "+".join(dict.fromkeys(job.name for job in jobs))
        name, number = base, 1
        while any(name == other for other, _ in named_stages):
            number += 1
            name = f"{base}-{number}"
        alone = (jobs[0].changed({"schedule.stonewall": None}), *jobs[1:])
        named_stages.append((name, workload.model_copy(update={"jobs": alone})))
    return named_stages


def refuse_own_rates(workload: Workload) -> None:
    """Refuse jobs with a rate of their own, where the study sets the rates. Raises RefusedError."""
    for job in workload.jobs:
        rates = {"pacing.rate_iops": job.pacing.rate_iops, "pacing.rate_bytes": job.pacing.rate_bytes}
        if job.tree is not None:
            rates["work.rate_ops"] = (job.tree.rate_ops, None, None)
        if (setting := next((name for name, values in rates.items() if any(values)), None)) is not None:
            raise job.refusal("study.own_rate", setting, job=job.name, rate=job.option(setting))


def check_one_stage(plan: Plan, jobs: Workload) -> None:
    """Refuse a Plan with several stages: reading back what was written is one."""
    if len({worker.stage for worker in plan.workers}) > 1:
        verified = next((job for job in jobs.jobs if job.verification.verify), jobs.jobs[0])
        raise verified.refusal(
            "study.verified",
            "verification.verify",
            job=verified.name,
            no_verify=verified.setting("verification.do_verify", 0),
            verify=verified.option("verification.verify"),
        )
