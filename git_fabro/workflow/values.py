"""Attribute lists to typed values: files included, names replaced, types and conditions checked.

Every rule about a single value is here; each is reported once, where the value is written, however
many nodes and edges it is a default of.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from git_fabro.workflow import condition, stylesheet, template
from git_fabro.workflow.attributes import (
    FIDELITIES,
    Element,
    coerce,
    first_name,
    is_known,
    is_layout,
    known_names,
)
from git_fabro.workflow.condition import Condition
from git_fabro.workflow.diagnostic import Findings, quoted, suggestion
from git_fabro.workflow.document import Attribute, Value
from git_fabro.workflow.graph import Scalar
from git_fabro.workflow.template import Names
from git_fabro.workflow.tokens import STRING

#: Attributes in which ``$name`` is replaced, too.
_PROSE = frozenset({"prompt", "label", "goal"})
_FIDELITY = frozenset({"fidelity", "default_fidelity"})
_INCLUDING = frozenset({("node", "prompt"), ("graph", "goal")})
_CD = re.compile(r"(?:^|[;&|({\n]|\b(?:then|do|else))\s*cd\s+(?:--\s+)?([\"']?[/~][^\s;&|)]*)")


class Meant(NamedTuple):
    """An attribute's typed value, the offset of its first character, and the key as written."""

    value: Scalar
    offset: int
    spelled: str
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads attribute lists; what is wrong with them goes to the findings."""

    findings: Findings
    names: Names
    includes: Mapping[str, str | None]

    def read(self, element: Element, attributes: tuple[Attribute, ...]) -> dict[str, Meant]:
        """The last value of each attribute under its first name; one with an error as written."""
        found: dict[str, Meant] = {}
        seen: dict[str, str] = {}
        for attribute in attributes:
            key = first_name(element, attribute.key)
            if key in seen and not (key == "script" and seen[key] != attribute.key):
                message = f"{quoted(attribute.key)} is set twice, the last one counts"
                self.findings.warning("duplicate_attribute", attribute.offset, message)
            seen[key] = attribute.key
            found[key] = self._meant(element, key, attribute)
        return found

    def _meant(self, element: Element, key: str, attribute: Attribute) -> Meant:
        value, spelled = attribute.value, attribute.key
        if not is_known(element, spelled):
            self._unknown(element, attribute)
        if value.kind == STRING:
            included = self._include(element, key, value)
            value = value._replace(text=self.replace(key, included, value.offset))
        typed = coerce(element, key, value, self.findings)
        if typed is None:
            return Meant(value.text, value.offset, spelled)
        if element == "edge" and key == "condition":
            return Meant(typed, value.offset, spelled, self._condition(str(typed), value.offset))
        if element == "node" and key == "script":
            self._check_script(str(typed), value.offset)
        if key in _FIDELITY and typed not in FIDELITIES:
            message = f"unknown fidelity {quoted(str(typed))}, compact is used"
            self.findings.warning("fidelity_valid", value.offset, message)
            typed = "compact"
        return Meant(typed, value.offset, spelled)

    def _unknown(self, element: Element, attribute: Attribute) -> None:
        if is_layout(attribute.key):
            return
        near = suggestion(attribute.key, known_names(element))
        message = f"unknown attribute {quoted(attribute.key)}{near}"
        if near:
            self.findings.warning("unknown_attribute", attribute.offset, message)
        else:
            self.findings.info("unknown_attribute", attribute.offset, message)

    def _include(self, element: Element, key: str, value: Value) -> str:
        """The text of ``@file``, or the value itself, without the first of ``@@``."""
        if (element, key) not in _INCLUDING:
            return value.text
        path = included_path(value.text)
        if path is None:
            return value.text.removeprefix("@") if value.text.startswith("@@") else value.text
        text = self.includes.get(path)
        if text is None:
            message = f"prompt file {quoted(path)} cannot be read"
            self.findings.error("prompt_file", value.offset, message)
        return text or ""

    def replace(self, key: str, text: str, offset: int) -> str:
        """A text with its names replaced; unknown ones are reported at the offset."""
        if key == "script":
            done = template.in_script(text, self.names)
        elif key in _PROSE:
            names = replace(self.names, goal=None) if key == "goal" else self.names
            done = template.in_prose(text, names)
        else:
            done = template.in_text(text, self.names)
        for unknown in done.templates:
            message = f"unknown template name {quoted(unknown.name)}"
            self.findings.error("template", offset, message)
        for unknown in done.variables:
            message = f"{quoted(unknown.name)} is not a variable and stays as it is"
            self.findings.warning("unknown_variable", offset, message)
        return done.text

    def _check_script(self, script: str, offset: int) -> None:
        found = _CD.search(script)
        if found is not None:
            message = f"the script leaves the worktree with cd {found[1]}"
            self.findings.warning("script_absolute_cd", offset, message)

    def _condition(self, text: str, offset: int) -> Condition | None:
        """The condition; None for a blank text."""
        try:
            parsed = condition.parse(text)
        except condition.ConditionError as exc:
            self.findings.error("condition_syntax", offset, f"condition: {exc.message}")
            return Condition(())
        for clause in condition.outcome_clauses(parsed):
            if condition.normalise_status(clause.value) == "retry":
                message = '"retry" is never visible to a condition'
                self.findings.warning("outcome_retry", offset, message)
        return parsed if text.strip() else None


def included_path(text: str) -> str | None:
    """The path in ``@path``; None for any other text, and for ``@@``, which is a literal ``@``."""
    path = text.strip()
    if not path.startswith("@") or path.startswith("@@") or "\n" in path or len(path) == 1:
        return None
    return path[1:]


def read_stylesheet(meant: Meant | None, findings: Findings) -> stylesheet.Stylesheet:
    """The graph's stylesheet; an empty one where there is none, or none that parses."""
    if meant is None:
        return stylesheet.Stylesheet()
    try:
        sheet = stylesheet.parse(str(meant.value))
    except stylesheet.StylesheetError as exc:
        findings.error("stylesheet_syntax", meant.offset, f"stylesheet: {exc.message}")
        return stylesheet.Stylesheet()
    for name in sheet.unknown:
        message = f"unknown property {quoted(name)}"
        findings.warning("stylesheet_property", meant.offset, message)
    return sheet
