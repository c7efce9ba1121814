"""Names of files as the jobs of fio give them, for what is said about them.

Knows which path each name became. Looks at no file.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from loadstone.plan.clone_files import names_as_given

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.workload.model import Workload


def by_path(workload: Workload) -> Mapping[str, str]:
    """Return names as the jobs have them, by their paths."""
    clones = ((job, clone) for job in workload.jobs for clone in range(job.schedule.numjobs or 1))
    names = (name for job, clone in clones for name in names_as_given(job, clone))
    return {os.path.abspath(name): name for name in names}  # noqa: PTH100 - text, as the Plan has it


def as_given(text: str, names: Mapping[str, str]) -> str:
    """Return a text with every path in it by the name the job gave it, as fio says it."""
    longest_first = sorted((path for path, name in names.items() if path != name), key=len, reverse=True)
    if not longest_first:
        return text
    paths = "|".join(re.escape(path) for path in longest_first)
    return re.sub(rf"(?<![\w./-])({paths})(?![\w/-]|\.\w)", lambda match: names[match[1]], text)
