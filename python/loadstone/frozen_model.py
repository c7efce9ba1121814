"""What every document of ours is made of: values that stay as they are, and no fields but its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import AfterValidator, BaseModel, ConfigDict

if TYPE_CHECKING:
    from collections.abc import Callable


class FrozenModel(BaseModel):
    """Immutable, and refuses fields it does not have."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def readable(read: Callable[[str], object]) -> AfterValidator:
    """Refuse a text that `read` does not take; one that it takes stays a text."""

    def check(text: str) -> str:
        read(text)
        return text

    return AfterValidator(check)
