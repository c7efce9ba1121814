"""The public names are exactly these, and each is what the page and the types say."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import loadstone
from loadstone import errors
from loadstone.api.jobs.job_changes import JobArguments

NAMES = [
    "Audit",
    "BundleError",
    "Comparison",
    "Consent",
    "EngineError",
    "Experiment",
    "InputError",
    "LoadstoneError",
    "PlannedExperiment",
    "PlannedJob",
    "PlannedRuns",
    "RefusedError",
    "Result",
    "RunError",
    "Study",
    "Verdict",
    "__version__",
    "audit_results",
    "check_host",
    "compare",
    "curve",
    "list_controls",
    "list_runs",
    "open_bundle",
    "open_experiment",
    "open_study",
    "plan_experiment",
    "plan_job",
    "plan_runs",
    "repeat",
    "rerun",
    "rerun_study",
    "restore_settings",
    "resume_experiment",
    "run",
    "run_all",
    "run_experiment",
    "sweep",
    "verify",
    "workloads",
    "write_report",
]
MEMBERS = {
    "Audit": [
        "document", "frame", "has_broken", "markdown", "passed_over", "print", "verdict",
    ],
    "Experiment": [
        "document", "ended_because", "error", "exit_code", "has_figures", "is_complete", "path", "print",
        "report", "still_changed", "study", "unread",
    ],
    "PlannedExperiment": [
        "document", "length_s", "lines", "missing", "notes", "prepared", "refusal", "refused", "runs",
        "stopped", "title", "would_run",
    ],
    "PlannedJob": [
        "check", "document", "lines", "memory_bytes", "notes", "obstacles", "probes", "refusal", "targets",
        "written_targets",
    ],
    "PlannedRuns": ["document", "lines", "name", "notes", "obstacles", "refusal"],
    "Result": [
        "altered", "audited", "bundle", "document", "doubts", "error", "estimates", "exit_code", "export",
        "has_figures", "host", "ios", "path", "print", "report", "samples", "status", "summary", "verdict",
    ],
    "Study": ["doubts", "estimates", "kind", "path", "points", "runs"],
    "Comparison": [
        "audits", "counts", "decide", "differences", "document", "frame", "gate", "gate_sentences",
        "has_broken", "made", "markdown", "matrix", "names", "powers", "print", "report", "verdicts",
        "warnings",
    ],
}  # fmt: skip
PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_public_names_are_exactly_these() -> None:
    assert sorted(loadstone.__all__) == NAMES
    assert dir(loadstone) == NAMES
    for name in NAMES:
        assert getattr(loadstone, name) is not None


def test_another_name_is_none() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        loadstone.nosuch  # noqa: B018 - it must fail


@pytest.mark.parametrize("name", MEMBERS)
def test_the_members_are_exactly_these(name: str) -> None:
    # Set when it is made.
    given = {"error", "made", "path", "prepared", "runs", "stopped", "unread"}
    found = {member for member in vars(getattr(loadstone, name)) if not member.startswith("_")}
    assert found | given == set(MEMBERS[name]) | given


@pytest.mark.parametrize("name", [name for name in NAMES if name[0].islower()])
def test_every_function_is_typed_and_described(name: str) -> None:
    function = getattr(loadstone, name)
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty
    assert all(one.annotation is not inspect.Parameter.empty for one in signature.parameters.values())
    assert inspect.getdoc(function)


def test_every_error_is_one_of_ours() -> None:
    for name in NAMES:
        if name.endswith("Error"):
            assert issubclass(getattr(errors, name), loadstone.LoadstoneError)


def test_the_page_has_every_name_and_member() -> None:
    page = PAGE.read_text()
    for name in [*NAMES, *(member for members in MEMBERS.values() for member in members)]:
        if name not in ("__version__", "audited", "audits", "bundle", "made", "summary"):
            assert f"`{name}" in page or f".{name}" in page, name


def test_the_page_has_every_argument_and_no_other() -> None:
    page = PAGE.read_text()
    table = page[page.index("## `run`") : page.index("The safety check")]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    given = set(inspect.signature(loadstone.run).parameters) - {"job", "changes"}
    assert told == given | JobArguments.__optional_keys__


def test_the_recipes_are_python_and_name_what_there_is() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) > 4
    calls = [node for block in blocks for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Call)]
    ours = [call for call in calls if ast.unparse(call.func).startswith("loadstone.")]
    for call in ours:
        function = getattr(loadstone, ast.unparse(call.func).removeprefix("loadstone."))
        inspect.signature(function).bind(*call.args, **{str(one.arg): one.value for one in call.keywords})
    assert len(ours) > 5
