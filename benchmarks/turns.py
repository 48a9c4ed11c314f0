"""The turns that every contestant stores: made from a name, the same for all."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

_SENTENCE = "Vérifie s'il te plaît l'horaire du train de 18 h 30 de Köln à 東京, quai № 7 - merci beaucoup ☂. "


class Turn(NamedTuple):
    """Four messages: a question, a tool call, its result and an answer; `name` stands in the text of each."""

    name: str
    question: str
    """About 200 bytes, of the user."""
    call_id: str
    tool: str
    arguments: dict[str, Any]
    """About 150 bytes of JSON."""
    result: dict[str, Any]
    """About 1 KB of JSON: what the tool gave back. Of libraries that keep text, `json.dumps(result)`."""
    answer: str
    """About 800 bytes, of the assistant."""

    @property
    def arguments_json(self) -> str:
        return json.dumps(self.arguments, ensure_ascii=False)

    @property
    def result_json(self) -> str:
        return json.dumps(self.result, ensure_ascii=False)


def make_turn(name: str) -> Turn:
    """The turn of this name; its messages are marked `<name#1>` to `<name#4>`."""
    mark = [f"<{name}#{number}>" for number in range(1, 5)]
    return Turn(
        name=name,
        question=f"{mark[0]} {_SENTENCE}{_SENTENCE[:70]}",
        call_id=f"call_{name}",
        tool="find_trains",
        arguments={
            "note": mark[1],
            "from": "Köln Hbf",
            "to": "東京",
            "after": "2026-03-01T18:30",
            "classes": [1, 2],
            "flexible": True,
            "via": "Liège",
        },
        result={
            "note": mark[2],
            "trains": [
                {
                    "number": 900 + number,
                    "leaves": f"18:{30 + number}",
                    "platform": "7 Süd",
                    "price": 129.9 + number,
                    "stops": ["Köln", "Aachen", "Liège", "東京"],
                    "delayed": number % 2 == 0,
                    "remark": None,
                }
                for number in range(6)
            ],
        },
        answer=f"{mark[3]} {_SENTENCE * 7}",
    )


def make_turns(prefix: str, count: int, *, first: int = 0) -> Iterator[Turn]:
    """As many turns, named by the prefix and a number."""
    return (make_turn(f"{prefix}-{number}") for number in range(first, first + count))
