"""``git fabro redo``: undos taken back, in their order."""

from __future__ import annotations

from pathlib import Path

from tests.cli.test_rewind import failed as failed
from tests.cli.test_rewind import files, refs
from tests.cli.typed import Shell, Typed
from tests.conftest import GitRepo


def test_undo_and_redo_go_back_and_forth_without_limit(
    shell: Shell, repo: GitRepo, failed: Path
) -> None:
    seen = [(refs(repo), files(failed))]
    for target in ("build", "plan"):
        shell("rewind", target)
        seen.append((refs(repo), files(failed)))

    for _ in range(2):
        for place in (1, 0):
            assert shell("undo").status == 0
            assert (refs(repo), files(failed)) == seen[place]
        assert shell("undo") == Typed(1, "", "nothing to undo\n")
        for place in (1, 2):
            assert shell("redo").status == 0
            assert (refs(repo), files(failed)) == seen[place]
        assert shell("redo") == Typed(1, "", "nothing to redo\n")
    repo.fsck()


def test_a_new_operation_ends_what_can_be_redone(shell: Shell, failed: Path) -> None:
    assert failed.exists()
    shell("rewind", "build")
    shell("undo")
    shell("rewind", "plan")

    assert shell("redo") == Typed(1, "", "nothing to redo\n")
