"""What was measured, as it is kept in JSON."""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from benchmarks.rounds import Spread, spread


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Ratio(_Kept):
    """A row of the floors."""

    name: str
    against: str
    at_most: float | None
    unit: str
    taken: Sequence[tuple[float, float]]
    """Of each round, what ours took and what the other took: seconds or bytes."""

    @property
    def ratio(self) -> Spread:
        return spread([ours / floor for ours, floor in self.taken])

    @property
    def ours(self) -> float:
        return spread([ours for ours, _ in self.taken]).median

    @property
    def floor(self) -> float:
        return spread([floor for _, floor in self.taken]).median


class About(_Kept):
    """A contestant as it took part."""

    name: str
    family: str
    asked: str
    """The durability that it was asked for."""
    durability: str
    """The one that it has."""
    returns: str
    versions: Mapping[str, str]


class Measured(_Kept):
    """What one operation of a contestant took."""

    contestant: str
    asked: str
    operation: str
    length: int
    """Messages of the conversation, or conversations of the list."""
    taken: Sequence[float]
    """Of each round: seconds or bytes; fewer rounds of what is very slow."""
    remark: str
    """Why it was not measured; else empty."""


class Correctness(_Kept):
    """What became of a contestant's turns."""

    contestant: str
    processes: int = 0
    turns: int = 0
    lost: int = 0
    doubled: int = 0
    split: int = 0
    reordered: int = 0
    errors: Mapping[str, int] = {}
    retried: int = 0
    """How often a turn is there that was stored twice under one id."""
    equal: int = 0
    """How often a turn is there that was stored under two ids."""
    remark: str = ""


class Results(_Kept):
    """A run."""

    machine: Mapping[str, str]
    versions: Mapping[str, str]
    floors: Sequence[Ratio] = ()
    field: Sequence[About] = ()
    measured: Sequence[Measured] = ()
    correctness: Sequence[Correctness] = ()
    agents: Sequence[Ratio] = ()
    """Turns of an agent of Microsoft Agent Framework."""
