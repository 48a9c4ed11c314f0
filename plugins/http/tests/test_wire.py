"""The wire contract: what is written is read as the same, and nothing else is read."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chathistory_core import (
    BackendError,
    BackendStateError,
    BackendUnavailableError,
    ChatHistoryError,
    ConfigurationError,
    Conversation,
    ConversationSummary,
    CorruptRecordError,
    EncodeError,
    EpochChangedError,
    InvalidKeyError,
    Limits,
    Order,
    Record,
    RevisionConflictError,
    StoredRecord,
    TooLargeError,
    TurnConflictError,
    Written,
    check_key,
)
from chathistory_http.wire import about, headers, keys, percent, problems, queries, records, summaries, times, writes
from chathistory_http.wire.problems import PROBLEMS, ProblemError

generated = settings(deadline=None)  # machines that run tests are at times too busy for one

NOW = datetime(2026, 11, 30, 18, 39, 22, 123456, tzinfo=UTC)


def is_key(text: str) -> bool:
    try:
        return check_key(text) == text
    except InvalidKeyError:
        return False


SEGMENTS = st.sampled_from(
    ["", ".", "..", "a", "%2F", "%", "+", " ", "é", "日本", "😀", "?", "#", "\\", ":", "*", "\x01"]
)
KEYS = st.one_of(st.text(min_size=1), st.lists(SEGMENTS, min_size=1, max_size=6).map("/".join)).filter(is_key)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
TIMES = st.datetimes(timezones=st.just(UTC))
ESCAPED = st.text('\n"a', min_size=20)
PAYLOADS = st.one_of(
    st.binary(), TEXTS.map(str.encode), ESCAPED.map(str.encode), st.just(b"\0" * 100), st.just(b'{"a":"\\n"}')
)
FORMATS = st.sampled_from(["chat-message", "openai-chat", "chat-message+zstd+aesgcm.k2"])
STORED = st.builds(StoredRecord, PAYLOADS, FORMATS, st.integers(1, 2**53 - 1), TEXTS, TIMES)
SUMMARIES = st.builds(ConversationSummary, KEYS, TEXTS, TEXTS, st.integers(0), TIMES, TIMES)


@generated
@given(KEYS)
def test_every_key_comes_back_from_where_its_conversation_stands(key: str) -> None:
    path, _, query = keys.messages_path(key).partition("?")
    if query:
        assert path == "/chat-history"
        assert queries.read_query(query.encode()) == {"key": key}
    else:
        assert path.isascii()
        assert keys.key_in_path(path.removeprefix("/chat-history/").encode()) == key
        assert not path.endswith("/")
        assert not {"", ".", ".."} & set(path.removeprefix("/").split("/"))


@generated
@given(KEYS, KEYS)
def test_no_two_keys_stand_at_one_place(one: str, other: str) -> None:
    assert (keys.messages_path(one) == keys.messages_path(other)) is (one == other)


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        (b"a", "a"),
        (b"a/", "a"),
        (b"a/b", "a/b"),
        (b"a%2Fb", "a/b"),
        (b"a%2fb/", "a/b"),
        (b"a//", "a/"),
        (b"a+b", "a+b"),
        (b"%E6%97%A5", "日"),
        (b"\xe6\x97\xa5", "日"),
        (b"...", "..."),
        (b"a/.b", "a/.b"),
    ],
)
def test_a_path_names_the_key_that_one_expects(raw: bytes, key: str) -> None:
    assert keys.key_in_path(raw) == key


@pytest.mark.parametrize(
    "raw", [b".", b"..", b"a/..", b"a/%2e%2E/b", b"%2E/a", b"a%2F..", b"%", b"%zz", b"a%f", b"%ff", b"%ED%A0%80"]
)
def test_a_path_that_someone_may_take_in_another_way_names_no_key(raw: bytes) -> None:
    with pytest.raises(ProblemError) as raised:
        keys.key_in_path(raw)
    assert raised.value.status == 400


@generated
@given(TEXTS)
def test_text_comes_back_from_its_percent_encoding(text: str) -> None:
    encoded = percent.encode(text)
    assert percent.decode(encoded) == text
    assert encoded.isascii()
    assert encoded.isprintable()
    assert " " not in encoded


@generated
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_revision_comes_back_from_its_entity_tag(revision: str) -> None:
    etag = headers.write_etag(revision)
    assert headers.read_etag(etag) == revision
    assert headers.read_tags("If-Match", etag) == headers.Tags(any=False, strong=(revision,))


@pytest.mark.parametrize(
    ("value", "tags"),
    [
        ("*", headers.Tags(any=True)),
        (' "a" ', headers.Tags(any=False, strong=("a",))),
        ('"a","b" , W/"c"', headers.Tags(any=False, strong=("a", "b"), weak=("c",))),
        ('""', headers.Tags(any=False)),
        ('"%zz", "a"', headers.Tags(any=False, strong=("a",))),
        ('"a,b"', headers.Tags(any=False, strong=("a,b",))),
    ],
)
def test_entity_tags_are_read_as_http_says(value: str, tags: headers.Tags) -> None:
    assert headers.read_tags("If-Match", value) == tags


@pytest.mark.parametrize("value", ["a", '"a', '"a" "b"', 'w/"a"', "*, *", '"a";'])
def test_what_are_no_entity_tags_is_refused(value: str) -> None:
    with pytest.raises(ProblemError) as raised:
        headers.read_tags("If-Match", value)
    assert raised.value.status == 400


@generated
@given(st.builds(Conversation, KEYS, TEXTS, TEXTS, st.integers(0), TIMES, TIMES, st.lists(STORED).map(tuple)))
def test_a_conversation_comes_back_as_it_was(conversation: Conversation) -> None:
    assert records.read_conversation(records.write_conversation(conversation)) == conversation


def test_of_an_unknown_key_there_is_a_conversation_with_nothing() -> None:
    body = records.write_conversation(Conversation("a"))
    assert json.loads(body) == {
        "key": "a",
        "revision": "",
        "epoch": "",
        "recordCount": 0,
        "createdAt": None,
        "updatedAt": None,
        "records": [],
    }
    assert records.read_conversation(body) == Conversation("a")


@generated
@given(st.lists(st.builds(Record, PAYLOADS, FORMATS, st.none() | st.binary())))
def test_records_come_back_as_they_were(given_records: list[Record]) -> None:
    body = json.loads(records.write_records(given_records))
    assert [records.read_record(value, index) for index, value in enumerate(body["records"])] == given_records


@generated
@given(PAYLOADS)
def test_a_payload_takes_a_third_more_at_most(payload: bytes) -> None:
    without = len(records.write_records([Record(b"", "f")]))
    assert len(records.write_records([Record(payload, "f")])) - without <= len(payload) * 4 / 3 + len("Base64") + 6


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"format": "f"},
        {"format": 1, "payload": ""},
        {"format": "f", "payload": "", "payloadBase64": ""},
        {"format": "f", "payload": {}},
        {"format": "f", "payload": "\ud800"},
        {"format": "f", "payloadBase64": "a"},
        {"format": "f", "payloadBase64": "YQ"},
        {"format": "f", "payloadBase64": "YQ==\n"},
        {"format": "f", "payloadBase64": "é"},
        {"format": "f", "payload": "", "fingerprint": 1},
    ],
)
def test_what_is_no_record_is_refused_and_not_shown(value: object) -> None:
    with pytest.raises(ProblemError) as raised:
        records.read_record(value, 7)
    assert raised.value.status == 422
    assert raised.value.members == {"index": 7}
    assert "record 7" in raised.value.detail


@generated
@given(st.lists(SUMMARIES))
def test_summaries_come_back_as_they_were(given_summaries: list[ConversationSummary]) -> None:
    assert summaries.read_summaries(summaries.write_summaries(given_summaries)) == given_summaries


@generated
@given(st.builds(Written, TEXTS, TEXTS, st.integers(1), st.booleans()), st.booleans())
def test_what_a_write_did_comes_back(written: Written, cleared: bool) -> None:
    assert writes.read_written_body(writes.write_written(written)) == written
    assert writes.read_cleared(writes.write_cleared(cleared=cleared)) is cleared


def test_what_the_service_says_of_itself_comes_back() -> None:
    told = about.About("1.2", Limits(1, 2, 3, 4))
    assert about.read_about(about.write_about(told)) == told


def test_another_contract_is_told_apart() -> None:
    body = about.write_about(about.About("1.2", Limits())).replace(b'"contract":1', b'"contract":2')
    with pytest.raises(ValueError, match="contract 2"):
        about.read_about(body)


READERS: list[Callable[[bytes], object]] = [
    records.read_conversation,
    summaries.read_summaries,
    writes.read_written_body,
    writes.read_cleared,
    about.read_about,
]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "body",
    [b"", b"secret", b"[]", b"{}", b'"secret"', b"[" * 100_000, b'{"records":[{}]}', b'{"summaries":["secret"]}'],
)
def test_another_body_is_refused_and_not_shown(reader: Callable[[bytes], object], body: bytes) -> None:
    with pytest.raises(ValueError) as raised:
        reader(body)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("body_bytes", [1_024, 2**20, 96 * 2**20, 2**30])
def test_a_write_within_the_limits_fits_into_a_body(body_bytes: int) -> None:
    limits = about.limits_within(Limits(), body_bytes)
    worst = Record(b"\xff" * (limits.max_bytes // limits.max_records), "chat-message+zstd+aesgcm.k2", b"f" * 32)
    one = len(records.write_records([worst])) - len(b'{"records":[]}') + 1
    rest = limits.max_bytes % limits.max_records
    assert one * limits.max_records + -(-rest // 3) * 4 + len(b'{"records":[]}') <= body_bytes
    assert limits.max_record_bytes <= limits.max_bytes
    assert limits.turns_kept == Limits().turns_kept


@generated
@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.none() | SUMMARIES,
    st.none() | st.integers(0, 2**53),
    st.sampled_from(["key", "recent"]),
)
def test_a_page_is_asked_for_and_understood(
    prefix: str, after: ConversationSummary | None, limit: int | None, order: Order
) -> None:
    query = queries.write_page_query(prefix, after, limit, order)
    found_prefix, found_after, found_limit, found_order = queries.read_page_query(
        queries.read_query(query.removeprefix("?").encode())
    )
    assert (found_prefix, found_limit, found_order) == (prefix, limit, order)
    assert (None if found_after is None else found_after.key) == (None if after is None else after.key)
    if after is not None and found_after is not None and order == "recent":
        assert found_after.updated_at == after.updated_at


@pytest.mark.parametrize(
    "query",
    [
        b"limit=-1",
        b"limit=",
        b"limit=1.5",
        b"limit=%D9%A1",
        b"limit=" + b"9" * 30,
        b"limit=1&limit=2",
        b"before=1&after=1",
        b"%zz=1",
        b"limit=%ff",
    ],
)
def test_a_query_with_bad_numbers_is_refused(query: bytes) -> None:
    with pytest.raises(ProblemError) as raised:
        queries.read_cursors(queries.read_query(query))
    assert raised.value.status == 400


@pytest.mark.parametrize(
    "query",
    [b"order=odd", b"order=recent&after=a", b"after_updated_at=2026-11-30T18:39:22Z", b"after=a&after_updated_at=x"],
)
def test_a_page_query_that_is_half_is_refused(query: bytes) -> None:
    with pytest.raises(ProblemError) as raised:
        queries.read_page_query(queries.read_query(query))
    assert raised.value.status == 400


def test_times_have_six_digits_and_are_utc() -> None:
    assert times.write_time(NOW) == "2026-11-30T18:39:22.123456Z"
    assert times.write_time(NOW.replace(microsecond=0)) == "2026-11-30T18:39:22.000000Z"
    assert times.write_time(NOW.astimezone(timezone(timedelta(hours=9)))) == "2026-11-30T18:39:22.123456Z"
    with pytest.raises(ValueError, match="offset"):
        times.read_time("2026-11-30T18:39:22")


ERRORS: list[tuple[ChatHistoryError, int]] = [
    (TurnConflictError("k", "t", Written("r", "e", 3)), 409),
    (RevisionConflictError("k"), 412),
    (EpochChangedError("k"), 412),
    (TooLargeError("the write is too large"), 413),
    (InvalidKeyError("the key is too long"), 422),
    (EncodeError("3/contents/0/text", "a lone surrogate"), 422),
]


@pytest.mark.parametrize(("error", "status"), ERRORS, ids=lambda value: type(value).__name__)
def test_an_error_comes_back_as_the_same_error(error: ChatHistoryError, status: int) -> None:
    problem = problems.problem_of(error)
    assert problem.status == status
    body = problems.write_problem(problem)
    found = problems.error_of(status, problems.MEDIA_TYPE, body, key="k", turn_id="t")
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert found.args == error.args


def test_a_store_that_is_not_there_is_told_without_what_it_says_of_itself() -> None:
    problem = problems.problem_of(BackendUnavailableError("10.1.2.3 does not let admin in"))
    assert problem.status == 503
    assert problem.headers == {"Retry-After": "1"}
    body = problems.write_problem(problem)
    assert b"10.1.2.3" not in body
    found = problems.error_of(503, problems.MEDIA_TYPE, body)
    assert isinstance(found, BackendUnavailableError)
    assert found.retryable


@pytest.mark.parametrize(
    "error", [BackendStateError("it is closed at 10.1.2.3"), ConfigurationError("10.1.2.3"), BackendError("x")]
)
def test_other_errors_of_the_store_are_the_services_own_affair(error: ChatHistoryError) -> None:
    problem = problems.problem_of(error)
    assert problem.status == 500
    assert b"10.1.2.3" not in problems.write_problem(problem)


def test_a_record_that_cannot_be_read_is_told_with_its_position() -> None:
    problem = problems.problem_of(CorruptRecordError("k", 7, "no JSON"))
    told = json.loads(problems.write_problem(problem))
    assert (told["status"], told["position"]) == (406, 7)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, ConfigurationError),
        (403, ConfigurationError),
        (408, BackendUnavailableError),
        (413, TooLargeError),
        (429, BackendUnavailableError),
        (500, BackendError),
        (502, BackendUnavailableError),
        (504, BackendUnavailableError),
        (404, BackendError),
        (302, BackendError),
    ],
)
def test_of_another_servers_words_none_goes_on(status: int, kind: type[ChatHistoryError]) -> None:
    for media_type in ("text/html", "application/json", problems.MEDIA_TYPE, None):
        found = problems.error_of(status, media_type, b'{"type":"about:blank","detail":"secret"}')
        assert type(found) is kind
        assert "secret" not in str(found)
        assert str(status) in str(found)


def test_every_problem_has_a_status_and_a_title() -> None:
    for name, (status, title) in PROBLEMS.items():
        told = json.loads(problems.write_problem(ProblemError(name, "why")))
        assert told == {"type": f"urn:chathistory:problem:{name}", "title": title, "status": status, "detail": "why"}
        assert 400 <= status < 600


def test_nothing_of_the_contract_imports_a_client_or_a_server(run_python: Callable[[str], str]) -> None:
    assert (
        run_python(
            "import sys, chathistory_http, chathistory_http.plugin\n"
            "from chathistory_http.wire import about, headers, keys, percent, problems, queries, records\n"
            "from chathistory_http.wire import summaries, writes\n"
            "print(sorted({'httpx', 'fastapi', 'starlette', 'uvicorn'} & set(sys.modules)))"
        )
        == "[]"
    )
