"""Masking of secrets: which values they are, how they look, and what stands in their place.

Known values, tokens of known shapes and what the user's patterns match are found each for itself;
where they touch they are one stretch, and each stretch becomes ``***``. No match depends on
another, so a stream that is masked in pieces gives the bytes that masking the whole would give.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import quote, quote_from_bytes, quote_plus

from git_fabro.errors import RequestError
from git_fabro.workflow.state import Json

MASKED = b"***"

#: A known value shorter than this is not looked for: it would turn up everywhere.
SHORTEST_BYTES = 6

#: How far a token's shape looks from where it begins; the last two may be much longer.
_REACH, _JWT_REACH, _PEM_REACH = 8 * 1024, 40 * 1024, 128 * 1024
#: A line longer than this is given to the user's patterns in pieces.
_PIECE = 64 * 1024
#: Bytes before a place that decide whether something begins there (an id has 64 characters).
_CONTEXT = 72
_LINE_END = 10
#: Values up to this length are told by their prefixes, longer ones by looking for their head.
_HEAD = 64

# Letters before a token that are no part of it end an escape: ``\\n``, ``%3D``, a colour.
_AFTER_ESCAPE = rb"(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|(?<=[0-9\[]m)"
_WORD = rb"(?:(?<![A-Za-z0-9])|" + _AFTER_ESCAPE + rb")"
_AUTHORIZATION = rb"(?:(?<=uthorization: )|(?<=UTHORIZATION: ))"
_PEM = rb"(?:(?<=PRIVATE KEY)|(?<=PRIVATE KEY BLOCK))-----"
# No character of JSON's own structure: a key without its end must not swallow what follows it.
_PEM += rb"[^-\"{}]{0,16384}+(?:-(?!----)[^-\"{}]{0,16384}+){0,6}+"

#: What tokens begin with, and the whole of them; a group, where there is one, is what is masked.
_SHAPES = {
    "AKIA ASIA": _WORD + rb"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])",
    "ghp_ gho_ ghs_ ghu_ ghr_": rb"gh[posur]_[A-Za-z0-9]{20,512}",
    "github_pat_": rb"github_pat_[A-Za-z0-9_]{20,512}",
    "glpat-": rb"glpat-[A-Za-z0-9_.-]{16,512}",
    "xox": rb"xox[a-z]-[A-Za-z0-9-]{10,512}",
    "sk_live_ rk_live_": rb"[sr]k_live_[A-Za-z0-9]{10,512}",
    "sk-": _WORD + rb"sk-(?:(?:ant|proj|svcacct|admin)-[A-Za-z0-9_-]{16,512}|[A-Za-z0-9]{20,512})",
    "AIza": _WORD + rb"AIza[A-Za-z0-9_-]{30,64}",
    "npm_": _WORD + rb"npm_[A-Za-z0-9]{30,64}",
    "pypi-AgEI": rb"pypi-AgEI[A-Za-z0-9_-]{16,4096}",
    "eyJ": rb"(?:(?<![A-Za-z0-9_-])|" + _AFTER_ESCAPE + rb")eyJ[A-Za-z0-9_-]{8,8000}+"
    rb"\.[A-Za-z0-9_-]{0,8000}+\.[A-Za-z0-9_-]{1,8000}+(?:\.[A-Za-z0-9_-]{1,8000}+){0,2}+",
    "Bearer bearer BEARER": _AUTHORIZATION
    + rb"(?i:bearer)\s{1,4}([^\s\"'`\\<>{}]{6,4096})"
    + rb"|(?i:bearer)\s{1,4}([A-Za-z0-9._~+/=-]{16,4096})",
    "Basic basic BASIC": _AUTHORIZATION + rb"(?i:basic)\s{1,4}([A-Za-z0-9+/=]{8,4096})",
    "://": rb"://[^\s/:@?#\"'<>]{0,256}+:([^\s/@?#\"'<>]{1,256}+)@",
    "-----BEGIN": rb"-----BEGIN[A-Z0-9 ]{1,60}+" + _PEM + rb"(?:-----END[A-Z0-9 ]{1,60}+-----)?",
}
_TOKENS = tuple(
    (anchor.encode(), re.compile(shape))
    for anchors, shape in _SHAPES.items()
    for anchor in anchors.split()
)
_ANY_ANCHOR = re.compile(b"|".join(re.escape(anchor) for anchor, _ in _TOKENS))
_SCHEME_AT_END = re.compile(rb"(?i:bearer|basic)\s{1,4}\Z")
_PEM_AT_END = re.compile(
    rb"-----BEGIN[A-Z0-9 ]{0,60}+(?:-{0,4}|" + _PEM + rb"(?:-{0,5}|-----[A-Z0-9 ]{0,63}+-{0,4}))\Z"
)

_ID = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}|[0-7][0-9A-HJKMNP-TV-Z]{25}")
_PART_OF_AN_ID = re.compile(rb"[0-9a-f]{1,63}|[0-9A-HJKMNP-TV-Z]{1,25}")
_WORD_TO_THE_END = re.compile(rb"[0-9A-Za-z]{1,64}\Z")
_WORD_FROM_HERE = re.compile(rb"[0-9A-Za-z]{0,65}")

Span = tuple[int, int]


@dataclass(frozen=True)
class Mask:
    """What must not be seen. ``literals``: the known values in all their forms, shortest first."""

    literals: tuple[bytes, ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, values: Iterable[str] = (), patterns: Iterable[str] = ()) -> Mask:
        """A mask for some values, some regular expressions and the usual tokens.

        A pattern sees one line at a time, without its end.

        Raises:
            RequestError: a pattern is no regular expression.
        """
        literals = {form for value in values for form in _forms(value)}
        return cls(
            tuple(sorted(literals, key=len)), tuple(_compiled(pattern) for pattern in patterns)
        )

    def data(self, data: bytes) -> bytes:
        spans = self._spans(data, 0)
        return _rendered(data, 0, len(data), spans, -1)[0] if spans else data

    def text(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        masked = self.data(data)
        return text if masked is data else masked.decode("utf-8", "surrogatepass")

    def json(self, value: Json) -> Json:
        """The value with its texts and keys masked; a number that holds a secret becomes a text."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.json(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.json(item) for key, item in value.items()}
        if value is None or isinstance(value, bool):
            return value
        written = json.dumps(value)
        masked = self.text(written)
        return value if masked == written else masked

    def stream(self) -> StreamMask:
        return StreamMask(self)

    def _spans(self, data: bytes, start: int) -> list[Span]:
        """Where something to mask begins at or after start, in no order."""
        spans: list[Span] = []
        for literal in self.literals:
            if len(literal) > len(data) - start:
                break
            at = data.find(literal, start)
            while at >= 0:
                end = at + len(literal)
                if literal not in self._id_like or not _within_an_id(data, at, end):
                    spans.append((at, end))
                at = data.find(literal, at + 1)
        for anchor, shape in _TOKENS if _may_hold_a_token(data, start) else ():
            at = data.find(anchor, start)
            while at >= 0:
                if found := shape.match(data, at):
                    spans.append(found.span(found.lastindex or 0))
                at = data.find(anchor, at + 1)
        if self.patterns:
            spans.extend(self._pattern_spans(data, start))
        return spans

    def _pattern_spans(self, data: bytes, start: int) -> Iterator[Span]:
        for begin, end in _pieces(data, start):
            line = data[begin:end].rstrip(b"\r\n")
            text = line.decode("utf-8", "surrogateescape")
            for pattern in self.patterns:
                for found in pattern.finditer(text):
                    if found.end() > found.start():
                        first = begin + _byte_length(text[: found.start()])
                        yield first, first + _byte_length(found.group())

    def _settled(self, data: bytes, start: int) -> int:
        """The place up to which more data cannot change what is masked."""
        settled = min(_tokens_open_from(data, start), self._literals_open_from(data, start))
        if not self.patterns:
            return settled
        whole = start
        for begin, end in _pieces(data, start):
            if end > settled or not (data[end - 1] == _LINE_END or end - begin == _PIECE):
                break
            whole = end
        return whole

    def _literals_open_from(self, data: bytes, start: int) -> int:
        size = len(data)
        found = size
        for length in range(min(_HEAD - 1, size - start), 0, -1):
            if data[size - length :] in self._prefixes:
                found = size - length
                break
        for literal in self._long:
            at = data.find(literal[:_HEAD], max(start, size - len(literal) + 1))
            while at >= 0 and not literal.startswith(data[at:]):
                at = data.find(literal[:_HEAD], at + 1)
            found = min(found, at) if at >= 0 else found
        if self._id_like and (word := _WORD_TO_THE_END.search(data, max(start, size - _HEAD))):
            for literal in self._id_like:
                at = data.find(literal, word.start())
                found = min(found, at) if at >= 0 else found
        return found

    @cached_property
    def _id_like(self) -> frozenset[bytes]:
        return frozenset(one for one in self.literals if _PART_OF_AN_ID.fullmatch(one))

    @cached_property
    def _long(self) -> tuple[bytes, ...]:
        return tuple(literal for literal in self.literals if len(literal) > _HEAD)

    @cached_property
    def _prefixes(self) -> frozenset[bytes]:
        heads = [
            literal[:_HEAD] for literal in (*self.literals, *(anchor for anchor, _ in _TOKENS))
        ]
        return frozenset(head[:length] for head in heads for length in range(1, len(head)))


