"""Where a job asks for a file beside the result, as what is wrong with that file names it.

Knows that a job file may be far from the directory where it is run: the name of the file alone does not
tell which job and which option to change.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from loadstone.errors import InputError, RefusedError
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.workload.model import Job


@contextlib.contextmanager
def naming_option(job: Job, field: str) -> Iterator[None]:
    """Name job, line and option in what is wrong with a file that the job asks for by this field."""
    try:
        yield
    except (InputError, RefusedError) as error:
        if field not in job.set_at:  # It was not the job that asked.
            raise
        text = say("report.fio.output_of_job", job=job.name, reason=error.message)
        raise type(error)(text, where=job.at(field), hint=error.hint) from error
