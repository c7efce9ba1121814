"""Rule `layer_flows`: what went into a layer and what came out of it do not add up.

Every counted layer is held against what the one above gave it, with what lies between and does so
on purpose (mirrors, stripes, journals, loops without direct I/O). What the nearest device under a
target saw is other rules' business where they have a name for it (`page_cache_read`,
`writeback_absorbed`, `foreign_load`, `unwritten_region`); what happens below it is this one's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit import case_queries
from loadstone.audit.layer_state import CACHED_BELOW
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case
    from loadstone.verdict import Effect, LayerFlow

SMALL: Final = 0.15
"""Below this part missing or added a number is told, and not refused."""
KINDS: Final[tuple[tuple[str, Effect, float], ...]] = (
    ("served from memory", "not_valid", 0.95),
    ("absorbed", "not_valid", 0.9),
    ("never stored", "not_valid", 0.95),
    ("reduced", "not_valid", 0.85),
    ("amplified", "limited", 0.85),
    ("read ahead", "note", 0.7),
    ("by somebody else", "limited", 0.75),
)
STATES: Final = ("misaligned", "degraded", "rebuilding")


def _judge(case: Case) -> Answer:
    if case_queries.virtual(case) or case_queries.in_memory(case) or case.source != "bundle":
        return NotMine()
    if not any(layer.agrees is not None for layer in case.layers):
        return cannot_tell("audit.layer_flows.counters", where=case_queries.where(case))
    findings = [
        one for layer in case.layers for one in (_of(case, layer), _unseen(case, layer)) if one is not None
    ]
    if not any(one.effect != "note" for one in findings):
        findings += [one for layer in case.layers if (one := _state(layer)) is not None]
    return tuple(findings) or Clear()


def _of(case: Case, layer: LayerFlow) -> Finding | None:
    if layer.agrees is not False or layer.why is None:
        return None
    # What misses or is too much at the first device has rules of its own, but for what a layer adds.
    if layer.given_by == "the job" and "amplified" not in layer.why:
        return None
    kinds = ((effect, confidence) for word, effect, confidence in KINDS if word in str(layer.why))
    effect, confidence = next(kinds, ("note", 0.6))
    upper = layer.given_by or "the layer above"
    return Finding(
        effect="note" if _off(layer) < SMALL else effect,
        confidence=confidence,
        text=say(
            "audit.layer_flows.moved.text",
            layer=layer.name,
            moved=_sizes(layer.read_bytes, layer.write_bytes),
            given_by=upper,
            expected=_sizes(layer.expected_read_bytes, layer.expected_write_bytes),
            why=layer.why,
        ),
        evidence={
            "layer": layer.name,
            "given_by": upper,
            "read_bytes": round(layer.read_bytes or 0),
            "expected_read_bytes": round(layer.expected_read_bytes or 0),
            "write_bytes": round(layer.write_bytes or 0),
            "expected_write_bytes": round(layer.expected_write_bytes or 0),
            "watched_s": round(layer.seconds, 2),
        },
        advice=_advice(layer.why),
        layer=_cause(case, layer),
    )


def _unseen(case: Case, layer: LayerFlow) -> Finding | None:
    """Doubt a layer that keeps data in memory and under which nobody counted what arrived."""
    counted_below = any(one.given_by == layer.name and one.agrees is not None for one in case.layers)
    if CACHED_BELOW not in layer.state or counted_below:
        return None
    return Finding(
        effect="suspect",
        confidence=0.85,
        text=say("audit.layer_flows.unseen.text", layer=layer.name),
        evidence={"layer": layer.name, "state": CACHED_BELOW},
        advice=say("audit.layer_flows.cached.advice"),
        layer=layer.name,
    )


def _cause(case: Case, layer: LayerFlow) -> str:
    """Name the layer above that the reason names, or the layer itself."""
    names = [one.name for one in case.layers]
    above = names[: names.index(layer.name)]
    return next((name for name in reversed(above) if name in str(layer.why)), layer.name)


def _off(layer: LayerFlow) -> float:
    pairs = (
        (layer.read_bytes, layer.expected_read_bytes),
        (layer.write_bytes, layer.expected_write_bytes),
    )
    known = [(done, due) for done, due in pairs if done is not None and due is not None]
    whole = max((max(pair) for pair in known), default=0.0)
    return max((abs(done - due) for done, due in known), default=0.0) / whole if whole else 0.0


def _sizes(reads: float | None, writes: float | None) -> str:
    sizes = [say("audit.layer_flows.reads.value", read_bytes=reads)] if reads else []
    sizes += [say("audit.layer_flows.writes.value", write_bytes=writes)] if writes else []
    return " and ".join(sizes) or say("audit.layer_flows.nothing.value")


def _advice(why: str) -> str:
    keys = {
        "no direct I/O": "cached",
        "never stored": "unstored",
        "copies the whole file": "copied",
        "journal": "journal",
        "somebody else": "others",
    }
    return say(
        f"audit.layer_flows.{next((key for word, key in keys.items() if word in why), 'other')}.advice"
    )


def _state(layer: LayerFlow) -> Finding | None:
    """Tell a state that changes what a number means, though the bytes add up."""
    state = next((one for one in layer.state if one.startswith(STATES)), None)
    if state is None:
        return None
    return Finding(
        effect="limited",
        confidence=0.8,
        text=say("audit.layer_flows.state.text", layer=layer.name, state=state),
        evidence={"layer": layer.name, "state": state},
        advice=say(f"audit.layer_flows.{'misaligned' if 'misaligned' in state else 'incomplete'}.advice"),
        layer=layer.name,
    )


RULE: Final = Rule(
    name="layer_flows",
    asks="Does every layer hand on what it was given?",
    basis="bytes of each layer against its neighbour's in the same seconds, by what its kind does on purpose",
    judge=_judge,
)
