"""Charts as pictures: a Vega-Lite specification in, SVG, PNG or PDF out.

Knows the renderer and what it does not survive: names in a specification are made printable first,
because a control character in one ends the whole process. Knows no run.
"""

from __future__ import annotations

import json
from typing import Any, Final

import vl_convert

from loadstone.printable import printable

VEGA_LITE: Final = "6.4"
PNG_SCALE: Final = 2.0


def svg(spec: dict[str, Any]) -> str:
    """Return a chart as SVG."""
    return str(vl_convert.vegalite_to_svg(_written(spec), vl_version=VEGA_LITE))


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
