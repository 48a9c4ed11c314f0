"""What .NET wrote and read, recorded: `tests/golden/writing.jsonl` and `reading.jsonl`."""

import json
from pathlib import Path
from typing import Any

import pytest

from chathistory_core.errors import DecodeError, EncodeError
from chathistory_core.formats import chat_message
from chathistory_core.messages import AIContent, ChatMessage

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def rows(name: str) -> list[Any]:
    lines = (GOLDEN / name).read_text("utf-8").splitlines()
    return [pytest.param(row, id=row["case"]) for row in map(json.loads, lines) if row.keys() & {"agents", "input"}]


def texts(text: str) -> list[str]:
    """The message, or those of a list, as they stand."""
    if not text.startswith("["):
        return [text]
    return [json.dumps(item, ensure_ascii=False, separators=(",", ":")) for item in json.loads(text)]


def read(text: str) -> list[ChatMessage]:
    return [chat_message.decode(one.encode())[0] for one in texts(text)]


@pytest.mark.parametrize("row", rows("writing.jsonl"))
def test_what_dotnet_wrote_and_nobody_changed_goes_back_byte_for_byte(row: dict[str, str]) -> None:
    loaded = chat_message.load(row["agents"])
    kept = [message.origin.payload.decode() for message in loaded if message.origin is not None]
    assert kept == texts(row["agents"])
    assert loaded == read(row["agents"])


BUILT_OTHERWISE = {
    "message all fields": ("123456+09:00", "1234567+09:00"),  # times to the microsecond
    "hostedFile": ("123456+09:00", "1234567+09:00"),
    "message lone high surrogate": (
        "a\ufffdz",
        "a\\uFFFDz",
    ),  # .NET's own replacement; read again it is written as ours
    "functionResult element": ("2.5}", "2.50}"),  # literals of numbers
}


@pytest.mark.parametrize("row", rows("writing.jsonl"))
def test_built_anew_it_is_the_text_that_dotnet_writes(row: dict[str, str]) -> None:
    built = [chat_message.encode(message).decode() for message in read(row["agents"])]
    text = f"[{','.join(built)}]" if row["agents"].startswith("[") else built[0]
    if row["case"] == "functionCall argument kinds":  # literals of numbers
        assert list(in_order(json.loads(text))) == list(in_order(json.loads(row["agents"])))
    else:
        ours, theirs = BUILT_OTHERWISE.get(row["case"], ("", ""))
        assert text == row["agents"].replace(theirs, ours)


def in_order(value: Any) -> Any:
    """Every key and scalar, in order."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from in_order(item)
    elif isinstance(value, list):
        for item in value:
            yield from in_order(item)
    else:
        yield value


@pytest.mark.parametrize("face", ["web", "aspnet"])
@pytest.mark.parametrize("row", rows("writing.jsonl"))
def test_what_a_client_posts_and_a_server_answers_is_the_same_message(row: dict[str, str], face: str) -> None:
    expected = read(row["agents"])
    if row["case"] == "functionResult contents":  # nulls inside a result are part of it
        expected = [chat_message.decode(with_nulls(row["agents"], row[face]))[0]]
    assert read(row[face]) == expected
    loaded = chat_message.load(row[face])
    assert loaded == expected
    assert all(message.origin is not None for message in loaded)


def with_nulls(text: str, face: str) -> bytes:
    message = json.loads(text)
    message["contents"][0]["result"] = json.loads(face)["contents"][0]["result"]
    return json.dumps(message).encode()


REFUSED_BY_US = {
    "message null": "a message is a JSON object",
    "message string": "a message is a JSON object",
    "message array": "a message is a JSON object",
    "contents object": "`contents` is no array",
    "contents string": "`contents` is no array",
    "role null": "`role` is missing",
    "role empty": "`role` is blank",
    "role number": "`role` is no text",
    "role object": "`role` is no text",
    "createdAt epoch number": "`createdAt` is no text",
    "createdAt leap second": "`createdAt` is no time",
    "createdAt empty": "`createdAt` is no time",
    "24:00": "`createdAt` is no time",
    "messageId number": "`messageId` is no text",
    "additionalProperties array": "`additionalProperties` is no object",
    "trailing comma": "no JSON at character 54",
    "comment": "no JSON at character 43",
}

NOT_WRITTEN = {
    "functionCall arguments numbers": "message 0/contents/0/arguments cannot be stored: NaN or infinity",  # 1E400
    "lone surrogate escape": "message 0/contents/0/text cannot be stored: a lone surrogate",
}

KEPT_WHOLE = {"additionalProperties key case twice"}  # .NET drops one of two keys that differ in case


@pytest.mark.parametrize("row", rows("reading.jsonl"))
def test_what_dotnet_reads_we_read_to_the_same_value(row: dict[str, str]) -> None:
    if row["case"] in REFUSED_BY_US:
        with pytest.raises(DecodeError) as refused:
            chat_message.decode(row["input"].encode())
        assert refused.value.reason == REFUSED_BY_US[row["case"]]
        return
    (message,) = chat_message.decode(row["input"].encode())
    if "agents" in row and row["case"] not in KEPT_WHOLE:
        assert bare(message) == bare(chat_message.decode(row["agents"].encode())[0])


def bare(message: ChatMessage) -> ChatMessage:
    """The message without its unknown members, which .NET drops."""

    def without(content: Any) -> Any:
        call = getattr(content, "tool_call", None)
        change = {"extra": {}} if call is None else {"extra": {}, "tool_call": without(call)}
        return content.model_copy(update=change) if isinstance(content, AIContent) else content

    return message.model_copy(update={"extra": {}, "contents": [without(content) for content in message.contents]})


@pytest.mark.parametrize("row", [row for row in rows("reading.jsonl") if row.id not in REFUSED_BY_US])
def test_what_dotnet_refuses_is_never_what_we_write(row: dict[str, str]) -> None:
    (message,) = chat_message.load(row["input"])
    if row["case"] in NOT_WRITTEN:
        with pytest.raises(EncodeError) as refused:
            chat_message.encode(message)
        assert str(refused.value) == NOT_WRITTEN[row["case"]]
        assert message.origin is None or "agents" in row
        return
    written = chat_message.encode(message)
    assert chat_message.decode(written) == (message,)
    if "agents_error" in row:
        assert message.origin is None
        assert written.decode() != row["input"]
