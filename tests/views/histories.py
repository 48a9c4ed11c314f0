"""Random histories: sound ones, and such as no application should write."""

import os

from hypothesis import settings
from hypothesis import strategies as st

from chathistory_core.messages import ChatMessage, Content

from .messages import call, hosted, hosted_result, reasoning, request, response, result, says, text

EXAMPLES = int(os.environ.get("EXAMPLES", "2000" if os.environ.get("LONG") == "1" else "100"))

generated = settings(max_examples=EXAMPLES, deadline=None)

IDS = st.sampled_from(["a", "b", ""])
REQUESTS = st.sampled_from(["p", "q"])
WORDS = st.sampled_from(["no", "well then " * 9, ""])

TEXT = WORDS.map(text)
CALL = st.builds(lambda call_id, executed: call(call_id, executed=executed), IDS, st.booleans())
RESULT = st.builds(result, IDS, WORDS)
REASONING = st.just(reasoning())
REQUEST = st.builds(request, REQUESTS, IDS)
RESPONSE = st.builds(response, REQUESTS, IDS)
HOSTED = st.builds(hosted, IDS)
HOSTED_RESULT = st.builds(hosted_result, IDS)


def message(
    role: str, *kinds: st.SearchStrategy[Content], least: int = 1, most: int = 3
) -> st.SearchStrategy[ChatMessage]:
    contents = st.lists(st.one_of(*kinds), min_size=least, max_size=most)
    return contents.map(lambda found: says(role, *found))


ANY = st.one_of(
    message("user", TEXT, most=1),
    message("assistant", TEXT, most=1),
    message("system", TEXT, most=1),
    message("developer", TEXT, most=1),
    message("assistant", CALL),
    message("tool", RESULT),
    message("assistant", REASONING, most=1),
    message("assistant", REQUEST, CALL, TEXT),
    message("user", RESPONSE, most=2),
    message("user", RESULT, TEXT, RESPONSE),
    message("tool", RESULT, TEXT),
    message("assistant", HOSTED, HOSTED_RESULT, TEXT),
    message("assistant", CALL, TEXT, REASONING, RESULT, REQUEST, HOSTED, HOSTED_RESULT, least=0, most=4),
)

HISTORIES = st.lists(ANY, max_size=14)
"""Any messages in any order: parallel calls, ids that repeat, orphans, approvals, reasoning."""


@st.composite
def _rounds(draw: st.DrawFn) -> list[ChatMessage]:
    """A round with all that belongs to it: parallel calls, results in any order and in any number of messages."""
    ids = draw(st.lists(IDS, min_size=1, max_size=3))
    before = [says("assistant", reasoning())] if draw(st.booleans()) else []
    words = [text("let me see")] if draw(st.booleans()) else []
    answers = [result(each) for each in draw(st.permutations(ids))]
    parts = [answers] if draw(st.booleans()) else [[answer] for answer in answers]
    return [*before, says("assistant", *words, *map(call, ids)), *(says("tool", *part) for part in parts)]


@st.composite
def _approved(draw: st.DrawFn) -> list[ChatMessage]:
    """An approval as .NET stores it, where the user may have said something else first."""
    ids = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=2, unique=True))
    talk = [says("user", text("never mind"))] if draw(st.booleans()) else []
    return [
        says("assistant", *(request(f"ask {each}", each) for each in ids)),
        *talk,
        says("user", *(response(f"ask {each}", each, approved=not talk) for each in ids)),
        says("assistant", *(call(each, executed=True) for each in ids)),
        says("tool", *map(result, ids)),
    ]


@st.composite
def _exchanges(draw: st.DrawFn) -> list[ChatMessage]:
    asked = draw(message("user", TEXT, most=1))
    worked = [each for part in draw(st.lists(st.one_of(_rounds(), _approved()), max_size=2)) for each in part]
    return [asked, *worked, says("assistant", text("done"))]


SOUND = st.builds(
    lambda rules, exchanges: [*rules, *(each for part in exchanges for each in part)],
    st.lists(message("system", TEXT, most=1), max_size=2),
    st.lists(_exchanges(), max_size=4),
)
"""Histories in which nothing is missing."""
