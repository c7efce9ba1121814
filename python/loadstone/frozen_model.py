"""What every document of ours is made of: values that stay as they are, and no fields but its own."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """Immutable, and refuses fields it does not have."""

    model_config = ConfigDict(frozen=True, extra="forbid")
