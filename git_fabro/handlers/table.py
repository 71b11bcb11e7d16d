"""The table of node kinds, and the way in for kinds of one's own."""

from __future__ import annotations

from collections.abc import Callable

from git_fabro.errors import RequestError
from git_fabro.handlers import agent, command, control, fan_in, human, parallel, wait
from git_fabro.handlers.call import Call, Driver, Handler, Result
from git_fabro.workflow import graph
from git_fabro.workflow.state import SUCCESS, Json, Outcome

_SIMPLE: dict[str, Handler] = {
    graph.START: control.run,
    graph.EXIT: control.run,
    graph.CONDITIONAL: control.run,
    graph.AGENT: agent.run,
    graph.PROMPT: agent.run,
    graph.COMMAND: command.run,
    graph.WAIT: wait.run,
}
_DRIVEN: dict[str, Callable[[Call, Driver], Result]] = {
    graph.HUMAN: human.run,
    graph.PARALLEL: parallel.run,
    graph.FAN_IN: fan_in.run,
}
_OWN: dict[str, Handler] = {}


def register(kind: str, handler: Handler) -> None:
    """Makes a kind of one's own known: a node with ``type=KIND`` is run by this handler.

    Raises:
        RequestError: the name is taken, or is no word.
    """
    if kind in _SIMPLE or kind in _DRIVEN or kind == graph.MANAGER:
        raise RequestError(f"node kind is built in: {kind}")
    if not kind.replace("_", "").replace(".", "").isalnum():
        raise RequestError(f"node kind is no word: {kind!r}")
    _OWN[kind] = handler


def own_kinds() -> frozenset[str]:
    """The kinds that were registered in this process."""
    return frozenset(_OWN)


def run_node(call: Call, driver: Driver) -> Result:
    """Runs one attempt by the handler of the node's kind.

    Raises:
        Interrupted: the attempt was stopped.
        Parked: it waits for a person.
        RequestError: nobody registered a handler for the kind in this process.
    """
    kind = call.node.kind
    driven = _DRIVEN.get(kind)
    if driven is not None:
        return driven(call, driver)
    handler = _SIMPLE.get(kind) or _OWN.get(kind)
    if handler is None:
        raise RequestError(f"no handler for nodes of kind {kind}: {call.node.id}")
    return handler(call)


def simulate(call: Call, driver: Driver) -> Result:
    """One attempt of a dry run: what would call a program, or wait, is taken as a success."""
    asks_an_agent = call.node.kind == graph.FAN_IN and call.node.text("prompt")
    if call.node.kind in _DRIVEN and not asks_an_agent:
        return _DRIVEN[call.node.kind](call, driver)
    if call.node.kind in (graph.START, graph.EXIT, graph.CONDITIONAL):
        return control.run(call)
    text = f"[simulated] {call.node.label}"
    updates: dict[str, Json] = {}
    if call.node.kind in (graph.AGENT, graph.PROMPT):
        updates = {
            "last_stage": call.node.id,
            "last_response": text[:200],
            f"response.{call.node.id}": text,
        }
    elif call.node.kind == graph.COMMAND:
        updates = {"command.output": text, "command.stderr": ""}
    return Result(Outcome(status=SUCCESS, context_updates=updates))
