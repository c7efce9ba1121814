"""How a run on several hosts ended: what became of each host, and what is said of all of them.

Pure: what is known of the hosts comes in, a status, an exit code and an error come out. Writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone import exitcodes
from loadstone.bundle.hosts import FOLDER
from loadstone.errors import LoadstoneError, RefusedError, RunError
from loadstone.hosts.host_state import HostState, error_of, indented, origins
from loadstone.hosts.phases import HostPhase
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from loadstone.bundle.hosts import HostPart
    from loadstone.hosts.hosts_file import HostsFile
    from loadstone.hosts.phases import Phases


@dataclass(frozen=True, slots=True)
class HostsEnding:
    """How all of it ended. `status` is the bundle's."""

    status: str
    exit_code: int
    error: LoadstoneError | None


@dataclass(frozen=True, slots=True)
class HostsRunKnown:
    """All that is known of a run on hosts when it is over."""

    hosts: Mapping[str, HostState]
    phases: Phases
    file: HostsFile
    number: str
    """What its directories on the hosts are called."""
    out: Path
    refusal: LoadstoneError | None

    def why_not(self) -> LoadstoneError:
        """Return why the load was not begun, with everything that is wrong."""
        if self.refusal is not None:
            return self.refusal
        gone = {name: {"error": why, "hint": None} for name, why in self.phases.gone().items() if why} | {
            name: state.refused for name, state in self.hosts.items() if state.refused is not None
        }
        # One that could not be armed ended its run by itself, and said why.
        gone |= {
            name: error
            for name, state in self.hosts.items()
            if name not in gone and isinstance(error := (state.ended or {}).get("error"), dict)
        }
        if not gone:
            if self.phases.stopping == "user":
                raise KeyboardInterrupt
            return RunError(say("hosts.not_begun.refusal"), hint=say("hosts.not_begun.hint"))
        lines = [indented(f"{name}: {refusal['error']}") for name, refusal in gone.items()]
        hints = [str(refusal["hint"]) for refusal in gone.values() if refusal.get("hint")] or [
            say("hosts.ended.look")
        ]
        usage = all(refusal.get("code") == exitcodes.USAGE for refusal in gone.values())
        first = say("hosts.not_begun.hosts", failed=len(gone), hosts=len(self.hosts))
        kind = RefusedError if usage else RunError
        return kind("\n  ".join([first, *lines]), hint="; ".join(dict.fromkeys(hints)) or None)

    def parts(self, parts: tuple[HostPart, ...]) -> tuple[HostPart, ...]:
        """Return what became of each host."""
        began = origins(self.hosts)
        firsts = {
            name: origin + int((self.hosts[name].started or {}).get("first_ns", 0))
            for name, origin in began.items()
        }
        return tuple(self._part(part, began, firsts) for part in parts)

    def _part(self, part: HostPart, began: Mapping[str, int], firsts: Mapping[str, int]) -> HostPart:
        name = part.name
        state, phase = self.hosts[name], self.phases.hosts[name]
        has_bundle = state.has_bundle and (self.out / FOLDER / name / "manifest.json").is_file()
        lost = phase.phase is HostPhase.GONE
        reason = (state.refused or {}).get("error", phase.why) if lost else error_of(state.ended or {})
        # Where nothing was left to be brought, none is over there either.
        left = "" if has_bundle or state.has_bundle else self._left_there(name, state)
        wrong = f"{reason or say('hosts.ended.no_bundle')}{left}" if reason or left else None
        known = state.clocks
        return part.model_copy(
            update={
                "bundle": f"{FOLDER}/{name}" if has_bundle else None,
                "status": "lost" if lost else str((state.ended or {}).get("status", "lost")),
                "error": wrong,
                "host_name": state.told.get("host_name"),
                "kernel": state.told.get("boot_id"),
                "shift_ns": began[name] - min(began.values()) if name in began else 0,
                "start_skew_ns": firsts[name] - min(firsts.values()) if name in firsts else None,
                "clock_offset_ns": None if known is None else known.wall.offset_ns,
                "clock_error_ns": None if known is None else known.monotonic.error_ns,
                "agent_cpu_share": state.agent_cpu_s / state.agent_s if state.agent_s else None,
            }
        )

    def _left_there(self, name: str, state: HostState) -> str:
        """Say where the bundle is that did not come."""
        if state.armed_plan is None:
            return ""
        return "; " + say("hosts.ended.left", place=f"{self.file.entry(name).directory}/{self.number}/{name}")

    def ending(self, parts: tuple[HostPart, ...]) -> HostsEnding:
        """Return what is said of all of it."""
        if self.refusal is not None:
            return HostsEnding("failed", self.refusal.exit_code, self.refusal)
        wrong = [part for part in parts if part.status not in {"complete", "interrupted"}]
        if wrong:
            return HostsEnding("failed", exitcodes.FAILED, self._failed(wrong, parts))
        if self.phases.stopping == "user" or any(part.status == "interrupted" for part in parts):
            if self.phases.stopping == "late":
                outcome, names = "stopped" if self.phases.begun else "refusal", ", ".join(self.phases.late)
                late = RunError(say(f"hosts.late.{outcome}", names=names), hint=say("hosts.late.hint"))
                return HostsEnding("failed", exitcodes.FAILED, late)
            return HostsEnding("interrupted", exitcodes.INTERRUPTED, None)
        ended = [self.hosts[part.name].ended or {} for part in parts]
        failure = next((one["error"] for one in ended if one.get("error")), None)
        if failure is not None:
            error = RunError(str(failure["error"]), hint=failure.get("hint"))
            return HostsEnding("failed", int(failure["code"]), error)
        codes = [int(one.get("exit_code") or 0) for one in ended]
        return HostsEnding("complete", next((code for code in codes if code), exitcodes.DONE), None)

    def _failed(self, wrong: list[HostPart], parts: tuple[HostPart, ...]) -> RunError:
        lines = [indented(f"{part.name}: {part.error or part.status}") for part in wrong]
        whole = ", ".join(part.name for part in parts if part.bundle is not None)
        bundles_text = say("hosts.ended.figures_of", names=whole) if whole else say("hosts.ended.none_came")
        first = say("hosts.ended.failed", failed=len(wrong), hosts=len(parts), kept=bundles_text)
        errors = [(self.hosts[part.name].ended or {}).get("error") or {} for part in wrong]
        hints = [str(one["hint"]) for one in errors if one.get("hint")]
        if any(part.status == "lost" for part in wrong) or not hints:
            hints.append(say("hosts.ended.lost_hint"))
        return RunError("\n  ".join([first, *lines]), hint="; ".join(dict.fromkeys(hints)))
