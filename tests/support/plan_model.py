"""Writes `python/loadstone/plan/model.py` from `contract/plan.schema.json` (`make docs`).

Knows what datamodel-code-generator needs to be told: a name for each variant of a tagged union
(the union's and the variant's, `SizesFixed`), numbers of fixed width, tuples instead of lists,
since a Plan is never changed. Knows no field of a Plan.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from datamodel_code_generator import InputFileType, generate
from datamodel_code_generator.enums import DataModelType
from datamodel_code_generator.format import Formatter, PythonVersion

from loadstone.engine.plan_check import schema_digest

ROOT: Final = Path(__file__).parents[2]
SCHEMA: Final = ROOT / "contract" / "plan.schema.json"
MODEL: Final = ROOT / "python" / "loadstone" / "plan" / "model.py"
BASE: Final = "loadstone.plan.part"
NUMBERS: Final = {"double": "F64"} | {
    f"{sign}int{bits}": f"{'U' if sign else 'I'}{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)
}
HEADER: Final = '''"""The Plan: the orders the engine runs, as Python values.

Generated from `contract/plan.schema.json` by `tests/support/plan_model.py`: run `make docs`, do not
edit. What a field means is said in `crates/plan/src/lib.rs`. No field has a default. A variant of a
tagged union is named by the union and the variant (`SizesFixed`).
"""'''


def text() -> str:
    """Return the module."""
    generated = generate(
        json.dumps(prepared(json.loads(SCHEMA.read_text()))),
        input_file_type=InputFileType.JsonSchema,
        output_model_type=DataModelType.PydanticV2BaseModel,
        target_python_version=PythonVersion.PY_311,
        base_class=f"{BASE}.Part",
        custom_file_header=HEADER,
        capitalise_enum_members=True,
        formatters=[Formatter.BUILTIN],
        keep_model_order=True,
        use_annotated=True,
        use_one_literal_as_default=True,
        use_specialized_enum=True,
        use_standard_collections=True,
        use_title_as_name=True,
        use_tuple_for_fixed_length_arrays=True,
        use_type_alias=True,
        use_union_operator=True,
    )
    assert isinstance(generated, str)
    generated = re.sub(r"    model_config = ConfigDict\(\n(?:        .*\n)+    \)\n", "", generated)
    # Only what tells the variants of a union apart is filled in.
    generated = re.sub(r"^(    version: Literal\[\d+\]) = \d+$", r"\1", generated, flags=re.MULTILINE)
    generated = re.sub(r"\blist\[((?:[^\[\]]|\[[^\[\]]*\])*)\]", r"tuple[\1, ...]", generated)
    digest = schema_digest(SCHEMA.read_bytes())
    generated += (
        f'\n\nSCHEMA_DIGEST: Final = "{digest}"\n"""Of the schema of an engine that reads these Plans."""\n'
    )
    generated = generated.replace("from typing import ", "from typing import Final, ", 1)
    return _formatted(generated)


def prepared(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with a name for every variant, and numbers as `base` has them."""
    definitions = schema["$defs"]
    for name, definition in list(definitions.items()):
        variants = definition.get("oneOf", ())
        if not variants or "const" in variants[0]:
            continue
        for index, variant in enumerate(variants):
            (tag,) = (key for key, value in variant["properties"].items() if "const" in value)
            words = variant["properties"][tag]["const"].split("_")
            own = name + "".join(word.capitalize() for word in words)
            definitions[own] = variant
            variants[index] = {"$ref": f"#/$defs/{own}"}
            definition["discriminator"] = {"propertyName": tag}
    _simplify(schema)
    return schema


def _simplify(part: Any) -> None:
    if isinstance(part, list):
        for one in part:
            _simplify(one)
    if not isinstance(part, dict):
        return
    part.pop("additionalProperties", None)  # `Part` refuses them.
    if "properties" in part:  # They are sorted by name; those required stand as in the source.
        assert set(part["required"]) == set(part["properties"]), part
        part["properties"] = {name: part["properties"][name] for name in part["required"]}
    if isinstance(part.get("description"), str):  # It is no field of that name.
        del part["description"]
    number = NUMBERS.get(part.pop("format", ""))
    if number:
        part.pop("minimum", None)
        part.pop("maximum", None)
    if number and "const" not in part:
        part["customTypePath"] = f"{BASE}.{number}"
    for value in part.values():
        _simplify(value)


def _formatted(source: str) -> str:
    for step in (["check", "--fix-only"], ["format"]):
        done = subprocess.run(
            [
                str(Path(sys.executable).with_name("ruff")),
                *step,
                "--no-cache",
                "--quiet",
                "--stdin-filename",
                MODEL,
                "-",
            ],
            input=source,
            capture_output=True,
            text=True,
            check=True,
        )
        source = done.stdout
    return source
