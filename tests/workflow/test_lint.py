"""Every rule: what triggers it, what it says and where, and what does not trigger it."""

from __future__ import annotations

import pytest

from git_fabro.workflow.admission import Source, admit

HEAD = "digraph {\n start [shape=Mdiamond] exit [shape=Msquare]\n"
COMMAND = "shape=parallelogram, script=true"


def found(body: str, rule: str) -> list[str]:
    """What a rule says of a graph with a start and an exit, as printed, without the source line."""
    text = body if body.startswith(("digraph", "strict")) else f"{HEAD}{body}\n}}"
    diagnostics = admit(Source(text=text, file="f")).diagnostics
    return [one.render().split("\n")[0] for one in diagnostics if one.rule == rule]


def rules(body: str, severities: tuple[str, ...] = ("error", "warning")) -> list[str]:
    diagnostics = admit(Source(text=f"{HEAD}{body}\n}}", file="f")).diagnostics
    return [one.rule for one in diagnostics if one.severity in severities]


SAYS = [
    (
        "node_id_case",
        f"plan [{COMMAND}]\nPlan [{COMMAND}]",
        ['4:1: node ids "plan" and "Plan" differ only in case'],
    ),
    (
        "node_id_form",
        'node [label=x]\n"a b"\n".a"\n"a..b"\n"a.lock"\n"a-visit_2"',
        [
            '4:1: node id "a b" may only use letters, digits, "_", "." and "-"',
            '5:1: node id ".a" must not begin with "." or "-", end with ".", or contain ".."',
            '6:1: node id "a..b" must not begin with "." or "-", end with ".", or contain ".."',
            '7:1: node id "a.lock" must not end with ".lock"',
            '8:1: node id "a-visit_2" must not end with "-visit_" and a number',
        ],
    ),
    (
        "attr_type",
        'a [max_retries="three", timeout=soon, goal_gate=1, max_visits=-1, max_parallel=0]',
        [
            '3:16: "max_retries" must be a number',
            '3:33: "timeout" must be a duration',
            '3:49: "goal_gate" must be a boolean',
            '3:63: "max_visits" must be a number of at least 0',
            '3:80: "max_parallel" must be a number of at least 1',
        ],
    ),
    (
        "attr_value",
        "a [retry_policy=often]",
        [
            (
                '3:17: "retry_policy" must be one of "none", "standard", "aggressive", "linear", '
                '"patient"'
            )
        ],
    ),
    (
        "coerced_value",
        'a [max_retries="3", timeout=90, goal_gate="TRUE", max_visits=3] stall_timeout="2m"',
        [
            '3:16: info: "3" read as the number 3',
            '3:29: info: "90" read as the duration 90s',
            '3:43: info: "TRUE" read as the boolean true',
            '3:79: info: "2m" read as the duration 2m',
        ],
    ),
    (
        "duplicate_attribute",
        "a [label=x, label=y] [label=z]\ngoal=a\ngraph [goal=b]",
        [
            '3:13: warning: "label" is set twice, the last one counts',
            '3:23: warning: "label" is set twice, the last one counts',
            '5:8: warning: "goal" is set twice, the last one counts',
        ],
    ),
    (
        "duplicate_node",
        "a [label=x]\nb [label=x]\na [label=y]",
        ['3:1: warning: node "a" is declared again at line 5'],
    ),
    (
        "duplicate_edge",
        "a [label=x] start -> a -> exit\na -> exit\nedge [label=x] a -> exit a -> a [condition=x]",
        ['4:6: warning: second edge "a" -> "exit" with the same condition'],
    ),
    (
        "unknown_attribute",
        "a [gaol_gate=true, fontname=x, wholly_new=1, stack.child=x]\nstart -> exit [prompt=x]",
        [
            '3:4: warning: unknown attribute "gaol_gate"; did you mean "goal_gate"?',
            '3:32: info: unknown attribute "wholly_new"',
            '4:16: info: unknown attribute "prompt"',
        ],
    ),
    ("start_node", "digraph { exit }", ["1:1: the graph has 0 start nodes, exactly one is needed"]),
    (
        "start_node",
        "a [shape=Mdiamond]",
        ["1:1: the graph has 2 start nodes, exactly one is needed"],
    ),
    (
        "terminal_node",
        "a [type=exit] b [shape=Msquare]",
        ["1:1: the graph has 3 exit nodes, exactly one is needed"],
    ),
    ("start_node", "digraph { Start End Start -> End }", []),
    ("terminal_node", "digraph { Start End Start -> End }", []),
    (
        "start_no_incoming",
        "a [label=x] a -> start",
        ["3:18: the start node must not have incoming edges"],
    ),
    (
        "exit_no_outgoing",
        "a [label=x] exit -> a",
        ["3:13: the exit node must not have outgoing edges"],
    ),
    (
        "edge_target_exists",
        "build [label=x] start -> biuld -> exit\nxx -> exit -> elsewhere",
        [
            '3:26: edge target "biuld" is not declared; did you mean "build"?',
            '4:1: edge source "xx" is not declared',
            '4:15: edge target "elsewhere" is not declared',
        ],
    ),
    (
        "reachability",
        "a [label=x, retry_target=b] b [label=x] c [label=x]\nstart -> a -> exit b -> a c -> a",
        ['3:41: warning: node "c" cannot be reached from start by edges or retry targets'],
    ),
    ("reachability", "retry_target=b b [label=x] b -> exit start -> exit", []),
    (
        "dead_end",
        "a [label=x] start -> a start -> exit",
        [
            (
                '3:1: warning: node "a" has no outgoing edge and is not the exit; '
                "a run that gets there fails"
            )
        ],
    ),
    (
        "all_conditional_edges",
        'a [label=x] start -> a -> exit [condition="outcome=fail"]\na -> a [condition="x=1"]',
        [
            (
                '2:2: warning: node "start" has no unconditional edge; '
                "the run fails if no condition is true"
            ),
            (
                '3:1: warning: node "a" has no unconditional edge; '
                "the run fails if no condition is true"
            ),
        ],
    ),
    (
        "all_conditional_edges",
        (
            'a [label=x] start -> a a -> exit [condition="outcome=succeeded"]\n'
            'a -> a [condition="outcome!=success"]'
        ),
        [],
    ),
    (
        "condition_syntax",
        'start -> exit [condition="a ~ b"]\nedge [condition="("]',
        [
            '3:26: condition: unknown operator "~"',
            (
                '4:17: condition: parentheses are not supported; "&&" binds tighter than "||", "!" '
                "tighter than both"
            ),
        ],
    ),
    (
        "outcome_word",
        (
            f"a [{COMMAND}] g [shape=diamond] b [label=x]\n start -> a -> g -> exit\n"
            'a -> b [condition="outcome=failure"]\ng -> b [condition="outcome=port"]\n'
            'b -> exit [condition="outcome=port"]\nb -> exit'
        ),
        [
            '5:19: warning: "failure" is no status, only a custom word of an agent can match',
            '6:19: warning: "port" is no status, only a custom word of an agent can match',
        ],
    ),
    (
        "outcome_word",
        'b [label=x] g [shape=diamond] start -> b -> g -> exit g -> b [condition="outcome=port"]',
        [],
    ),
    (
        "outcome_retry",
        'start -> exit [condition="outcome=retry"]',
        ['3:26: warning: "retry" is never visible to a condition'],
    ),
    (
        "random_with_conditions",
        'a [label=x, selection=random] start -> a -> exit a -> a [condition="x=1"]',
        ["3:23: selection=random cannot be combined with conditional edges"],
    ),
    (
        "restart_target",
        "start -> exit [loop_restart=true]",
        ["3:10: loop_restart cannot lead to the exit node"],
    ),
    (
        "shape_known",
        "a [shape=oval] b [shape=oval, type=human]",
        [
            '3:10: warning: unknown shape "oval", treated as agent',
            '3:25: warning: unknown shape "oval", treated as human',
        ],
    ),
    (
        "type_known",
        "a [type=robot] b [node_type=robot, shape=hexagon]",
        [
            '3:9: warning: unknown type "robot", treated as agent',
            '3:29: warning: unknown type "robot", treated as human',
        ],
    ),
    (
        "prompt_missing",
        "a [shape=box] b [shape=tab, label=x] c [prompt=x]",
        ['3:1: warning: agent "a" has neither prompt nor label'],
    ),
    (
        "unknown_variable",
        'goal="$goal" a [label="$team $goal", script="$HOME"]',
        [
            '3:6: warning: "$goal" is not a variable and stays as it is',
            '3:23: warning: "$team" is not a variable and stays as it is',
        ],
    ),
    ("prompt_file", 'a [prompt="@x.md"]', ['3:11: prompt file "x.md" cannot be read']),
    (
        "template",
        'goal="{{ goal }}" a [label="{{ inputs.x }}", fidelity="{% if %}"]',
        [
            '3:6: unknown template name "goal"',
            '3:28: unknown template name "inputs.x"',
            '3:55: unknown template name "{% if %}"',
        ],
    ),
    (
        "command_missing",
        'a [shape=parallelogram] b [type=tool, script=" "]',
        ['3:1: command "a" has no script', '3:25: command "b" has no script'],
    ),
    (
        "command_twice",
        "a [script=x, tool_command=y]\nb [command=x] b [command=y]",
        ['3:1: command "a" has script and tool_command'],
    ),
    ("wait_duration", "a [shape=insulator]", ['3:1: wait "a" needs a duration']),
    (
        "script_absolute_cd",
        'a [script="make && cd /tmp; ls"] b [script="cd src && abcd /x"] c [script="(cd ~/x)"]',
        [
            "3:11: warning: the script leaves the worktree with cd /tmp",
            "3:75: warning: the script leaves the worktree with cd ~/x",
        ],
    ),
    (
        "human_no_choice",
        'a [shape=hexagon] start -> a -> exit [condition="x=1"]',
        ['3:1: human gate "a" offers no choice'],
    ),
    ("human_no_choice", "a [shape=hexagon] start -> a a -> exit [freeform=true]", []),
    (
        "human_default_choice",
        "a [shape=hexagon, human.default_choice=no] start -> a -> exit [label=yes]",
        ['3:40: default "no" is not a choice of "a"'],
    ),
    ("human_default_choice", "a [shape=hexagon, human.default_choice=y] a -> exit [label=yes]", []),
    (
        "freeform_edge_count",
        "a [shape=hexagon] start -> a edge [freeform=true] a -> exit a -> a",
        ['3:66: more than one freeform edge at "a"'],
    ),
    (
        "human_choice_condition",
        'a [shape=hexagon] start -> a -> exit a -> a [label=Again, condition="x=1"]',
        ['3:43: warning: the labelled edge "Again" has a condition and is not offered'],
    ),
    (
        "human_key_clash",
        'a [shape=hexagon] b [label=x] a -> exit [label="[Y] Yes"]\na -> b [label="y) Yet"]',
        ['4:6: warning: choices "Yes" and "Yet" share the key "Y"'],
    ),
    (
        "parallel_join",
        (
            "s [shape=component] a [label=x] b [label=x] start -> s -> a -> exit s -> b\n"
            "t [shape=component]"
        ),
        ['3:1: the branches of "s" do not meet', '4:1: the branches of "t" do not meet'],
    ),
    (
        "parallel_region",
        (
            "s [shape=component] j [shape=tripleoctagon] node [label=x] a b c\n"
            "start -> s -> a -> c -> j -> exit s -> b -> c\nstart -> b"
        ),
        [
            '3:64: node "c" belongs to two branches of "s"',
            '5:10: an edge crosses the border of "s"',
        ],
    ),
    (
        "parallel_interior_kind",
        (
            "s [shape=component] j [shape=tripleoctagon] m [shape=house] a [label=x]\n"
            "start -> s -> m -> j -> exit s -> a -> j"
        ),
        ["3:45: a manager node cannot be inside a fan-out"],
    ),
    (
        "parallel_without_fan_in",
        "s [shape=component] a [label=x] b [label=x] start -> s -> a -> exit s -> b -> exit",
        ['3:1: info: the branches of "s" meet at "exit", which merges all of them'],
    ),
    (
        "retry_target_exists",
        "fallback_retry_target=x a [label=x, retry_target=y]",
        [
            '3:23: warning: retry target "x" does not exist',
            '3:50: warning: retry target "y" does not exist',
        ],
    ),
    (
        "goal_gate_has_retry",
        "a [label=x, goal_gate=true] b [label=x, goal_gate=true, retry_target=a]",
        ['3:1: warning: goal gate "a" has no retry target'],
    ),
    ("goal_gate_has_retry", "retry_target=a a [label=x, goal_gate=true]", []),
    (
        "retry_conflict",
        "a [label=x, retry_policy=none, max_retries=2] b [retry_policy=none, max_retries=0]",
        ["3:26: warning: retry_policy=none beside max_retries=2, the number counts"],
    ),
    (
        "fidelity_valid",
        "default_fidelity=all a [fidelity=high] start -> exit [fidelity=full]",
        [
            '3:18: warning: unknown fidelity "all", compact is used',
            '3:34: warning: unknown fidelity "high", compact is used',
        ],
    ),
    (
        "thread_without_full",
        (
            "node [label=x] a [thread_id=t] b [thread_id=t, fidelity=full] c [thread_id=t]\n"
            "start -> a [thread_id=u] a -> b [thread_id=u] b -> c [fidelity=full]"
        ),
        [
            "3:29: warning: thread_id has no effect without fidelity=full",
            "4:23: warning: thread_id has no effect without fidelity=full",
        ],
    ),
    (
        "stylesheet_syntax",
        'model_stylesheet="* { model }"',
        ['3:18: stylesheet: expected ":", found "}"'],
    ),
    (
        "stylesheet_property",
        'model_stylesheet="* { colour: red }"',
        ['3:18: warning: unknown property "colour"'],
    ),
    (
        "manager_unsupported",
        "a [shape=house]",
        ["3:1: warning: manager loops are not supported yet; run will refuse"],
    ),
    (
        "unbounded_loop",
        "node [label=x] a b c [max_visits=2] start -> a -> b -> a -> c -> a -> exit b -> b",
        ['3:16: info: the loop "a -> b -> a" has no visit limit'],
    ),
    ("unbounded_loop", "max_node_visits=9 a [label=x] start -> a -> exit a -> a", []),
]


