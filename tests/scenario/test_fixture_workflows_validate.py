"""The shared example workflows: ten are admitted, twelve refused for just the listed reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

from git_fabro.workflow import admission, settings
from git_fabro.workflow.admission import Admission, Source
from git_fabro.workflow.settings import Settings

FOLDER = Path(__file__).parents[3] / "shared/fixtures/workflows"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the example workflows are not here")

VALID = [
    "01-build-and-test.fabro",
    "02-diamond.fabro",
    "03-plan-implement-verify.fabro",
    "04-parallel-all.fabro",
    "05-parallel-winner.fabro",
    "06-human-gate.fabro",
    "07-retries.fabro",
    "08-goal-gate.fabro",
    "09-big-outputs.fabro",
    "10 odd files.dot",
]

# Two places differ from the list that comes with the files. In 06 the value of allow_partial begins
# at column 43, as the list's own rule has it. In 11 a gate stands inside of a branch, which the
# dialect allows.
INVALID = {
    "01-unclosed-list.fabro": "6:11 syntax",
    "02-strict-undirected.fabro": "1:1 strict_graph, 6:11 undirected_graph",
    "03-node-id.fabro": "4:5 node_id_form, 5:5 node_id_form",
    "04-html-label.fabro": "5:39 html_value",
    "05-misspelt-node.fabro": "6:23 edge_target_exists, 9:5 edge_target_exists",
    "06-attribute-values.fabro": "4:41 attr_value, 5:39 attr_value, 6:65 attr_type, "
    "7:34 attr_type, 8:43 attr_type, 12:31 attr_type",
    "07-conditions.fabro": "7:30 condition_syntax, 8:43 condition_syntax, 10:30 condition_syntax",
    "08-no-exit.fabro": "2:1 terminal_node",
    "09-start-and-exit-edges.fabro": "7:14 start_no_incoming, 8:5 exit_no_outgoing",
    "10-incomplete-nodes.fabro": "4:5 command_missing, 5:5 wait_duration, 6:34 prompt_file, "
    "7:19 template, 8:5 human_no_choice",
    "11-fan-out.fabro": "9:5 parallel_region",
    "12-many-at-once.fabro": "4:26 stylesheet_syntax, 9:59 attr_type, 10:65 human_default_choice, "
    "14:13 freeform_edge_count, 15:14 edge_target_exists, 16:14 restart_target",
}


def admit(path: Path) -> Admission:
    text = path.read_bytes().decode()
    includes = {
        include.path: _read(path.parent / include.path)
        for include in admission.includes(text, path.name)
    }
    run_file = _read(path.with_suffix(".toml"))
    chosen = Settings()
    if run_file is not None:
        layer, diagnostics = settings.parse(run_file, "run.toml")
        assert diagnostics == ()
        chosen = settings.merge([layer])
    return admission.admit(Source(text=text, file=path.name, settings=chosen, includes=includes))


def _read(path: Path) -> str | None:
    return path.read_text() if path.is_file() else None


@pytest.mark.parametrize("name", VALID)
def test_a_valid_workflow_is_admitted(name: str) -> None:
    found = admit(FOLDER / name)

    warnings = [one.rule for one in found.diagnostics if one.severity != "info"]
    assert found.graph is not None
    assert warnings == (["all_conditional_edges"] if name.startswith("02") else [])


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_workflow_has_just_its_errors(name: str) -> None:
    found = admit(FOLDER / "invalid" / name)

    assert found.graph is None
    assert INVALID[name] == ", ".join(
        f"{one.place.line}:{one.place.column} {one.rule}"
        for one in found.diagnostics
        if one.severity == "error"
    )


def test_a_workflow_that_needs_its_run_file_is_refused_without() -> None:
    name = "09-big-outputs.fabro"

    found = admission.admit(Source(text=(FOLDER / name).read_text(), file=name))

    assert {one.rule for one in found.diagnostics if one.severity == "error"} == {"template"}