@dataclass(slots=True)
class StreamMask:
    """Masks a stream in pieces; what is given out so far never holds a part of a secret."""

    mask: Mask
    _data: bytes = b""
    _from: int = 0  # what of the data precedes this has been given out
    _end: int = -1  # of the last masked stretch, which may reach beyond what was given out
    _fresh: list[bytes] = field(default_factory=list)
    _fresh_bytes: int = 0

    def feed(self, chunk: bytes) -> bytes:
        """What can be shown, now that these bytes have come."""
        self._fresh.append(chunk)
        self._fresh_bytes += len(chunk)
        # Looking at all that is held for each byte that arrives would make a long token quadratic.
        if self._fresh_bytes * 4 < len(self._data) - self._from and b"\n" not in chunk:
            return b""
        data = self._taken()
        return self._given(data, self.mask._settled(data, self._from))

    def finish(self) -> bytes:
        """The rest, masked as it is."""
        data = self._taken()
        return self._given(data, len(data))

    def _taken(self) -> bytes:
        data = b"".join((self._data, *self._fresh))
        self._fresh, self._fresh_bytes, self._data = [], 0, data
        return data

    def _given(self, data: bytes, settled: int) -> bytes:
        spans = self.mask._spans(data, self._from)
        shown, end = _rendered(data, self._from, settled, spans, self._end)
        dropped = max(0, settled - _CONTEXT)
        self._data, self._from, self._end = data[dropped:], settled - dropped, end - dropped
        return shown


