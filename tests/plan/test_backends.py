"""The table of backends is the engine's, and what is chosen by it here agrees with it."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from loadstone.audit.rules import depth_not_reached
from loadstone.formats.fio.supported_options import ENGINES
from loadstone.plan import backends, io_priority, model, special_engines
from loadstone.plan.backends import BACKENDS, of_engine
from tests.support import backend_table


def test_is_made_of_the_engines_table() -> None:
    table = Path(backends.__file__).with_name("backends.json")
    assert table.read_text() == backend_table.text(), f"{table.name} is stale: run `make docs`"


def test_every_backend_of_a_plan_has_its_row() -> None:
    variants = [
        one for one in vars(model).values() if isinstance(one, type) and one.__name__.startswith("Backend")
    ]
    tags = {get_args(getattr(one, "model_fields")["type"].annotation)[0] for one in variants}  # noqa: B009 - a class of pydantic's
    assert tags == set(BACKENDS)
    assert all(name == row.name for name, row in BACKENDS.items())


def test_what_is_read_from_the_table() -> None:
    assert io_priority.ENGINES == ("io_uring", "libaio")
    assert {"psync", "mmap"} <= set(depth_not_reached.ONE_AT_A_TIME)
    assert not {"io_uring", "io_uring_cmd", "libaio", "null", "sim"} & set(depth_not_reached.ONE_AT_A_TIME)
    assert [name for name, row in BACKENDS.items() if row.virtual_time] == ["sim"]


def test_an_engine_has_the_row_of_what_does_its_io() -> None:
    assert {name for name in ENGINES if not of_engine(name).native_depth} == set(ENGINES) - {
        *("io_uring", "io_uring_cmd", "libaio", "posixaio", "null")
    }
    assert {name for name in ENGINES if of_engine(name).keeps_data == "nothing"} == {
        *("null", "falloc", "e4defrag", *special_engines.BY_NAME)
    }
