"""Reducers and compacting for people without asyncio."""

from pathlib import Path

from chathistory_core import Compacted
from chathistory_core.blocking import open_history
from chathistory_core.reducers import CountingReducer

from .talk import ASSISTANT, USER, Model, reducer


def test_summaries_and_compacting_work_in_blocking_calls(tmp_path: Path, model: Model) -> None:
    url = f"sqlite:///{tmp_path}/history.db"
    with open_history(url, reducer=reducer(model)) as history:
        session = history.session("k")
        seen: list[str] = []
        for number in range(1, 5):
            with history.turn(session, [USER(f"q{number}")]) as turn:
                seen = [message.text for message in turn.messages]
                turn.add(ASSISTANT(f"a{number}"))
        assert seen == ["[Summary]\n<q1 a1 q2 a2>", "q3", "a3", "q4"]
        done = history.compact(session, CountingReducer(2), archive="old")
        assert isinstance(done, Compacted)
        assert (done.before, done.after, done.archive) == (8, 2, "old")
        assert [message.text for message in history.messages(session)] == ["q4", "a4"]
        assert len(history.messages(history.session("old"))) == 8
    assert len(model.asked) == 1
