"""What a contestant took, against ours of its family and durability in the same rounds."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from benchmarks.results import About, Measured, Results
from benchmarks.rounds import Spread, spread

_OURS = "chathistory "


class Comparison:
    """The figures of a run, by contestant, operation and length."""

    def __init__(self, results: Results) -> None:
        self._results = results

    @cached_property
    def _by_place(self) -> dict[tuple[str, str, str, int], Measured]:
        return {
            (one.contestant, one.asked, one.operation, one.length): one for one in self._results.measured if one.taken
        }

    def field(self, family: str, *, main: bool = True) -> Sequence[About]:
        """Those of a family with the durability that a user gets who asks for none, else the others; ours first."""
        asked: dict[str, str] = {}
        for one in self._results.field:
            asked.setdefault(one.name, one.asked)
        found = [
            one
            for one in self._results.field
            if one.family == family and ((main and is_ours(one)) or (asked[one.name] == one.asked) == main)
        ]
        return sorted(found, key=lambda one: not is_ours(one))

    def columns(self, field: Sequence[About]) -> Sequence[tuple[str, int]]:
        """Operations and lengths that any of the field was measured in, in the order of the run."""
        found = [(one.operation, one.length) for about in field for one in self._of_all(about)]
        order = {(one.operation, one.length): number for number, one in enumerate(self._results.measured)}
        return sorted(set(found), key=lambda column: order[column])

    def points(self, about: About, operation: str) -> Sequence[tuple[int, float]]:
        """Lengths, and the median of what it took there."""
        found = [one for one in self._of_all(about) if one.operation == operation]
        return sorted((one.length, spread(one.taken).median) for one in found)

    def _of_all(self, about: About) -> Sequence[Measured]:
        return [one for one in self._by_place.values() if (one.contestant, one.asked) == (about.name, about.asked)]

    def of(self, about: About, operation: str, length: int) -> Measured | None:
        """What it took; None of what was not measured."""
        return self._by_place.get((about.name, about.asked, operation, length))

    def ratio(self, about: About, operation: str, length: int) -> Spread | None:
        """What it took as a multiple of what ours took, round by round."""
        its, ours = self.of(about, operation, length), self.of(self.reference(about), operation, length)
        if its is None or ours is None:
            return None
        return spread([one / other for one, other in zip(its.taken, ours.taken, strict=False)])

    def reference(self, about: About) -> About:
        """Ours that it is compared with: of a file without a durability of SQLite's, the one that waits for no disk."""
        ours = [one for one in self._results.field if one.family == about.family and is_ours(one)]
        ours = [one for one in ours if one.name == ours[0].name]
        same = [one for one in ours if one.durability == about.durability]
        return same[0] if same else ours[-1]

    def remarks(self, field: Sequence[About], columns: Sequence[tuple[str, int]]) -> Sequence[tuple[str, str]]:
        """Names, and why something in these columns was not measured; what is not offered is left out."""
        those = {(about.name, about.asked) for about in field}
        found = [
            (one.contestant, one.remark)
            for one in self._results.measured
            if (one.contestant, one.asked) in those and (one.operation, one.length) in columns
            if one.remark not in {"", "not offered"}
        ]
        return list(dict.fromkeys(found))

    def ahead_of_ours(self) -> Iterator[tuple[About, Measured, Spread]]:
        """Where a contestant took less than ours: the median of its ratios is below 1."""
        for one in self._results.measured:
            for about in self._results.field:
                if (about.name, about.asked) == (one.contestant, one.asked) and not is_ours(about):
                    ratio = self.ratio(about, one.operation, one.length)
                    if ratio is not None and ratio.median < 1:
                        yield about, one, ratio


def is_ours(about: About) -> bool:
    return about.name.startswith(_OURS)
