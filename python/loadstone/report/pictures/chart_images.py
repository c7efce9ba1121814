"""Charts as pictures: a Vega-Lite specification in, SVG, PNG or PDF out.

Knows the renderer and what it does not survive: names in a specification are made printable first,
because a control character in one ends the whole process. Knows no run.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import vl_convert
from blake3 import blake3

from loadstone.printable import printable

VEGA_LITE: Final = "6.4"
PNG_SCALE: Final = 2.0
CLIP_PATH: Final = re.compile(r'(?<=id=")clip\d+(?=")|(?<=url\(#)clip\d+(?=\))')
DIGITS: Final = 8


def begin() -> None:
    """Draw nothing that anybody sees, so that the first chart does not wait for the renderer."""
    svg({"data": {"values": []}, "mark": "point"})


def svg(spec: dict[str, Any]) -> str:
    """Return a chart as SVG."""
    return _with_own_names(str(vl_convert.vegalite_to_svg(_written(spec), vl_version=VEGA_LITE)))


def _with_own_names(drawn: str) -> str:
    """Name clip paths by what the chart shows.

    The renderer counts them over all charts that it draws, in the order in which those come: the same page
    was never quite the same twice, and charts of two renderers on one page could take each other's.
    """
    numbers = {name: str(at) for at, name in enumerate(dict.fromkeys(CLIP_PATH.findall(drawn)), 1)}
    counted = CLIP_PATH.sub(lambda name: f"clip-{numbers[name[0]]}", drawn)
    digest = blake3(counted.encode()).hexdigest()[:DIGITS]
    return CLIP_PATH.sub(lambda name: f"clip-{digest}-{numbers[name[0]]}", drawn)


def png(spec: dict[str, Any]) -> bytes:
    """Return a chart as PNG."""
    return bytes(vl_convert.vegalite_to_png(_written(spec), vl_version=VEGA_LITE, scale=PNG_SCALE))


def _written(spec: dict[str, Any]) -> str | dict[str, Any]:
    """Return a specification as JSON that one look finds harmless, as most are; else made printable."""
    try:
        text = json.dumps(spec, ensure_ascii=False, allow_nan=False)
    except ValueError:  # NaN: the renderer takes it for nothing, in a dictionary alone.
        return _safe(spec)  # type: ignore[no-any-return] # a dictionary stays one
    return text if text.isprintable() and "\\" not in text else _safe(spec)


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(str(key)): _safe(one) for key, one in value.items()}
    return [_safe(one) for one in value] if isinstance(value, list | tuple) else value
