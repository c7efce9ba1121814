"""The threads of a job, the commands around it, and what an error does to it. Starts nothing."""

from __future__ import annotations

from typing import Literal

from loadstone.frozen_model import FrozenModel


class MemoryPolicy(FrozenModel):
    """A policy of the kernel's (set_mempolicy(2)) and its nodes."""

    mode: Literal["default", "local", "prefer", "bind", "interleave"]
    nodes: tuple[int, ...] | Literal["all"] = ()


class ProcessRequests(FrozenModel):
    """The threads, and what runs around them."""

    cpus_allowed: tuple[int, ...] | None = None
    cpus_policy: Literal["shared", "split"] | None = None
    numa_nodes: tuple[int, ...] | Literal["all"] | None = None
    """Whose CPUs may be used."""
    numa_memory: MemoryPolicy | None = None
    """Where memory is to come from."""
    nice: int | None = None
    ioscheduler: str | None = None
    """Set for the devices of its targets, for as long as the run goes."""
    exec_prerun: str | None = None
    exec_postrun: str | None = None


class ErrorRequests(FrozenModel):
    """What happens on an error."""

    continue_on_error: Literal["none", "read", "write", "io", "verify", "all"] | None = None
    continue_after: tuple[int, ...] = ()
    """Only after these errors; empty: after any."""
    ignore_read_errors: tuple[int, ...] = ()
    ignore_write_errors: tuple[int, ...] = ()
