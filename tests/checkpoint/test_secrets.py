"""What is masked, and that nothing of it shows through wherever a stream is cut."""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_fabro.checkpoint.secrets import Mask, secret_values
from git_fabro.errors import RequestError

SECRET = "Tr0ub4dor&3/x?"
HEX = "0123456789abcdef0123456789abcdef01234567"
SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
ULID = "01JKXYZ3F9QWABCDEF12345678"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLWJ5dGVz"
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n"
    + "MIIEowIBAAKCAQEA7\n" * 20
    + "-----END RSA PRIVATE KEY-----"
)

TOKENS = {
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "aws-session": "ASIAIOSFODNN7EXAMPLE",
    "github": "ghp_" + "a1B2" * 9,
    "github-oauth": "gho_" + "a1B2" * 9,
    "github-server": "ghs_" + "a1B2" * 9,
    "github-user": "ghu_" + "a1B2" * 9,
    "github-refresh": "ghr_" + "a1B2" * 9,
    "github-fine": "github_pat_" + "11ABCDE_" * 8,
    "gitlab": "glpat-" + "x_Y-9" * 4,
    "slack": "xoxb-123456789012-abcdefABCDEF",
    "stripe": "sk_live_" + "4eC39HqLyjWD" * 2,
    "openai": "sk-" + "T3Bl" * 12,
    "openai-project": "sk-proj-" + "T3-l_" * 12,
    "anthropic": "sk-ant-api03-" + "a_B-9" * 12,
    "google": "AIza" + "SyA1_-b" * 5,
    "npm": "npm_" + "a1B2" * 9,
    "pypi": "pypi-AgEI" + "cHlwaS5vcmc" * 5,
    "jwt": JWT,
    "pem": PEM,
}
BORDERS = ("", " ", "=", '"', "\n", "\\n", ":", "/", "\x1b[32m", "key%3D")


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_the_usual_tokens_are_masked(token: str, border: str) -> None:
    assert Mask.of().text(f"see {border}{token} there") == f"see {border}*** there"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("authorization: bearer abcdef", "authorization: bearer ***"),
        ("-H 'Bearer 0123456789abcdefg'", "-H 'Bearer ***'"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic ***"),
        ("https://user:p4ss@host/x", "https://user:***@host/x"),
        ("https://:p4ss@host/x", "https://:***@host/x"),
        ("redis://u:a:b@h https://v:w@i", "redis://u:***@h https://v:***@i"),
        (f"a{JWT[:30]}", f"a{JWT[:30]}"),
        (PEM[:60], "***"),
        ('{"a":"' + PEM[:60].replace("\n", "\\n") + '","b":1}', '{"a":"***","b":1}'),
        ('{"a":"Authorization: Bearer abcdef","b":1}', '{"a":"Authorization: Bearer ***","b":1}'),
        (
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\nabc\n-----END PGP PRIVATE KEY BLOCK-----\n",
            "***\n",
        ),
    ],
)
def test_what_surrounds_a_token_stays(text: str, masked: str) -> None:
    assert Mask.of().text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        HEX,
        SHA256,
        ULID,
        f"commit {HEX} tree:{SHA256} run {ULID}.",
        "task-management-for-the-whole-team-of-people",
        "sk-folding-cube-and-another-name",
        "npm_config_registry npm_lifecycle_event",
        "uses a Bearer token for everybody",
        "see https://example.com:8080/a@b and git@host:path",
        "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
        "keyJohn.was.here and eyJ",
        "AKIAIOSFODNN7EXAMPLEX2",
        "",
        "\ud800 and \udcff",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert Mask.of([SECRET], ["never-[0-9]+"]).text(text) == text


@pytest.mark.parametrize("value", ["abcdef", "123456", "01234567", "0123456789abcdef", "JKXYZ3"])
def test_a_value_within_an_id_leaves_the_id_whole(value: str) -> None:
    text = f"{HEX} {SHA256} {ULID} {value} x{value}x"

    masked = Mask.of([value]).text(text)

    assert masked == f"{HEX} {SHA256} {ULID} *** x***x"


