"""What a data sheet adds to a case.

Knows how a `--spec` file becomes what is declared of the system; judges nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loadstone.audit.case import Declared

if TYPE_CHECKING:
    from loadstone.audit.case import Case
    from loadstone.path.spec import Spec


def with_spec(case: Case, spec: Spec) -> Case:
    """Return a case that knows a data sheet; what was declared before goes first."""
    before = case.declared or Declared()
    after = replace(
        before,
        ceilings=(*before.ceilings, *spec.layer().ceilings),
        links=(*before.links, *spec.links),
        media=before.media or spec.media,
        rotational=before.rotational if before.rotational is not None else spec.rotational,
        spindles=before.spindles or spec.working_drives,
        raid=before.raid or spec.raid,
        cache_bytes=before.cache_bytes or spec.cache,
    )
    siblings = tuple(with_spec(one, spec) for one in case.siblings)
    return replace(case, declared=after, siblings=siblings)
