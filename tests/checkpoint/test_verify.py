"""Each rule by a history made of values: what breaks it is found, and what looks like it is not."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from git_fabro.checkpoint import codec, layout, verify, verify_links, verify_record
from git_fabro.checkpoint.finding import Finding, Limits
from git_fabro.checkpoint.model import Oid
from git_fabro.checkpoint.secrets import Mask
from git_fabro.checkpoint.verify import Grants, Update
from git_fabro.workflow.records import CheckpointMade, RunCreated, RunForked, RunNotice
from tests.checkpoint.histories import AT, DIGEST, FORK, RUN, History, Objects

ABSENT = Oid("1" * 40)
NOTICE = RunNotice(level="info", code="test", message="said")
TOKEN = "ghp_" + "a1B2" * 9
NOTHING, USUAL = Grants(), Limits()
REWIND = Grants(rewind_asked=True, rewind_allowed=True)
PRUNE = Grants(prune_asked=True, delete_allowed=True)


def judged(
    history: History,
    *updates: tuple[str, Oid | None],
    grants: Grants = NOTHING,
    limits: Limits = USUAL,
) -> list[Finding]:
    """What is wrong with a push of these refs, or of both branches of the run."""
    objects = history.objects
    wanted = updates or ((history.meta_ref, history.meta_tip), (history.run_ref, history.run_tip))
    return list(
        verify.judge(
            objects,
            limits,
            grants,
            [Update(ref=ref, old=objects.refs.get(ref), new=new) for ref, new in wanted],
        )
    )


def rules(findings: list[Finding]) -> list[tuple[str, Oid | None]]:
    return [(one.rule, one.commit) for one in findings]


def grown(checkpoints: int = 3) -> History:
    """A run of some checkpoints, on no ref yet."""
    history = History.begin()
    for _ in range(checkpoints):
        history.checkpoint()
    return history


def test_a_whole_run_has_no_finding() -> None:
    assert judged(grown()) == []


def test_what_follows_a_proved_run_has_none_either() -> None:
    history = grown().stand()
    history.meta("question review@1", NOTICE)
    history.checkpoint()

    assert judged(history) == []


def test_a_fork_shares_the_links_of_its_source() -> None:
    fork = grown().fork()
    fork.checkpoint()

    assert judged(fork) == []


def test_a_push_costs_what_it_adds() -> None:
    def reads(checkpoints: int) -> int:
        history = grown(checkpoints).stand()
        history.checkpoint()
        history.objects.reads = 0
        assert judged(history) == []
        return history.objects.reads

    assert reads(200) == reads(20)


def test_a_rewind_is_judged_from_where_both_histories_part() -> None:
    def reads(checkpoints: int) -> int:
        history = grown(checkpoints)
        at = (history.run_tip, history.meta_tip, history.state, history.count)
        history.checkpoint()
        history.checkpoint()
        history.stand()
        history.run_tip, history.meta_tip, history.state, history.count = at
        history.meta("records", NOTICE)
        history.checkpoint()
        history.objects.is_ancestor = lambda ancestor, tip: False  # type: ignore[method-assign]
        history.objects.reads = 0
        assert judged(history, grants=REWIND) == []
        return history.objects.reads

    assert reads(200) == reads(20)


# Links ---------------------------------------------------------------------------------------


def test_a_trailer_that_names_nothing_is_a_bad_link() -> None:
    history = grown()
    forged = history.commit(ABSENT)

    assert judged(history) == [
        Finding(
            rule="link",
            ref=history.run_ref,
            commit=forged,
            message="it names 111111111111, which is not there",
        )
    ]


@pytest.mark.parametrize("text", ["HEAD", "1" * 39, "1" * 64, "\x1b[31m"])
def test_a_trailer_that_is_no_object_name_is_a_bad_link(text: str) -> None:
    history = grown()
    forged = history.commit(text)

    (found,) = judged(history)

    assert (found.rule, found.commit) == ("link", forged)
    assert found.message.isprintable()


def test_a_trailer_of_another_run_is_a_bad_link() -> None:
    other, history = grown(), grown(2)
    history.objects.held |= other.objects.held
    theirs = history.commit(other.meta_tip)

    assert rules(judged(history)) == [("link", theirs)]


def test_a_trailer_of_another_visit_is_a_bad_link() -> None:
    history = grown()
    first = history.objects.commit(history.meta_tip).parents[0]
    history.count += 1
    again = history.commit(first)

    (found,) = judged(history)

    assert (found.rule, found.commit) == ("link", again)
    assert found.message.endswith("which is of another visit")


def test_a_commit_by_hand_may_say_what_it_likes() -> None:
    history = grown()
    history.by_hand(f"by hand\n\nFabro-Checkpoint: {ABSENT}\n")
    history.by_hand(f"fabro({RUN}): a (success)\n\nFabro-Checkpoint: {ABSENT}\n\nand more\n")
    picked = history.commit(ABSENT)
    made = CheckpointMade(git_commit_sha=picked, meta_commit_sha=None, ordinal=6, cause="commit")
    history.meta(f"commit {picked[:12]}", made, commit=picked)

    assert judged(history) == []


def test_the_oldest_bad_link_comes_first() -> None:
    history = grown()
    first, second = history.commit(ABSENT), history.commit(Oid("2" * 40))

    found = [one for one in judged(history) if "which is not there" in one.message]

    assert [one.commit for one in found] == [first, second]


@pytest.mark.parametrize("base", [["x"], None, "HEAD", "1" * 64])
def test_a_run_begins_with_the_name_of_its_base(base: object) -> None:
    start = codec.document({"base_sha": base, "run_id": RUN, "schema": 1})

    history = History.begin(start=start)

    (found,) = judged(history, (history.meta_ref, history.meta_tip))
    assert (found.rule, found.message) == ("schema", "start.json: base_sha is no object name")


def test_a_fork_has_the_base_of_its_source() -> None:
    source = grown()
    source.files[layout.START_JSON] = codec.document(
        {"base_sha": source.run_tip, "run_id": RUN, "schema": 1}
    )

    fork = source.fork()

    (found,) = judged(fork)
    assert (found.rule, found.commit) == ("schema", fork.meta_tip)
    assert found.message == "start.json: base_sha is another than before"


def test_a_run_branch_begins_at_its_base() -> None:
    history = grown()
    stranger = history.objects.write_commit(history.objects.write_tree({"b": b""}), "other\n")
    history.run_tip = stranger

    (found,) = judged(history)

    assert (found.rule, found.ref) == ("link", history.run_ref)
    assert found.message.startswith("it does not begin at its base ")


def test_files_of_a_history_that_is_no_runs_are_not_opened() -> None:
    history = grown()
    objects = history.objects
    tree = objects.write_tree({"token": TOKEN.encode()})
    at = objects.write_commit(tree, "work\n")
    for number in range(verify_links.MOST_BY_HAND + 1):
        at = objects.write_commit(tree, f"work {number}\n", at)
    history.run_tip = at

    (found,) = judged(history)

    assert (found.rule, found.message) == ("link", "no checkpoint among 10000 commits")


def test_the_end_of_a_shallow_history_is_no_wrong_base() -> None:
    history = grown()
    parent = history.objects.commit(history.run_tip).parents[0]
    history.objects.boundary = frozenset({history.run_tip})
    del history.objects.held[parent]

    assert judged(history) == []


def test_what_lies_below_a_shallow_history_is_not_asked_for() -> None:
    history = grown()
    objects = history.objects
    end = objects.commit(history.meta_tip).parents[0]
    objects.boundary = frozenset({end})
    del objects.held[objects.commit(end).parents[0]]

    assert judged(history) == []
    broken = history.meta("records", NOTICE, files={layout.RECORDS: b""})
    assert rules(judged(history)) == [("records", broken)]


def test_a_run_without_metadata_is_refused() -> None:
    history = grown()

    assert rules(judged(history, (history.run_ref, history.run_tip))) == [("link", history.run_tip)]


# The chain -----------------------------------------------------------------------------------


def test_a_meta_commit_without_its_trailers_breaks_the_chain() -> None:
    history = grown()
    tree = history.objects.commit(history.meta_tip).tree
    sound = history.meta_tip
    broken = history.objects.write_commit(tree, "checkpoint a@4 (success)\n", sound)

    assert rules(judged(history, (history.meta_ref, broken))) == [("chain", sound)]
    history.stand()
    assert rules(judged(history, (history.meta_ref, broken))) == [("chain", broken)]


def test_a_merge_breaks_the_chain() -> None:
    history = grown()
    commit = history.objects.commit(history.meta_tip)
    merged = history.objects.write_commit(
        commit.tree, commit.message, commit.parents[0], history.run_tip
    )

    assert rules(judged(history, (history.meta_ref, merged))) == [("chain", merged)]


def test_the_chain_of_a_run_is_not_that_of_another() -> None:
    history, fork = grown(), grown().fork()
    history.objects.held |= fork.objects.held

    assert rules(judged(history, (history.meta_ref, fork.meta_tip))) == [("chain", fork.meta_tip)]


def test_a_run_changes_only_where_a_fork_begins() -> None:
    history = grown()
    history.run = FORK
    broken = history.meta("records", NOTICE)

    history.run = RUN
    history.meta("records", NOTICE)

    assert rules(judged(history)) == [("chain", broken)]


@pytest.mark.parametrize(
    ("grants", "found"),
    [(Grants(), ["append-only"]), (REWIND, [])],
    ids=["without the option", "with it"],
)
def test_a_metadata_branch_only_grows(grants: Grants, found: list[str]) -> None:
    history = grown()
    before = history.objects.commit(history.meta_tip).parents[0]
    history.stand()

    assert [one.rule for one in judged(history, (history.meta_ref, before), grants=grants)] == [
        *found,
        *(["link"] if grants == REWIND else []),
    ]


def test_no_option_lets_another_chain_take_the_place_of_one() -> None:
    history = grown().stand()
    other = History.begin(history.objects)
    other.meta("records", NOTICE)
    stranger = history.objects.write_commit(
        history.objects.commit(other.meta_tip).tree,
        history.objects.commit(other.meta_tip).message,
    )

    found = judged(history, (history.meta_ref, stranger), grants=REWIND)

    assert [one.rule for one in found][:1] == ["append-only"]


# Records and fold ----------------------------------------------------------------------------


def _records(*numbers: int, **changed: object) -> bytes:
    value = {"at": AT, "data": {"level": "info", "code": "c", "message": "m"}}
    rest = {"kind": "run.notice", "origin": "external"}
    return b"".join(
        codec.document({**value, **rest, "seq": number, **changed}) for number in numbers
    )


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        pytest.param(_records(10), "records", id="a gap"),
        pytest.param(_records(9, 11), "records", id="a gap inside"),
        pytest.param(_records(8), "records", id="one again"),
        pytest.param(b"", "records", id="none"),
        pytest.param(b"{", "records", id="no JSON"),
        pytest.param(_records(9)[:-1], "records", id="no end"),
        pytest.param(b"[]\n", "records", id="no record"),
        pytest.param(
            _records(9).replace(b'"m"', b"1e999999999"), "records", id="a number without end"
        ),
        pytest.param(_records(9).replace(b'"m"', b'"\\udbff"'), "records", id="half a character"),
        pytest.param(_records(9).replace(b'"m"', b'"\\ud83d\\ude00"'), None, id="two halves"),
        pytest.param(
            _records(9, kind="lease.taken", data={"contract": 2}), "schema", id="a newer contract"
        ),
        pytest.param(
            _records(
                9,
                kind="branch.finished",
                position={"node": "a", "visit": 9, "attempt": 1, "branch": "x@1/y"},
                data={"id": "y", "status": "success", "head_sha": None, "nodes": [], "context": {}}
                | {"failure": None, "duration_ms": 1},
            ),
            None,
            id="a branch that is not open",
        ),
        pytest.param(
            _records(
                9,
                kind="node.started",
                position={"node": "a", "visit": 9, "attempt": 1, "branch": "x@1/y"},
                data={"handler": "command", "fidelity": "", "thread": "", "deadline": None},
            ),
            "fold",
            id="a visit on a branch that is not open",
        ),
    ],
)
def test_records_follow_one_another(lines: bytes, rule: str | None) -> None:
    history = grown()
    assert history.state.seq == 8
    broken = history.meta("records", NOTICE, files={layout.RECORDS: lines})

    expected = [] if rule is None else [(rule, broken)]
    assert rules(judged(history)) == expected


def test_a_gap_is_no_less_one_where_the_trailer_has_it_too() -> None:
    history = grown()
    broken = history.meta("records", NOTICE, files={layout.RECORDS: _records(10)}, seq=10)

    (found,) = judged(history)

    assert (found.commit, found.message) == (broken, "record 10 follows 8")


def test_the_number_of_the_trailer_is_that_of_the_last_record() -> None:
    history = grown()
    broken = history.meta("records", NOTICE, seq=8)

    assert rules(judged(history)) == [("records", broken)]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"status": "fail"}, "status is not"),
        ({"seq": 7}, "seq is not"),
        ({"context_values": {"graph.goal": "mine"}}, "context_values is not"),
        ({"pending": None}, "pending is not"),
    ],
    ids=["status", "seq", "context", "pending"],
)
def test_a_state_is_what_its_records_add_up_to(change: dict[str, object], says: str) -> None:
    history = grown()
    value = codec.state_to_json(history.state) | {"seq": 9} | change
    broken = history.meta("records", NOTICE, files={layout.CHECKPOINT_JSON: codec.document(value)})

    (found,) = judged(history)

    assert (found.rule, found.commit) == ("fold", broken)
    assert found.message.startswith(says)


def test_a_state_may_be_written_in_another_way_and_hold_more() -> None:
    history = grown()
    value = codec.state_to_json(history.state) | {"seq": 9, "of_another": 1}
    value["git_commit_sha"] = history.run_tip
    data = codec.canonical(value).replace(b",", b", ")
    history.meta("records", NOTICE, files={layout.CHECKPOINT_JSON: data})

    assert judged(history) == []


def test_what_follows_a_broken_commit_is_not_judged() -> None:
    history = grown()
    broken = history.meta("records", NOTICE, files={layout.RECORDS: b""})
    history.meta("records", NOTICE)

    assert rules(judged(history)) == [("records", broken)]


def test_a_state_of_a_later_schema_is_refused() -> None:
    history = grown()
    value = codec.state_to_json(history.state) | {"schema": 2}
    broken = history.meta("records", NOTICE, files={layout.CHECKPOINT_JSON: codec.document(value)})

    assert rules(judged(history)) == [("schema", broken)]


def test_a_fork_of_fabros_begins_with_a_state_that_no_record_tells() -> None:
    history = grown()
    objects = history.objects
    fabros = objects.write_commit(objects.write_tree({"manifest.json": b"{}"}), "checkpoint\n")
    fork = History(objects, FORK, history.files, history.state, history.run_tip, fabros)
    fork.files = {**fork.files, layout.RUN_JSON: codec.document({"schema": 1, "run_id": FORK})}
    start = {"schema": 1, "run_id": FORK, "base_sha": history.run_tip}
    fork.files[layout.START_JSON] = codec.document(start)
    fork.state = codec.state_from_json(codec.state_to_json(history.state) | {"seq": 0})
    begun = (fork.state, fork.meta_tip)
    fork.meta("fork from X @3", RunForked(from_={}, run_id=FORK))
    fork.meta("records", NOTICE)

    assert judged(fork) == []
    fork.state, fork.meta_tip = begun
    data = codec.document(codec.state_to_json(fork.state) | {"seq": 100})
    forked = RunForked(from_={}, run_id=FORK)
    broken = fork.meta("fork from X @3", forked, files={layout.CHECKPOINT_JSON: data})
    assert rules(judged(fork)) == [("fold", broken)]


def test_what_fabro_made_is_followed_by_a_fork_only() -> None:
    history = grown()
    objects = history.objects
    fabros = objects.write_commit(objects.write_tree({"manifest.json": b"{}"}), "checkpoint\n")
    strange = History(objects, RUN, history.files, history.state, history.run_tip, fabros)
    strange.state = codec.state_from_json(codec.state_to_json(history.state) | {"seq": 0})
    broken = strange.meta("records", NOTICE)

    (found,) = judged(strange, (strange.meta_ref, broken))

    assert (found.rule, found.commit) == ("fold", broken)
    assert found.message == "what Fabro made is followed by no fork"


# Files ---------------------------------------------------------------------------------------


def _file(name: str, data: bytes) -> Callable[[History], Oid]:
    return lambda history: history.meta("records", NOTICE, files={name: data})


def _run_json(value: bytes) -> Callable[[History], Oid]:
    data = b'{"digest":"%s","run_id":"%s","schema":1,"settings":{},"zz":%s}\n'
    return _file("run.json", data % (DIGEST.encode(), RUN.encode(), value))


def _start_json(base: object) -> Callable[[History], Oid]:
    return _file("start.json", codec.document({"base_sha": base, "run_id": RUN, "schema": 1}))


def _without(name: str) -> Callable[[History], Oid]:
    def make(history: History) -> Oid:
        del history.files[name]
        return history.meta("records", NOTICE)

    return make


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        pytest.param(_file("run.json", b'{"schema":1,"run_id":"OTHER"}\n'), "id", id="another run"),
        pytest.param(_file("start.json", b"{}\n"), "schema", id="no schema"),
        pytest.param(_file("start.json", b'{"schema":9}\n'), "schema", id="a later schema"),
        pytest.param(_file("run.json", b"[" * 100_000), "schema", id="nested"),
        pytest.param(_run_json(b"1e999999999"), "schema", id="a number without end"),
        pytest.param(_run_json(b'"\\ud800"'), "schema", id="half of a character"),
        pytest.param(_start_json(["x"]), "schema", id="a base that is a list"),
        pytest.param(_start_json(None), "schema", id="no base"),
        pytest.param(_start_json("--output=/x"), "schema", id="a base that is an option"),
        pytest.param(_start_json("1" * 64), "schema", id="a base of the other format"),
        pytest.param(_start_json("1" * 40), "schema", id="another base"),
        pytest.param(_without("start.json"), "tree", id="no start.json"),
        pytest.param(_without("run.json"), "tree", id="no run.json"),
        pytest.param(_file("graph.fabro", b"digraph Other {}\n"), "digest", id="another graph"),
        pytest.param(_file("artifacts/files/" + "0" * 64, b"x"), "digest", id="other content"),
        pytest.param(_file("nodes/a/stdout.log", TOKEN.encode()), "secret", id="a secret"),
        pytest.param(_file("nodes/a/\x1b[31m", b""), "tree", id="a control character"),
        pytest.param(_file("nodes/..", b""), "tree", id="another folder"),
        pytest.param(_file(".GIT", b""), "tree", id="git's own folder"),
    ],
)
def test_the_files_of_a_record_are_what_they_are_to_be(
    make: Callable[[History], Oid], rule: str
) -> None:
    history = grown()
    broken = make(history)

    found = judged(history)

    assert (rule, broken) in rules(found)
    assert all(one.message.isprintable() for one in found)


@pytest.mark.parametrize("mode", [0o100755, 0o120000, 0o160000, 0o100600])
def test_a_record_holds_plain_files_only(mode: int) -> None:
    history = grown()
    blob = history.objects.write("blob", b"text")
    broken = history.meta("records", NOTICE, files={"nodes/a/out": (mode, blob)})

    assert ("tree", broken) in rules(judged(history))


def test_a_collected_file_has_the_name_of_its_content() -> None:
    history = grown()
    name = hashlib.sha256(b"text").hexdigest()
    history.meta("records", NOTICE, files={f"artifacts/files/{name}": b"text"})

    assert judged(history) == []


def test_escapes_of_json_are_no_part_of_a_secret() -> None:
    history = grown()
    said = RunNotice(level="info", code="c", message="see http://localhost:3000\nme@example.com")
    history.meta("records", said)
    assert Mask().data(codec.document(said.message)) != codec.document(said.message)

    assert judged(history) == []


def test_what_is_masked_is_no_secret() -> None:
    history = grown()
    text = Mask().text(f"https://me:password@example.com Authorization: Bearer {TOKEN}")
    history.meta("records", RunNotice(level="info", code="c", message=text))
    history.checkpoint({"out": text.encode()})

    assert judged(history) == []


@pytest.mark.parametrize(
    ("where", "found"),
    [("all", ["secret", "secret"]), ("record", ["secret"]), ("none", [])],
)
def test_secrets_are_looked_for_where_the_limits_say(where: str, found: list[str]) -> None:
    history = grown()
    history.meta("records", NOTICE, files={"nodes/a/out": TOKEN.encode()})
    history.by_hand("by hand\n", {"file": TOKEN.encode()})

    limits = Limits(secrets=where)  # type: ignore[arg-type]
    assert [one.rule for one in judged(history, limits=limits)] == found


def test_only_what_a_commit_adds_is_looked_at() -> None:
    history = grown()
    history.by_hand("by hand\n", {"token": TOKEN.encode(), "file": b""})
    history.stand()
    history.by_hand("by hand\n", {"token": TOKEN.encode(), "file": b"more"})

    assert judged(history) == []


@pytest.mark.parametrize("name", [layout.RECORDS, layout.CHECKPOINT_JSON, layout.RUN_JSON])
def test_what_is_too_large_is_refused_unread(name: str) -> None:
    history = grown()
    data = b'{"large":1}\n'
    broken = history.meta("records", NOTICE, files={name: data})
    history.objects.sizes[history.objects.write("blob", data)] = 20 * 1024 * 1024

    found = judged(history)

    assert set(rules(found)) == {("size", broken)}
    assert found[0].message == f"{name}: 20971520 bytes, more than 16777216"


@pytest.mark.parametrize("name", [layout.RECORDS, layout.CHECKPOINT_JSON, layout.RUN_JSON])
def test_what_has_too_many_parts_is_refused_unparsed(name: str) -> None:
    history = grown()
    data = b'{"schema":1,"a":[' + b"{}," * verify_record.MOST_PARTS + b"1]}\n"
    broken = history.meta("records", NOTICE, files={name: data})

    found = judged(history)

    assert set(rules(found)) == {("size", broken)}
    assert found[0].message == f"{name}: more than 1000000 lists and objects"


def test_a_file_of_a_run_branch_may_be_larger_than_one_of_the_record() -> None:
    history = grown()
    large = history.by_hand("by hand\n", {"large": b"1"})
    history.objects.sizes[history.objects.write("blob", b"1")] = 20 * 1024 * 1024

    limits = Limits(secrets="none", file_bytes=16 * 1024 * 1024)
    assert judged(history, limits=Limits(secrets="none")) == []
    assert rules(judged(history, limits=limits)) == [("size", large)]


def test_a_file_that_is_not_there_is_named() -> None:
    history = grown()
    broken = history.by_hand("by hand\n", {"gone": b"gone"})
    del history.objects.held[history.objects.write("blob", b"gone")]

    (found,) = judged(history)

    assert (found.rule, found.commit) == ("tree", broken)
    assert found.message.startswith("gone: the object is missing: ")


def test_a_record_of_another_run_is_refused() -> None:
    history = grown()
    broken = history.meta("records", RunCreated(run_id="OTHER", created_at=AT, digest=""))

    assert rules(judged(history)) == [("id", broken)]


# Refs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ref", "rule"),
    [
        ("refs/heads/fabro/run/\u202eX", "ref-name"),
        ("refs/heads/fabro/run/\x85X", "ref-name"),
        ("refs/heads/fabro/run/a/b", "ref-name"),
        ("refs/heads/fabro/meta/a/b", "ref-name"),
        ("refs/heads/fabro/run/..x", "id"),
        ("refs/heads/fabro/run/" + "a" * 101, "id"),
        ("refs/fabro/meta/é", "id"),
        ("refs/fabro/lease/", "id"),
        ("refs/fabro/ops", "ref-name"),
        ("refs/fabro/else", "ref-name"),
        (f"refs/fabro/checkpoint/{RUN}/x", "ref-name"),
        (f"refs/fabro/parallel/{RUN}/split/api", "ref-name"),
    ],
)
def test_a_ref_has_a_name_of_ours(ref: str, rule: str) -> None:
    history = grown()

    found = judged(history, (ref, history.run_tip))

    assert rules(found) == [(rule, history.run_tip)]


IN_THE_WAY = [
    *("refs/heads/fabro", "refs/heads/fabro/run", "refs/heads/fabro/meta", "refs/notes/fabro/x"),
    *("refs/fabro", "refs/fabro/meta", "refs/fabro/parallel", "refs/fabro/pruned/x"),
]


@pytest.mark.parametrize("ref", IN_THE_WAY)
def test_a_ref_that_leaves_runs_no_place_is_refused(ref: str) -> None:
    history = grown()

    assert judged(history, (ref, history.run_tip)) == [
        Finding(
            rule="ref-name",
            ref=ref,
            commit=history.run_tip,
            message="as long as it is there, refs of runs cannot be",
        )
    ]


@pytest.mark.parametrize("ref", IN_THE_WAY)
def test_a_ref_that_leaves_runs_no_place_may_go(ref: str) -> None:
    history = grown()
    history.objects.refs[ref] = history.run_tip

    assert judged(history, (ref, None)) == []


@pytest.mark.parametrize("ref", ["refs/heads/main", "refs/heads/fabro/mine", "refs/notes/other"])
def test_refs_of_others_are_not_looked_at(ref: str) -> None:
    assert judged(History.begin(), (ref, ABSENT)) == []


def test_a_run_has_its_metadata_in_one_place() -> None:
    history = grown().stand()
    hidden = layout.meta_ref(RUN, "hidden")

    (found,) = judged(history, (hidden, history.meta_tip))

    assert (found.rule, found.ref) == ("ref-name", hidden)


def test_hidden_metadata_serves_as_well() -> None:
    history = grown()
    hidden = layout.meta_ref(RUN, "hidden")

    updates = ((hidden, history.meta_tip), (history.run_ref, history.run_tip))
    assert judged(history, *updates) == []


@pytest.mark.parametrize(
    ("grants", "says"),
    [
        (Grants(), "it leaves commits behind, and the push has not the option fabro.rewind"),
        (
            Grants(rewind_allowed=True),
            "it leaves commits behind, and the push has not the option fabro.rewind",
        ),
        (
            Grants(rewind_asked=True),
            "it leaves commits behind, which this server does not allow",
        ),
    ],
    ids=["neither", "allowed only", "asked for only"],
)
def test_a_rewind_takes_both_words(grants: Grants, says: str) -> None:
    history = grown().stand()
    before = history.objects.commit(history.run_tip).parents[0]

    (found,) = judged(history, (history.run_ref, before), grants=grants)

    assert (found.rule, found.message) == ("rewind", says)
    assert judged(history, (history.run_ref, before), grants=REWIND) == []


def test_a_deletion_takes_both_words() -> None:
    history = grown().stand()
    gone: tuple[tuple[str, Oid | None], ...] = ((history.meta_ref, None), (history.run_ref, None))

    assert [one.rule for one in judged(history, *gone)] == ["delete", "delete"]
    assert judged(history, *gone, grants=PRUNE) == []
    assert [one.rule for one in judged(history, gone[0], grants=PRUNE)] == ["delete"]
    assert judged(history, gone[1], grants=PRUNE) == []


def test_a_lease_moves_forward_only() -> None:
    history = grown()
    objects = history.objects
    first = objects.write_commit(objects.write_tree({}), "free\n")
    second = objects.write_commit(objects.write_tree({"a": b""}), "taken\n", first)
    ref = layout.lease_ref(RUN)
    objects.refs[ref] = first

    assert judged(history, (ref, second)) == []
    objects.refs[ref] = second
    assert rules(judged(history, (ref, first))) == [("append-only", first)]


def test_a_snapshot_never_changes() -> None:
    history = grown()
    objects, ref = history.objects, layout.snapshot_prefix(RUN) + "01JKXYZ0000000000000000000"
    made = objects.write_commit(objects.write_tree({"a": b"1"}), "work tree\n", history.run_tip)

    assert judged(history, (ref, made)) == []
    objects.refs[ref] = history.run_tip
    assert rules(judged(history, (ref, made))) == [("append-only", made)]


def test_a_secret_in_the_index_of_a_snapshot_is_found() -> None:
    history = grown()
    objects, ref = history.objects, layout.snapshot_prefix(RUN) + "01JKXYZ0000000000000000000"
    index = objects.write_commit(objects.write_tree({"staged/a": TOKEN.encode()}), "index\n")
    tree = objects.write_tree({"a": b"1"})
    made = objects.write_commit(tree, "work tree\n", history.run_tip, index)

    assert rules(judged(history, (ref, made))) == [("secret", made)]


def test_a_branch_of_a_fan_out_is_linked_too() -> None:
    history = grown()
    ref = layout.branch_ref(RUN, "split@1/api")
    text = f"fabro({RUN}): api (success)\n\nFabro-Run: {RUN}\nFabro-Completed: 1\n"
    text += f"Fabro-Checkpoint: {ABSENT}\nFabro-Visit: 1\nFabro-Branch: split@1/api\n"
    tree = history.objects.write_tree({"a": b""})
    forged = history.objects.write_commit(tree, text, history.run_tip)
    history.stand()

    assert rules(judged(history, (ref, forged))) == [("link", forged)]


# Notes ---------------------------------------------------------------------------------------


def _notes(history: History, **texts: str) -> Oid:
    """A commit of notes: ``a<object>="text"``."""
    files = {f"{name[1:3]}/{name[3:]}": text.encode() for name, text in texts.items()}
    return history.objects.write_commit(history.objects.write_tree(files), "notes\n")


def test_notes_name_what_the_commits_name() -> None:
    history = grown()
    run, meta = history.run_tip, history.meta_tip
    good = _notes(
        history,
        **{
            f"a{run}": f"fine\n\nFabro-Run: {RUN}\nFabro-Checkpoint: {meta}\n",
            f"a{meta}": f"Fabro-Commit: {run}\n",
        },
    )
    first = history.objects.commit(run).parents[0]
    bad = _notes(history, **{f"a{first}": f"fine\n\nFabro-Checkpoint: {meta}\n"})
    person = _notes(history, **{f"a{first}": "well done\n"})

    assert judged(history, (layout.NOTES_REF, good)) == []
    assert judged(history, (layout.NOTES_REF, person)) == []
    assert rules(judged(history, (layout.NOTES_REF, bad))) == [("note", first)]


def test_a_note_is_on_an_object_that_is_there() -> None:
    history = grown()

    found = judged(history, (layout.NOTES_REF, _notes(history, **{f"a{ABSENT}": "text\n"})))

    assert rules(found) == [("note", ABSENT)]


def test_a_note_on_what_an_amend_left_is_none_astray() -> None:
    history = grown()
    left = f"fine\n\nFabro-Run: {RUN}\nFabro-Checkpoint: {history.meta_tip}\n"
    of_no_record = f"fine\n\nFabro-Run: {RUN}\nFabro-Checkpoint: {history.run_tip}\n"

    assert judged(history, (layout.NOTES_REF, _notes(history, **{f"a{ABSENT}": left}))) == []
    found = judged(history, (layout.NOTES_REF, _notes(history, **{f"a{ABSENT}": of_no_record})))
    assert rules(found) == [("note", ABSENT)]


def test_notes_of_others_are_not_lost() -> None:
    history = grown()
    history.objects.refs[layout.NOTES_REF] = _notes(history, **{f"a{history.run_tip}": "one\n"})
    other = _notes(history, **{f"a{history.meta_tip}": "two\n"})

    assert rules(judged(history, (layout.NOTES_REF, other))) == [("append-only", other)]


def test_nothing_of_a_finding_can_order_a_terminal_about() -> None:
    history = grown()
    history.by_hand("by hand\n", {"\x1b]0;x\x07/.git": b"", "\u202e": TOKEN.encode()})

    found = judged(history)

    assert {one.rule for one in found} == {"tree", "secret"}
    assert all(one.message.isascii() and one.message.isprintable() for one in found)


def test_objects_of_another_kind_are_findings_and_no_errors() -> None:
    history = grown()
    blob = history.objects.write("blob", b"text")

    for ref in (history.run_ref, history.meta_ref, layout.NOTES_REF, layout.lease_ref(RUN)):
        assert judged(history, (ref, blob)), ref
    assert isinstance(history.objects, Objects)