def test_a_value_that_looks_like_an_id_is_still_a_secret() -> None:
    assert Mask.of([HEX]).text(f"{HEX}, {HEX}0") == "***, ***0"


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        quote(SECRET, safe=""),
        quote(SECRET),
        quote(SECRET, safe="").replace("%3F", "%3f").replace("%2F", "%2f"),
        json.dumps(SECRET)[1:-1],
        base64.b64encode(SECRET.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
    ],
)
def test_a_value_is_masked_in_each_of_its_forms(form: str) -> None:
    assert Mask.of([SECRET]).text(f"<{form}>") == "<***>"


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("after", ["", "x", "xy", "xyz"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_base64_is_masked_wherever_the_value_stands_in_it(before, after, encode) -> None:
    text = encode(f"{before}{SECRET}{after}".encode()).decode()

    masked = Mask.of([SECRET]).text(text)

    assert "***" in masked
    # At most what the neighbours change of a group of four stays on either side.
    left, right = masked.split("***")
    assert len(left) <= len(before) * 2 + 1
    assert len(right.rstrip("=")) <= len(after) * 2 + 1


@pytest.mark.parametrize(
    ("value", "text", "masked"),
    [
        ("12345", "12345", "12345"),
        ("first line\nsecond\n\nab", "a second and a first line", "a *** and a ***"),
        ("----------\nsecond", "---------- x", "---------- x"),
        ("  padded-value  ", "padded-value", "***"),
        ('with"quote', json.dumps('with"quote'), '"***"'),
        ("caffè-latte", json.dumps("caffè-latte"), '"***"'),
        ("aabaabaa", "aabaabaabaabaa", "***"),
        ("sécrèt", "sécrèt", "***"),
    ],
)
def test_which_parts_of_a_value_are_looked_for(value: str, text: str, masked: str) -> None:
    assert Mask.of([value]).text(text) == masked


def test_values_that_touch_are_one_mark() -> None:
    assert Mask.of(["abcdefg", "efghijk"]).text("xabcdefghijkx abcdefgefghijkx") == "x***x ***x"


def test_bytes_that_are_no_text_are_masked_and_kept() -> None:
    value = b"p\xffssword".decode("utf-8", "surrogateescape")

    assert Mask.of([value]).data(b"\xfe p\xffssword \x00") == b"\xfe *** \x00"


def test_patterns_see_a_line_at_a_time() -> None:
    mask = Mask.of(patterns=["^id=.*$", "[äö]+x", "y*"])

    assert mask.text("id=1\r\n id=2\nöäx!\nid=3") == "***\r\n id=2\n***!\n***"


def test_a_pattern_that_does_not_compile_is_refused() -> None:
    with pytest.raises(RequestError, match=r"fabro\.secrets\.pattern"):
        Mask.of(patterns=["("])


def test_json_is_masked_in_keys_values_and_numbers() -> None:
    mask = Mask.of(["1234567890", "hunter-2"])

    masked = mask.json(
        {"hunter-2": [1234567890, 12, True, None, 1.5, {"a": "x hunter-2"}], "b": {}}
    )

    assert masked == {"***": ["***", 12, True, None, 1.5, {"a": "x ***"}], "b": {}}


@pytest.mark.parametrize(
    ("name", "value", "counts"),
    [
        ("GH_TOKEN", "abcdef", True),
        ("API_KEY", "abcdef", True),
        ("OPENAI_APIKEY", "abcdef", True),
        ("DB_PASSWORD", "hunter22", True),
        ("MYSQL_PWD", "hunter22", True),
        ("SECRET", "abcdef", True),
        ("aws_secret_access_key", "/bPxRfiCYEXAMPLEKEY", True),
        ("SSH_PRIVATE_KEY", "a\nbcdef", True),
        ("NPM_AUTH", "abcdef", True),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/key.json", False),
        ("SSH_AUTH_SOCK", "unusual-name", False),
        ("TOKENIZERS_PARALLELISM", "abcdef", False),
        ("PWD", "unusual-name", False),
        ("OLDPWD", "unusual-name", False),
        ("GIT_ASKPASS", "askpass-program", False),
        ("MONKEY", "abcdef", False),
        ("TOKEN_FILE", "abcdef", False),
        ("TOKEN", "abcde", False),
        ("TOKEN", "1234567", False),
        ("TOKEN", "12345678", True),
        ("TOKEN", "xxxxxxxx", False),
        ("TOKEN", "Default", False),
        ("TOKEN", "~/.token", False),
        ("TOKEN", "  ab  ", False),
        ("TOKEN", "", False),
    ],
)
def test_which_variables_are_secrets(name: str, value: str, counts: bool) -> None:
    assert secret_values({name: value}) == (((name,), (value,)) if counts else ((), ()))


def test_secret_variables_come_sorted_by_name() -> None:
    environment = {"B_TOKEN": "second", "HOME": "/home/me", "A_TOKEN": "firstly"}

    assert secret_values(environment) == (("A_TOKEN", "B_TOKEN"), ("firstly", "second"))


LONG = "".join(chr(33 + n * 7 % 90) for n in range(200))
VALUES = [SECRET, "abcdef", "aaaaaa", "cafe01", LONG, "one\ntwo and three"]
PATTERNS = ["id=[0-9]+", "^ab.*z$"]
FRAGMENTS = st.sampled_from(
    [
        *TOKENS.values(),
        *VALUES,
        *("Authorization: ", "Bearer ", "bearer", "Basic ", "://", "u:pw@h", "https:", "basic\t\t"),
        *("sk-", "sk-ant-", "eyJ", "-----BEGIN", " PRIVATE KEY", "-----", "-----END", "AKIA"),
        *(HEX, HEX[:20], ULID, ULID[:7], SHA256, "0", "a", "ab", "z", "id=", "17", "id=1"),
        *(" ", "\n", "\r\n", "-", ".", '"', "\\n", "é", "x" * 70, LONG[:100], "***"),
        quote(SECRET, safe=""),
        base64.b64encode(SECRET.encode()).decode(),
    ]
)


@given(st.lists(FRAGMENTS, max_size=12), st.data(), st.sampled_from([[], PATTERNS]))
def test_a_stream_in_pieces_is_masked_like_the_whole(fragments, data, patterns) -> None:
    whole = "".join(fragments).encode()
    cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=8))
    mask = Mask.of(VALUES, patterns)

    stream = mask.stream()
    edges = sorted({0, *cuts, len(whole)})
    shown = [stream.feed(whole[a:b]) for a, b in pairwise(edges)]
    shown.append(stream.finish())

    assert b"".join(shown) == mask.data(whole)