def _rendered(data: bytes, start: int, stop: int, spans: list[Span], end: int) -> tuple[bytes, int]:
    """Data from start to stop with the spans that begin there replaced; where the last one ends.

    ``end`` is where the last span before these ended: one that touches it needs no second mark.
    """
    parts = []
    for begin, finish in sorted(spans):
        if begin >= stop:
            break
        if begin > end:
            parts += [data[max(start, end) : begin], MASKED]
        end = max(end, finish)
    parts.append(data[max(start, end) : stop])
    return b"".join(parts), end


def _may_hold_a_token(data: bytes, start: int) -> bool:
    # One search beats many on a short text; on a long one it is the other way round.
    return len(data) - start > 256 or _ANY_ANCHOR.search(data, start) is not None


def _tokens_open_from(data: bytes, start: int) -> int:
    """Where the first token begins that more data could make, or make longer."""
    size = len(data)
    near = max(start, size - _JWT_REACH)
    # Tokens hold no white space, but for the two that are looked at by themselves below.
    run = max(near, *(data.rfind(space, near) + 1 for space in (b"\n", b" ", b"\t", b"\r")))
    places = [data.find(b"eyJ", run)]
    if begin := _ANY_ANCHOR.search(data, max(run, size - _REACH)):
        places.append(begin.start())
    if scheme := _SCHEME_AT_END.search(data, max(near, run - 10), run):
        places.append(scheme.start())
    block = data.rfind(b"-----BEGIN", max(start, size - _PEM_REACH))
    if block >= 0 and _PEM_AT_END.match(data, block):
        places.append(block)
    return min((place for place in places if place >= 0), default=size)


def _within_an_id(data: bytes, start: int, end: int) -> bool:
    """Whether a match is only a part of an object id or a ULID, which must stay what they are."""
    before = _WORD_TO_THE_END.search(data, max(0, start - _HEAD), start)
    first = before.start() if before else start
    last = _WORD_FROM_HERE.match(data, end)
    word = data[first : last.end() if last else end]
    return len(word) > end - start and _ID.fullmatch(word) is not None


def _pieces(data: bytes, start: int) -> Iterator[Span]:
    """Lines with their ends, from start on; one that is too long comes in pieces."""
    while start < len(data):
        line = data.find(b"\n", start, start + _PIECE) + 1
        end = line or min(start + _PIECE, len(data))
        yield start, end
        start = end


