"""Kinds of I/O whose size, direction and address depend on each other. Knows no file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from loadstone.frozen_model import FrozenModel


class WorkloadRow(FrozenModel):
    """One kind of I/O among several: its part of them, and what is its own."""

    percent: Annotated[float, Field(gt=0)]
    bytes: Annotated[int, Field(gt=0)]
    read_percent: Annotated[int, Field(ge=0, le=100)]
    random_percent: Annotated[int, Field(ge=0, le=100)]
    """Others go on where the I/O before them ended, of whichever row it was."""
    align_bytes: Annotated[int, Field(gt=0)] | None = None
    """None: what the target can do."""
    burst: Annotated[int, Field(gt=0)] = 1
    """I/Os that follow each other when it is the row's turn."""


class RowWork(FrozenModel):
    """I/Os of several kinds, drawn by their shares."""

    kind: Literal["rows"] = "rows"
    rows: Annotated[tuple[WorkloadRow, ...], Field(min_length=1)]
