"""Which attributes there are, of what type, and how a written value becomes a typed one.

Source: git-fabro-workflow(7).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from git_fabro.workflow.diagnostic import Findings, quoted
from git_fabro.workflow.document import Value
from git_fabro.workflow.graph import Scalar
from git_fabro.workflow.tokens import DURATION, FLOAT, INTEGER, STRING, WORD

Element = Literal["graph", "node", "edge"]

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"([0-9]+)(ms|s|m|h|d)\Z")
_NUMBER = re.compile(r"-?[0-9]+\Z")
_DECIMAL = re.compile(r"(?:[0-9]+|[0-9]*\.[0-9]+)\Z")
_LONGEST_NUMBER = 15
_LONGEST_S = 10 * 366 * 86400.0


@dataclass(frozen=True, slots=True)
class Type:
    """What a value must be. ``words`` are all that a text may be, where it may not be any text."""

    name: Literal["text", "number", "boolean", "duration"]
    words: tuple[str, ...] = ()
    least: int | None = None


_TEXT = Type("text")
_COUNT = Type("number", least=0)
_BOOLEAN = Type("boolean")
_DURATION_TYPE = Type("duration")
_MERGE = Type("text", ("winner", "all"))

_TYPES: Mapping[Element, Mapping[str, Type]] = {
    "graph": {
        **dict.fromkeys(("goal", "label", "rankdir"), _TEXT),
        "on_failure": Type("text", ("route", "exit", "succeed")),
        "default_max_retries": _COUNT,
        **dict.fromkeys(("retry_target", "fallback_retry_target"), _TEXT),
        "max_node_visits": _COUNT,
        "loop_restart_signature_limit": _COUNT,
        "stall_timeout": _DURATION_TYPE,
        **dict.fromkeys(("default_fidelity", "default_thread"), _TEXT),
        **dict.fromkeys(("model_stylesheet", "default_model", "default_provider"), _TEXT),
    },
    "node": {
        **dict.fromkeys(("label", "shape", "type", "node_type", "class"), _TEXT),
        "timeout": _DURATION_TYPE,
        "max_visits": _COUNT,
        "max_retries": _COUNT,
        "retry_policy": Type("text", ("none", "standard", "aggressive", "linear", "patient")),
        **dict.fromkeys(("retry_target", "fallback_retry_target"), _TEXT),
        **dict.fromkeys(("goal_gate", "auto_status", "allow_partial"), _BOOLEAN),
        "selection": Type("text", ("deterministic", "random")),
        **dict.fromkeys(("fidelity", "thread_id"), _TEXT),
        **dict.fromkeys(("prompt", "model", "provider", "reasoning_effort"), _TEXT),
        **dict.fromkeys(("max_tokens", "speed", "backend", "project_memory"), _TEXT),
        "script": _TEXT,
        "language": Type("text", ("shell", "python")),
        "human.default_choice": _TEXT,
        "max_parallel": Type("number", least=1),
        "join_policy": Type("text", ("wait_all", "first_success")),
        "merge": _MERGE,
        "duration": _DURATION_TYPE,
    },
    "edge": {
        **dict.fromkeys(("label", "condition", "fidelity", "thread_id"), _TEXT),
        "weight": Type("number"),
        **dict.fromkeys(("loop_restart", "freeform"), _BOOLEAN),
    },
}

#: Other spellings, and the first name of their row.
_ALIASES: Mapping[Element, Mapping[str, str]] = {
    "graph": {"default_max_retry": "default_max_retries"},
    "node": {
        "llm_prompt": "prompt",
        "llm_model": "model",
        "llm_provider": "provider",
        "tool_command": "script",
        "command": "script",
    },
    "edge": {},
}

FIDELITIES = ("full", "truncate", "compact", "summary:low", "summary:medium", "summary:high")

#: Attributes of Graphviz that change nothing but the picture. Source: Graphviz, "Attributes".
_GRAPHVIZ = """
_background area arrowhead arrowsize arrowtail bb bgcolor center charset clusterrank color
colorscheme comment compound concentrate constraint Damping decorate defaultdist dim dimen dir
diredgeconstraints distortion dpi edgehref edgetarget edgetooltip edgeURL epsilon esep fillcolor
fixedsize fontcolor fontname fontnames fontpath fontsize forcelabels gradientangle group head_lp
headclip headhref headlabel headport headtarget headtooltip headURL height href id image
imagepath imagepos imagescale inputscale K label_scheme labelangle labeldistance labelfloat
labelfontcolor labelfontname labelfontsize labelhref labeljust labelloc labeltarget labeltooltip
labelURL landscape layer layerlistsep layers layerselect layersep layout len levels levelsgap
lhead lheight linelength lp ltail lwidth margin maxiter mclimit mindist minlen mode mosek
newrank nodesep nojustify normalize notranslate nslimit nslimit1 oneblock ordering orientation
outputorder overlap overlap_scaling overlap_shrink pack packmode pad page pagedir pencolor
penwidth peripheries pin pos quadtree quantum rank rankdir ranksep ratio rects regular
remincross repulsiveforce resolution root rotate rotation samehead sametail samplepoints scale
searchsize sep shapefile showboxes sides size skew smoothing sortv splines start style
stylesheet tail_lp tailclip tailhref taillabel tailport tailtarget tailtooltip tailURL target
TBbalance tooltip truecolor URL vertices viewport voro_margin width xdotversion xlabel xlp z
"""
_LAYOUT = frozenset(_GRAPHVIZ.split())


def first_name(element: Element, key: str) -> str:
    """The name under which an attribute is kept."""
    return _ALIASES[element].get(key, key)


def is_known(element: Element, key: str) -> bool:
    return first_name(element, key) in _TYPES[element] or key.startswith(("stack.", "manager."))


def is_layout(key: str) -> bool:
    """Whether an attribute is Graphviz's, and only about the picture."""
    return key in _LAYOUT