@given(st.lists(FRAGMENTS, max_size=6), st.sampled_from([[], PATTERNS]))
def test_a_stream_byte_by_byte_is_masked_like_the_whole(fragments, patterns) -> None:
    whole = "".join(fragments).encode()
    mask = Mask.of(VALUES, patterns)

    stream = mask.stream()
    shown = [stream.feed(bytes([byte])) for byte in whole]
    shown.append(stream.finish())

    assert b"".join(shown) == mask.data(whole)


@given(st.text(min_size=6), st.text(), st.text(), st.integers(1, 20))
def test_no_value_survives(value: str, before: str, after: str, size: int) -> None:
    written = value.encode("utf-8", "surrogatepass")
    whole = b"".join(
        (before.encode("utf-8", "surrogatepass"), written, after.encode("utf-8", "surrogatepass"))
    )
    stream = Mask.of([value]).stream()

    shown = b"".join(stream.feed(whole[at : at + size]) for at in range(0, len(whole), size))
    shown += stream.finish()

    assert written not in shown.replace(b"***", b"")


@pytest.mark.parametrize("text", ["Continue? [y/N] ", "a line\n", "12 tests passed."])
def test_ordinary_output_is_not_held_back(text: str) -> None:
    assert Mask.of([SECRET]).stream().feed(text.encode()) == text.encode()


@pytest.mark.parametrize(
    "hostile",
    ["sk-", "eyJ", "-----BEGIN PRIVATE KEY-----", "://", "aaaaaa", "Bearer ", "gh", "eyJaaaaaaaa."],
)
def test_hostile_text_is_masked_like_the_whole(hostile: str) -> None:
    whole = (hostile * (200_000 // len(hostile))).encode()
    mask = Mask.of(["aaaaaa"])

    stream = mask.stream()
    shown = [stream.feed(whole[at : at + 4096]) for at in range(0, len(whole), 4096)]
    shown.append(stream.finish())

    assert b"".join(shown) == mask.data(whole)
