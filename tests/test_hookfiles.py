"""The shell parts of the hooks as an installer gets them."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from git_fabro import hookfiles
from git_fabro.errors import NotFoundError


def test_a_shim_starts_the_python_that_runs_now() -> None:
    text = hookfiles.shim("pre-receive")

    assert f"python={shlex.quote(sys.executable)}\n" in text
    assert "@python@" not in text


def test_a_shim_is_a_script_for_sh() -> None:
    text = hookfiles.shim("pre-receive")

    checked = subprocess.run(["sh", "-n"], input=text, capture_output=True, text=True)

    assert text.startswith("#!/bin/sh\n")
    assert (checked.returncode, checked.stderr) == (0, "")


def test_a_hook_that_is_not_there_is_named() -> None:
    with pytest.raises(NotFoundError, match="no such hook: post-nothing"):
        hookfiles.shim("post-nothing")
