"""The state of a layer in words, and what that state does to what goes through it.

Knows the facts that discovery leaves in a layer. Measures nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from loadstone import units

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.path.layers import Layer

ALIGNED_BYTES: Final = 4096
UNWRITTEN: Final = 0.05
NO_BARRIER: Final = ("nobarrier", "barrier=0")
CACHED_BELOW: Final = "no direct I/O: cached in memory below"


@dataclass(slots=True)
class State:
    """What a layer's facts mean. The rest are reasons for a flow that changes in it."""

    words: tuple[str, ...] = ()
    memory: str | None = None
    """It keeps data in this host's memory, though the load goes past the page cache."""
    amplifies: str | None = None
    reduces: str | None = None
    unstored: str | None = None
    _said: list[str] = field(default_factory=list)

    def say(self, text: str) -> str:
        """Add a word."""
        self._said.append(text)
        self.words = tuple(self._said)
        return text


def facts(layer: Layer) -> State:
    """Return the state of a layer."""
    state = State()
    layer_facts = layer.facts
    reader = _READERS.get(layer.kind)
    if reader is not None:
        reader(state, layer.name, layer_facts)
    if layer_facts.get("write_cache") == "write back" and layer.kind != "loop":
        state.say("volatile write cache")
    if layer_facts.get("read_only"):
        state.say("read-only")
    if layer_facts.get("thin"):
        state.unstored = state.say("thin: what was never written is not stored")
    for name in ("compression", "deduplication", "encryption"):
        value = layer_facts.get(name)
        if value and value not in ("off", "none", "no"):
            statement = state.say(f"{name} {value}")
            state.reduces = state.reduces or (statement if name != "encryption" else None)
    return state


def _loop(state: State, name: str, told: dict[str, Any]) -> None:
    if told.get("direct_io") is False:
        state.memory = f"{name} has no direct I/O, so its file lies in the page cache, too"
        state.say(CACHED_BELOW)
    _offset(state, told.get("offset_bytes"))


def _partition(state: State, _: str, told: dict[str, Any]) -> None:
    _offset(state, told.get("start_bytes"))


def _offset(state: State, offset: Any) -> None:
    if isinstance(offset, int) and offset % ALIGNED_BYTES:
        state.say(f"misaligned: begins {offset % ALIGNED_BYTES} bytes off the {ALIGNED_BYTES}-byte grid")
        state.amplifies = "blocks off the grid are read and written as two"


def _file(state: State, name: str, told: dict[str, Any]) -> None:
    looked = _number(told, "looked_at_bytes") or _number(told, "size_bytes")
    unwritten = _number(told, "hole_bytes") + _number(told, "unwritten_bytes")
    if looked and unwritten > UNWRITTEN * looked:
        state.say(f"sparse: {units.size(unwritten)} of {units.size(looked)} never written")
        state.unstored = f"{name} has holes"
    if told.get("shared_bytes"):
        state.say("shared extents: the first write copies")
    if told.get("encoded_bytes"):
        state.reduces = state.say("compressed on the medium")
    if told.get("copied_up") is False:
        state.amplifies = state.say("not copied up: the first write copies the whole file")


def _number(told: dict[str, Any], name: str) -> int:
    """Return a fact that is a number; 0 where it is not there, or the environment was damaged."""
    value = told.get(name)
    return value if isinstance(value, int) else 0


def _file_system(state: State, _: str, told: dict[str, Any]) -> None:
    options = {*str(told.get("options") or "").split(","), *str(told.get("super_options") or "").split(",")}
    if any(one in options for one in NO_BARRIER):
        state.say("no barriers: flushes stop here")
    mode = next((one.removeprefix("data=") for one in options if one.startswith("data=")), None)
    if mode == "journal":
        state.say("journal mode: data")
        state.amplifies = "the journal keeps the data, too, and writes it twice"
        # Such a file has no direct I/O: the kernel falls back to the page cache.
        state.memory = "data=journal has no direct I/O: writes go through the page cache"
    elif mode:
        state.say(f"journal mode: {mode}")
    if told.get("copy_on_write"):
        state.say("copy on write")
        state.amplifies = "copy on write writes its trees again"
    if "sync" in options:
        state.say("synchronous")


def _btrfs(state: State, _: str, told: dict[str, Any]) -> None:
    _degraded(state, told)
    state.say(f"profile {told.get('data_profile') or 'unknown'}")


def _degraded(state: State, told: dict[str, Any]) -> None:
    if missing := _number(told, "degraded"):
        state.say(f"degraded: {missing} {'member' if missing == 1 else 'members'} missing")


def _md(state: State, _: str, told: dict[str, Any]) -> None:
    _degraded(state, told)
    action = told.get("sync_action")
    if action not in (None, "idle", "none"):
        state.amplifies = state.say(f"rebuilding: {action}")
    if str(told.get("level")) in ("raid4", "raid5", "raid6"):
        state.amplifies = state.amplifies or "parity is read and written with small writes"


def _network_file_system(state: State, name: str, _: dict[str, Any]) -> None:
    state.memory = f"the page cache of {name}, or the program behind it"


def _fuse(state: State, name: str, told: dict[str, Any]) -> None:
    _network_file_system(state, name, told)
    state.amplifies = f"the program behind {name} writes more than it is given"


def _memory(state: State, *_: Any) -> None:
    state.say("memory of this host")


def _cgroup(state: State, _: str, told: dict[str, Any]) -> None:
    state.say("throttle" + (f": {', '.join(map(str, told))}" if told else ""))


_READERS: Final[dict[str, Callable[[State, str, dict[str, Any]], None]]] = {
    "loop": _loop,
    "partition": _partition,
    "file": _file,
    "file_system": _file_system,
    "btrfs": _btrfs,
    "md": _md,
    "fuse": _fuse,
    "network_file_system": _network_file_system,
    "memory": _memory,
    "cgroup": _cgroup,
}
