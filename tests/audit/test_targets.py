"""The targets of a phase: which of them have a path, also where only the first files were followed."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from loadstone.audit import targets
from loadstone.plan.model import Plan
from tests.support import plans

if TYPE_CHECKING:
    from loadstone.audit.case import TargetState

MOUNT = {"point": "/mnt", "file_system": "ext4"}
PATH = {
    "target": "/mnt/a",
    "layers": [
        {"name": "/mnt/a", "kind": "file", "below": ["ext4"], "facts": {"hole_bytes": 4096}},
        {"name": "ext4", "kind": "file_system", "below": ["sda"]},
        {"name": "sda", "kind": "disk", "counters": "block.sda"},
    ],
}


def found(*paths: str, mounts: dict[str, Any]) -> dict[str, TargetState]:
    files = [{"target": at, "cell": at, "offset_bytes": 0, "length_bytes": 4096} for at in range(len(paths))]
    made = plans.plan([plans.target(path) for path in paths], [plans.stream(files=files)])
    bundle: Any = SimpleNamespace(
        plan=Plan.model_validate_json(json.dumps(made)),
        events=[],
        environment={
            "targets": [{"path": path, "mount": mounts[path]} for path in paths],
            "paths": [PATH],
        },
    )
    line: Any = SimpleNamespace(streams=[0])
    return {one.path: one for one in targets.targets(bundle, line)}


def test_a_file_that_was_not_followed_has_the_path_of_another_on_its_mount() -> None:
    other = MOUNT | {"point": "/srv"}
    told = found("/mnt/a", "/mnt/b", "/srv/c", mounts={"/mnt/a": MOUNT, "/mnt/b": MOUNT, "/srv/c": other})
    path = told["/mnt/b"].path_layers
    assert path is not None
    assert [layer.name for layer in path.layers] == ["/mnt/b", "ext4", "sda"]
    assert path.layers[0].facts == {}
    assert told["/mnt/b"].carriers == ("block.sda",)
    assert told["/srv/c"].path_layers is None