@pytest.mark.parametrize(
    ("rule", "body", "said"),
    SAYS,
    ids=[f"{rule}-{number}" for number, (rule, _, _) in enumerate(SAYS)],
)
def test_a_rule_says_what_it_says(rule: str, body: str, said: list[str]) -> None:
    assert found(body, rule) == [f"f:{one} [{rule}]" for one in said]


#: Rules of the parser and of settings files have their tests with those.
ELSEWHERE = {
    *("syntax", "strict_graph", "undirected_graph", "multiple_graphs", "html_value"),
    *("setting_unknown", "setting_twice", "setting_unused"),
}
ALL = """
    syntax strict_graph undirected_graph multiple_graphs html_value node_id_form node_id_case
    attr_type attr_value coerced_value duplicate_attribute duplicate_node duplicate_edge
    unknown_attribute start_node terminal_node start_no_incoming exit_no_outgoing
    edge_target_exists reachability dead_end all_conditional_edges condition_syntax outcome_word
    outcome_retry random_with_conditions restart_target shape_known type_known prompt_missing
    unknown_variable prompt_file template command_missing command_twice wait_duration
    script_absolute_cd human_no_choice human_default_choice freeform_edge_count
    human_choice_condition human_key_clash parallel_join parallel_region parallel_interior_kind
    parallel_without_fan_in retry_target_exists goal_gate_has_retry retry_conflict fidelity_valid
    thread_without_full stylesheet_syntax stylesheet_property manager_unsupported unbounded_loop
    setting_unknown setting_twice setting_unused
"""


def test_every_rule_is_triggered_here_or_elsewhere() -> None:
    assert {rule for rule, _, said in SAYS if said} | ELSEWHERE == set(ALL.split())


def test_a_graph_in_order_gives_nothing() -> None:
    assert rules("plan [label=Plan] start -> plan -> exit", ("error", "warning", "info")) == []


def test_a_default_is_reported_once_for_all_its_nodes() -> None:
    assert found("node [max_visits=often] a b c", "attr_type") == [
        'f:3:18: "max_visits" must be a number [attr_type]'
    ]


def test_with_broken_syntax_only_values_and_conditions_are_checked() -> None:
    body = 'a [max_visits=x] lost -> nowhere [condition="("] b ['

    assert rules(body) == ["attr_type", "condition_syntax", "syntax"]


def test_with_an_undeclared_node_nothing_is_said_about_ways() -> None:
    body = "s [shape=component] a [label=x] lost [label=x] start -> s -> a s -> b"

    assert rules(body) == ["edge_target_exists"]
