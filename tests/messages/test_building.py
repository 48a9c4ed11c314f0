"""Models are built when they are first used, where pydantic lets several threads do that, else on import."""

import subprocess
import sys

import pytest
from pydantic import VERSION

SCRIPT = """
import sys, threading, pydantic
pydantic.VERSION = sys.argv[1]
sys.setswitchinterval(1e-6)
from chathistory_core import ChatMessage, MessageCodec
from chathistory_core.formats import chat_message
from chathistory_core.messages import *

complete = ChatMessage.__pydantic_complete__
payload = (
    b'{"role":"tool","contents":[{"$type":"webSearchToolResult",'
    b'"outputs":[{"$type":"text","text":"x"}],"callId":"c"}]}'
)
uses = [
    lambda: TextContent(text="a"),
    lambda: MessageCodec(),
    lambda: chat_message.decode(payload),
    lambda: chat_message.encode(ChatMessage.user("Hi")),
    lambda: UsageContent(details=UsageDetails(input_token_count=1)).model_dump_json(),
    lambda: ToolApprovalRequestContent(tool_call=FunctionCallContent(call_id="a", name="b"), request_id="c"),
    lambda: WebSearchToolResultContent(call_id="c", outputs=[TextContent(text="x")]),
    lambda: CitationAnnotation(title="x").model_dump_json(),
]
barrier = threading.Barrier(len(uses))

def use(first):
    barrier.wait()
    for place in range(len(uses)):
        uses[(first + place) % len(uses)]()
    done.append(first)

done = []
threads = [threading.Thread(target=use, args=(first,)) for first in range(len(uses))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
(message,) = chat_message.decode(payload)
assert chat_message.encode(message) == payload
assert ChatMessage.__pydantic_complete__
print(complete, len(done) == len(uses))
"""


@pytest.mark.parametrize("version", ["2.13.9", VERSION])
def test_threads_that_use_models_for_the_first_time_are_kept_apart(version: str) -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT, version], capture_output=True, text=True, check=False)
    built_at_once = tuple(map(int, version.split(".")[:2])) < (2, 14)
    assert (run.stdout.split(), run.stderr) == ([str(built_at_once), "True"], "")


NAMES = """
import sys, pydantic
pydantic.VERSION = sys.argv[1]
from chathistory_core import ChatMessage, messages

class Contents:
    pass  # of the caller, who means something else

def own(kind):
    class Own(kind):
        mine: int = 0
    return Own

inside = (messages.TextContent(text="x"),)
for name in sys.argv[2:]:
    kind = getattr(messages, name)
    member = "inputs" if "inputs" in kind.model_fields else "outputs"
    assert kind.model_fields[member].alias == member
    for model in own(kind), kind, own(kind):
        assert getattr(model(call_id="c", **{member: list(inside)}), member) == inside
assert ChatMessage(role="tool", contents=list(inside)).contents == inside
"""

WITH_CONTENTS = [
    "McpServerToolResultContent",
    "CodeInterpreterToolCallContent",
    "CodeInterpreterToolResultContent",
    "ImageGenerationToolResultContent",
    "WebSearchToolResultContent",
]


@pytest.mark.parametrize("version", ["2.13.9", VERSION])
def test_what_names_mean_where_a_model_is_first_used_is_no_matter(version: str) -> None:
    command = [sys.executable, "-c", NAMES, version, *WITH_CONTENTS]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


def test_a_codec_builds_the_models_so_that_no_message_waits() -> None:
    script = "from chathistory_core import *; MessageCodec(); assert ChatMessage.__pydantic_complete__"
    subprocess.run([sys.executable, "-c", script], check=True)
