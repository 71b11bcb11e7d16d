"""Names and ids: what is spelled once, and what a stranger may not spell."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_fabro.checkpoint import layout
from git_fabro.checkpoint.model import RunId
from git_fabro.errors import RequestError

RUN = RunId("01JKXYZ0000000000000000000")


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**80 - 1))
def test_a_ulid_says_when_it_was_made(milliseconds: int, randomness: int) -> None:
    made = layout.make_ulid(milliseconds, randomness)

    assert layout.is_ulid(made)
    assert layout.is_run_id(made)
    assert layout.ulid_milliseconds(made) == milliseconds


@given(st.lists(st.integers(0, 2**48 - 1), min_size=2, max_size=2, unique=True))
def test_later_ulids_sort_behind_earlier_ones(times: list[int]) -> None:
    earlier, later = sorted(times)

    assert layout.make_ulid(earlier, 2**80 - 1) < layout.make_ulid(later, 0)


@pytest.mark.parametrize(
    "text", ["", ".a", "a..b", "a.lock", "a/b", "a b", "-a", "a\n", "a" * 101, "é", "a."]
)
def test_what_cannot_be_part_of_a_ref_is_no_run_id(text: str) -> None:
    with pytest.raises(RequestError):
        layout.parse_run_id(text)


def test_every_ref_has_one_name() -> None:
    assert layout.run_ref(RUN) == f"refs/heads/fabro/run/{RUN}"
    assert layout.meta_ref(RUN) == f"refs/heads/fabro/meta/{RUN}"
    assert layout.meta_ref(RUN, "hidden") == f"refs/fabro/meta/{RUN}"
    assert layout.lease_ref(RUN) == f"refs/fabro/lease/{RUN}"
    assert layout.branch_ref(RUN, "split@1/api") == f"refs/fabro/parallel/{RUN}/split@1/api"