def _byte_length(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as exc:
        raise RequestError(
            f"fabro.secrets.pattern is no regular expression: {pattern!r}: {exc}",
            hint="git config --get-all fabro.secrets.pattern",
        ) from exc


def _forms(value: str) -> Iterator[bytes]:
    """Every spelling under which a value is looked for."""
    lines = {line.strip() for line in value.splitlines()}
    # A line of dashes in a longer text says nothing, and would be found in every table.
    texts = {value, value.strip(), *(line for line in lines if len(set(line)) > 1)}
    for text in texts:
        written = {text.encode("utf-8", "surrogatepass")}
        if any("\ud800" <= character <= "\udfff" for character in text):
            # A byte of the environment that is no UTF-8 comes as one of these.
            written.add(text.encode("utf-8", "surrogateescape"))
        for ascii_only in (True, False):
            quoted = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
            written.add(quoted.encode("utf-8", "surrogatepass"))
        for raw in written:
            if len(raw) >= SHORTEST_BYTES:
                yield raw
                yield from _url_forms(raw)
                yield from _base64_forms(raw)


def _url_forms(raw: bytes) -> Iterator[bytes]:
    for form in (quote_from_bytes(raw, safe=""), quote(raw, safe="/"), quote_plus(raw)):
        yield form.encode()
        yield re.sub(r"%[0-9A-F]{2}", lambda found: found.group().lower(), form).encode()


def _base64_forms(raw: bytes) -> Iterator[bytes]:
    """What base64 makes of the bytes anywhere in a text, less what their neighbours change."""
    for offset, first in ((0, 0), (1, 2), (2, 3)):
        encoded = base64.b64encode(bytes(offset) + raw)
        core = encoded[first : (offset + len(raw)) * 8 // 6]
        yield core
        yield core.translate(bytes.maketrans(b"+/", b"-_"))
    yield base64.b64encode(raw).rstrip(b"=")
    yield base64.urlsafe_b64encode(raw).rstrip(b"=")


_SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKENS?|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|PASS|PWD|CREDENTIALS?|AUTH|APIKEYS?"
    r"|(?:API|PRIVATE|ACCESS|SIGNING|ENCRYPTION)_KEYS?)(?:_|$)"
)
#: Last words of names that say where or how a secret is kept.
_ABOUT_A_SECRET = re.compile(
    r"(?:^|_)(?:SOCK|SOCKET|FILE|PATH|DIR|URL|URI|HOST|PORT|TYPE|METHOD|HELPER|TIMEOUT|TTL|LIMIT"
    r"|COUNT|MAX|MIN|ENABLED|DISABLED|REQUIRED|NAME|USER|COMMAND|CMD|PROMPT)$|^PWD$"
)
_COMMON_VALUE = re.compile(
    r"(?i:enabled|disabled|default|required|optional|always|nothing|unset|password|secret|changeme"
    r"|example|postgres)|\d{1,7}"
)
_PATH = re.compile(
    r"(?:~|\.{1,2}|/(?:bin|dev|etc|home|lib|media|mnt|nix|opt|private|proc|root|run|sbin|snap|srv|sys"
    r"|tmp|usr|var|Applications|Library|Users|Volumes))(?:/[\w.@+ -]*)*"
)


def secret_values(environment: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and values of the variables that are named like secrets, sorted by name.

    A name counts by its words between underscores: ``GH_TOKEN``, not ``TOKENIZERS_PARALLELISM``;
    not ``PWD``, nor one whose last word says something about a secret, as ``SSH_AUTH_SOCK`` does.
    A value does not count if it is shorter than six bytes, a number of fewer than eight digits, one
    character repeated, a path below a usual folder, or a common word (``default``, ``changeme``):
    masking those would hide ordinary text and protect nothing.
    """
    names = tuple(
        name
        for name, value in sorted(environment.items())
        if _is_secret_name(name) and _is_telling(value.strip())
    )
    return names, tuple(environment[name] for name in names)


def _is_secret_name(name: str) -> bool:
    words = re.sub(r"[^A-Z0-9]+", "_", name.upper())
    return bool(_SECRET_NAME.search(words)) and not _ABOUT_A_SECRET.search(words)


def _is_telling(value: str) -> bool:
    size = len(value.encode("utf-8", "surrogatepass"))
    ordinary = _COMMON_VALUE.fullmatch(value) or _PATH.fullmatch(value)
    return size >= SHORTEST_BYTES and len(set(value)) > 1 and not ordinary
