"""How many tokens and bytes a message takes."""

import builtins
import subprocess
import sys
from typing import Any

import pytest
from tiktoken import Encoding

from chathistory_core import estimate_tokens, tiktoken_counter
from chathistory_core.messages import (
    CodeInterpreterToolCallContent,
    CodeInterpreterToolResultContent,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    HostedFileContent,
    McpServerToolCallContent,
    TextReasoningContent,
    ToolApprovalRequestContent,
    UriContent,
    UsageContent,
    UsageDetails,
    WebSearchToolCallContent,
)
from chathistory_core.views.tokens import size

from .messages import USER, call, says, text

PICTURE = DataContent(uri="data:image/png;base64,AAAA")

BYTES = Encoding(
    "bytes",
    pat_str=r"\S+|\s+",
    mergeable_ranks={bytes([byte]): byte for byte in range(256)} | {b"he": 256, b"ll": 257, b"hell": 258},
    special_tokens={"<|end|>": 259},
)
"""An encoding that needs no file: a token a byte, but for three words."""


def test_four_letters_or_one_other_character_are_a_token() -> None:
    assert estimate_tokens(USER("")) == 4
    assert estimate_tokens(USER("a" * 40)) == 4 + 10
    assert estimate_tokens(USER("a" * 41)) == 4 + 11
    assert estimate_tokens(USER("漢字かな")) == 4 + 4
    assert estimate_tokens(USER("naïve")) == 4 + 1 + 1


def test_a_medium_is_a_thousand_tokens_whatever_its_size() -> None:
    large = DataContent(uri="data:image/png;base64," + "A" * 40_000)
    file = HostedFileContent(file_id="f" * 400)
    uri = UriContent(uri="https://example.com/x.png", media_type="image/png")
    assert estimate_tokens(says("user", PICTURE, large, uri, file)) == 4 + 4_000


@pytest.mark.parametrize(
    ("content", "letters"),
    [
        (
            FunctionCallContent(call_id="not sent as text", name="look", arguments={"at": "here"}),
            len('look{"at":"here"}'),
        ),
        (FunctionCallContent(call_id="c", name="look", arguments_text='{"at" : 1}'), len('look{"at" : 1}')),
        (FunctionCallContent(call_id="c", name="look"), len("look{}")),
        (FunctionResultContent(call_id="c", result="as it is"), len("as it is")),
        (FunctionResultContent(call_id="c", result={"a": [1, None]}), len('{"a":[1,null]}')),
        (TextReasoningContent(text="hm", protected_data="sealed"), len("hmsealed")),
        (ErrorContent(message="no", error_code="Refusal"), len("no")),
        (McpServerToolCallContent(call_id="c", name="look", arguments={"at": 1}), len('look{"at":1}')),
        (WebSearchToolCallContent(call_id="c", queries=["who", None]), len("who")),
        (CodeInterpreterToolCallContent(call_id="c", inputs=[text("1+1")]), len("1+1")),
        (CodeInterpreterToolResultContent(call_id="c", outputs=[text("2")]), len("2")),
        (UsageContent(details=UsageDetails(input_token_count=5)), 0),
        (ToolApprovalRequestContent(request_id="p", tool_call=call("c")), 0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_model_reads_as_text_counts(content: Any, letters: int) -> None:
    message = says("assistant", content)
    assert size(message) == letters
    assert estimate_tokens(message) == 4 + -(-letters // 4)


def test_a_speakers_name_counts() -> None:
    message = USER("hi").model_copy(update={"author_name": "ann"})
    assert size(message) == 5


def test_bytes_are_those_of_utf_8_and_of_data_as_it_is_sent() -> None:
    assert size(USER("é漢👩")) == 2 + 3 + 4
    assert size(says("user", PICTURE)) == len(PICTURE.uri)
    assert size(USER("\ud800")) == 3


def test_tiktoken_counts_text_with_any_encoding() -> None:
    count = tiktoken_counter(BYTES)
    assert count(USER("hello")) == 4 + 2
    assert count(USER("<|end|>")) == 4 + len("<|end|>")
    assert count(says("user", PICTURE)) == 4 + 1_000


def test_nothing_of_tiktoken_is_loaded_until_it_counts() -> None:
    script = "import sys, chathistory_core; assert 'tiktoken' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_tiktoken_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def none(name: str, *rest: Any) -> Any:
        if name == "tiktoken":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", none)
    with pytest.raises(ImportError, match=r'pip install "chathistory-core\[tiktoken\]"'):
        tiktoken_counter()