def known_names(element: Element) -> tuple[str, ...]:
    return (*_TYPES[element], *_ALIASES[element])


def coerce(element: Element, key: str, value: Value, findings: Findings) -> Scalar | None:
    """The typed value of an attribute; None, with an error, where it cannot be one.

    Args:
        element: What the attribute is of.
        key: Its first name.
        value: As written.
        findings: Take errors, and an information where a value was converted.
    """
    wanted = _TYPES[element].get(key, _TEXT)
    if wanted.name == "text":
        if wanted.words and value.text not in wanted.words:
            words = ", ".join(map(quoted, wanted.words))
            findings.error("attr_value", value.offset, f"{quoted(key)} must be one of {words}")
            return None
        return value.text
    read = _READERS[wanted.name](value)
    if read is None:
        findings.error("attr_type", value.offset, f"{quoted(key)} must be a {wanted.name}")
        return None
    typed, plain, shown = read
    if wanted.least is not None and typed < wanted.least:
        message = f"{quoted(key)} must be a number of at least {wanted.least}"
        findings.error("attr_type", value.offset, message)
        return None
    if not plain:
        message = f"{quoted(value.text)} read as the {wanted.name} {shown}"
        findings.info("coerced_value", value.offset, message)
    return typed


def parse_duration(text: str) -> float | None:
    """The seconds of ``90``, ``1.5``, ``500ms``, ``2h``, at most ten years; None for others."""
    found = _DURATION.match(text)
    number = found[1] if found is not None else text
    if len(number) > _LONGEST_NUMBER or not (found or _DECIMAL.match(text)):
        return None
    seconds = float(number) * (_SECONDS[found[2]] if found is not None else 1.0)
    return round(seconds, 3) if seconds <= _LONGEST_S else None


# Each reader gives the value, whether it was written plainly, and how it is shown.
_Read = tuple[int | float | bool, bool, str]


def _read_number(value: Value) -> _Read | None:
    text = value.text.strip()
    if value.kind not in {INTEGER, STRING} or not _NUMBER.match(text):
        return None
    if len(text) > _LONGEST_NUMBER:
        return None
    return int(text), value.kind == INTEGER, str(int(text))


def _read_boolean(value: Value) -> _Read | None:
    text = value.text.strip().lower()
    if value.kind not in {WORD, STRING} or text not in {"true", "false"}:
        return None
    return text == "true", value.kind == WORD and value.text == text, text


def _read_duration(value: Value) -> _Read | None:
    text = value.text.strip()
    seconds = parse_duration(text)
    if value.kind not in {INTEGER, FLOAT, DURATION, STRING} or seconds is None:
        return None
    return seconds, value.kind == DURATION, text if text[-1].isalpha() else f"{text}s"


_READERS = {"number": _read_number, "boolean": _read_boolean, "duration": _read_duration}
