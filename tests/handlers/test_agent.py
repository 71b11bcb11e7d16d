"""Agent nodes: real programs that answer, fail, hang and leave files behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from git_fabro.errors import RequestError
from git_fabro.handlers import agent
from git_fabro.handlers.call import Interrupted, Stop
from git_fabro.workflow.condition import parse
from git_fabro.workflow.graph import Edge, NodeId
from git_fabro.workflow.state import Failure, Outcome
from tests.handlers.calls import Notices, a_call, a_graph, a_node, a_settings


def asked(tmp_path: Path, script: str, *, preset: str = "", text: str = "do it", **changes):
    """A call of an agent that is a shell script; stdin is the prompt."""
    node = changes.pop("node", a_node("plan", "agent", model="m1"))
    settings = a_settings(preset, ("sh", "-c", script))
    return a_call(tmp_path, text, node, settings=settings, **changes)


def expected(response: str, status: str = "success", failure: Failure | None = None, **more):
    updates = {"last_stage": "plan", "last_response": response[:200], "response.plan": response}
    updates |= more.pop("updates", {})
    return Outcome(status=status, failure=failure, context_updates=updates, **more)


FAIL_RED = '{"outcome":"fail","failure_reason":"red"}'


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ("cat", expected("do it")),
        ("echo a; echo b >&2", expected("a\n")),
        (f"echo '{FAIL_RED}'", expected(FAIL_RED + "\n", "fail", Failure("red"))),
        (
            'echo \'{"preferred_next_label":"Ship","notes":"n","context_updates":{"x":1}}\'',
            expected(
                '{"preferred_next_label":"Ship","notes":"n","context_updates":{"x":1}}\n',
                preferred_label="Ship",
                notes="n",
                updates={"x": 1},
            ),
        ),
        ("exit 3", expected("", "fail", Failure("exit status 3"))),
        (
            "echo out; echo bad >&2; exit 3",
            expected("out\n", "fail", Failure("exit status 3: bad")),
        ),
        ("exit 75", expected("", "fail", Failure("exit status 75", "transient_infra"))),
        ("exec no-such-program", None),
        (
            "echo 'HTTP 429 Too Many Requests' >&2; exit 1",
            expected(
                "",
                "fail",
                Failure("exit status 1: HTTP 429 Too Many Requests", "transient_infra"),
            ),
        ),
        (
            "echo 'Context length exceeded' >&2; exit 1",
            expected(
                "", "fail", Failure("exit status 1: Context length exceeded", "budget_exhausted")
            ),
        ),
        ("echo 'rate limit' >&2", expected("")),
        (
            "echo 'rate limit'; exit 1",
            expected("rate limit\n", "fail", Failure("exit status 1: rate limit")),
        ),
        (
            f"echo '{FAIL_RED}'; echo 503 >&2; exit 1",
            expected(FAIL_RED + "\n", "fail", Failure("red", "transient_infra")),
        ),
        (
            'echo \'{"outcome":"retry","failure_class":"structural"}\'; exit 75',
            expected(
                '{"outcome":"retry","failure_class":"structural"}\n',
                "retry",
                Failure("the agent said retry", "structural"),
            ),
        ),
        (
            'echo \'{"preferred_label":"x","context_updates":{"y":2}}\'; exit 9',
            expected(
                '{"preferred_label":"x","context_updates":{"y":2}}\n',
                "fail",
                Failure('exit status 9: {"preferred_label":"x","context_updates":{"y":2}}'),
                updates={"y": 2},
            ),
        ),
        ("echo hunter22", expected("***\n")),
    ],
)
def test_the_program_and_its_answer_decide_together(tmp_path, script, outcome) -> None:
    done = agent.run(asked(tmp_path, script))

    if outcome is None:
        assert done.outcome.failure.message.startswith("exit status 127")
    else:
        assert done.outcome == outcome


RESULT = (
    '{"type":"result","subtype":"success","is_error":%s,"result":"%s","usage":{"output_tokens":4}}'
)


@pytest.mark.parametrize(
    ("status", "is_error", "failure"),
    [
        (0, "false", None),
        (0, "true", Failure("the agent failed: hello")),
        (1, "false", Failure("exit status 1: hello")),
        (1, "true", Failure("exit status 1: hello")),
    ],
)
def test_success_needs_both_the_status_and_the_envelope(tmp_path, status, is_error, failure):
    script = f"echo '{RESULT % (is_error, 'hello')}'; exit {status}"

    done = agent.run(asked(tmp_path, script, preset="claude"))

    usage = {"output_tokens": 4}
    assert done.outcome == expected("hello", "fail" if failure else "success", failure, usage=usage)


def test_words_in_an_envelopes_error_tell_the_class(tmp_path: Path) -> None:
    script = f"echo '{RESULT % ('true', 'API Error: 529 Overloaded')}'; exit 1"

    done = agent.run(asked(tmp_path, script, preset="claude"))

    assert done.outcome.failure == Failure(
        "exit status 1: API Error: 529 Overloaded", "transient_infra"
    )


def test_an_error_event_is_a_failure_whatever_the_status(tmp_path: Path) -> None:
    event = '{"type":"error","error":{"data":{"message":"no such model"}}}'

    done = agent.run(asked(tmp_path, f"echo '{event}'", preset="opencode"))

    assert (done.outcome.status, done.outcome.failure) == (
        "fail",
        Failure("the agent failed: no such model"),
    )


def test_a_time_limit_beats_what_was_said(tmp_path: Path) -> None:
    call = asked(tmp_path, f"echo '{FAIL_RED}'; exec sleep 600", timeout_s=0.3)

    done = agent.run(call)

    assert done.outcome.failure == Failure("timed out after 0.3s", "timed_out")
    assert done.outcome.context_updates["response.plan"] == FAIL_RED + "\n"


def test_a_stop_leaves_no_outcome(tmp_path: Path) -> None:
    stop = Stop()
    stop.set("stop")

    with pytest.raises(Interrupted):
        agent.run(asked(tmp_path, "sleep 600", stop=stop))


def test_the_trace_holds_prompt_answer_and_who_gave_it(tmp_path: Path) -> None:
    done = agent.run(asked(tmp_path, "echo yes", text="say hunter22"))

    assert done.trace == {
        "prompt.md": b"say ***",
        "response.md": b"yes\n",
        "provider_used.json": b'{"mode":"command","model":"m1","provider":null}\n',
    }
    assert (tmp_path / "logs" / "stdout.log").read_bytes() == b"yes\n"


def test_placeholders_reach_the_program(tmp_path: Path) -> None:
    node = a_node("plan", "agent", model="m1", provider="p1", reasoning_effort="high")
    command = (
        *("sh", "-c", 'cat; echo "$@"', "sh"),
        *("{model}", "{provider}", "{reasoning_effort}", "{node}", "{run}"),
        ("--thread", "{thread}"),
    )
    call = a_call(
        tmp_path,
        "",
        node,
        settings=a_settings("", command),
        thread="t1",
        environment={"PATH": "/usr/bin:/bin", "FABRO_RUN_ID": "R"},
    )

    assert agent.run(call).trace["response.md"] == b"m1 p1 high plan R --thread t1\n"


@pytest.mark.parametrize(
    ("node", "settings", "graph", "model"),
    [("n", "s", "g", "n"), ("", "s", "g", "s"), ("", "", "g", "g"), ("", "", "", None)],
)
def test_a_model_comes_from_node_settings_graph(tmp_path, node, settings, graph, model) -> None:
    one = a_node("plan", "agent", model=node)
    call = a_call(
        tmp_path,
        node=one,
        graph=a_graph(one, default_model=graph),
        settings=a_settings("", ("echo", ("{model}",)), model=settings),
    )

    done = agent.run(call)

    assert done.trace["response.md"].decode().strip() == (model or "")
    assert json.loads(done.trace["provider_used.json"])["model"] == model


def test_a_program_that_wants_a_file_gets_one_and_no_stdin(tmp_path: Path) -> None:
    command = ("sh", "-c", 'cat; cat "$1"', "sh", "{prompt_file}")
    call = a_call(tmp_path, "do it", a_node("plan", "agent"), settings=a_settings("", command))

    assert agent.run(call).trace["response.md"] == b"do it"


@pytest.mark.parametrize(
    ("before", "script", "tracked", "status", "notices", "left"),
    [
        (None, 'echo \'{"status":"failed"}\' >status.json', False, "fail", [], None),
        (
            None,
            f"echo '{FAIL_RED}' >status.json; echo '{{\"outcome\":\"skipped\"}}'",
            False,
            "skipped",
            [],
            None,
        ),
        ('{"status":"fail"}', "true", False, "success", [], None),
        (None, "echo nonsense >status.json", False, "success", ["status_json_unreadable"], None),
        (None, "ln -s /etc/passwd status.json", False, "success", [], None),
        (None, "mkdir status.json", False, "success", [], "dir"),
        (
            '{"status":"fail"}',
            "true",
            True,
            "success",
            ["status_json_tracked"],
            '{"status":"fail"}',
        ),
        ('{"status":"fail"}', f"echo '{FAIL_RED}'", True, "fail", [], '{"status":"fail"}'),
    ],
    ids=[
        "read",
        "the response comes first",
        "left over",
        "unreadable",
        "a link",
        "a folder",
        "the project's",
        "the project's, not needed",
    ],
)
def test_the_status_file(tmp_path, before, script, tracked, status, notices, left) -> None:
    seen = Notices()
    call = asked(tmp_path, script, tracked_status_json=tracked, notice=seen)
    path = call.directory / "status.json"
    if before is not None:
        path.write_text(before)

    done = agent.run(call)

    assert (done.outcome.status, seen.codes) == (status, notices)
    if left == "dir":
        assert path.is_dir()
    elif left is None:
        assert not path.exists()
        assert not path.is_symlink()
    else:
        assert path.read_text() == left


def test_a_status_file_that_was_read_is_in_the_trace_masked(tmp_path: Path) -> None:
    script = 'echo \'{"status":"fail","failure_reason":"hunter22"}\' >status.json'

    done = agent.run(asked(tmp_path, script))

    assert json.loads(done.trace["status.json"])["failure_reason"] == "***"
    assert done.outcome.failure == Failure("***")


@pytest.mark.parametrize(
    ("word", "status", "kept"), [("port", "success", "port"), ("failure", "fail", "")]
)
def test_a_custom_word_counts_if_an_edge_knows_it(tmp_path, word, status, kept) -> None:
    node = a_node("plan", "agent")
    edge = Edge(source=node.id, target=NodeId("exit"), index=0, condition=parse("outcome=port"))
    call = asked(
        tmp_path,
        f'echo \'{{"outcome":"{word}"}}\'',
        node=node,
        graph=a_graph(node, edges=(edge,)),
    )

    done = agent.run(call)

    assert (done.outcome.status, done.outcome.word) == (status, kept)


def test_keys_of_the_engine_are_dropped_with_a_notice(tmp_path: Path) -> None:
    seen = Notices()
    call = asked(
        tmp_path, 'echo \'{"context_updates":{"internal.run_id":"x","a":1}}\'', notice=seen
    )

    done = agent.run(call)

    assert done.outcome.context_updates["a"] == 1
    assert "internal.run_id" not in done.outcome.context_updates
    assert seen.codes == ["context_updates_dropped"]


def test_no_agent_is_our_failure_not_the_nodes(tmp_path: Path) -> None:
    with pytest.raises(RequestError):
        agent.run(a_call(tmp_path, "do it", a_node("plan", "agent")))


def test_the_fake_agent_is_a_preset(tmp_path: Path) -> None:
    call = a_call(tmp_path, "first\nsecond", a_node("plan", "agent"), settings=a_settings("fake"))

    assert agent.run(call).outcome == expected("first\n")
