"""What the parts of the Plan's model are made of: numbers of fixed width.

Knows what every part has in common; `model.py` has the parts.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

U8 = Annotated[int, Field(ge=0, le=2**8 - 1)]
U16 = Annotated[int, Field(ge=0, le=2**16 - 1)]
U32 = Annotated[int, Field(ge=0, le=2**32 - 1)]
U64 = Annotated[int, Field(ge=0, le=2**64 - 1)]
I32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
I64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
F64 = Annotated[float, Field(allow_inf_nan=False)]


class Part(BaseModel):
    """Immutable, and refuses fields the engine does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)
