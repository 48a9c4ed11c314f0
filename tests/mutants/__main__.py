"""`python -m tests.mutants memory|conditional [FILE]`, in the checkout: mutates code and runs the kit on it.

Ends with 1 where a mutation survives that `explained.toml` does not explain, or where it explains one that does not.
`python -m tests.mutants page` writes the table of those that were thought of into the documentation.
"""

import sys
from collections import Counter

from . import page
from .survey import TARGETS, explained, survey


def main(name: str, file: str = "") -> int:
    found = survey(name, file, lambda line: print(line, flush=True))
    reasons = {survivor: why for survivor, why in explained(name).items() if file in ("", survivor.file)}
    left = {each.survivor for each in found if not each.test}
    killed = Counter(each.test for each in found if each.test)
    print(f"{len(found)} mutations, {len(found) - len(left)} found, {len(left & set(reasons))} explained")
    for test, count in killed.most_common():
        print(f"{count:5} {test}")
    for survivor in sorted(left - set(reasons)):
        print("not explained:", *survivor, sep="  ")
    for survivor in sorted(set(reasons) - left):
        print("explained, but found or gone:", *survivor, sep="  ")
    return int(left != set(reasons))


if __name__ == "__main__":
    if sys.argv[1:] == ["page"]:
        page.write()
        sys.exit()
    known = [[name, *file] for name, target in TARGETS.items() for file in ([], *([each] for each in target.files))]
    if sys.argv[1:] not in known:
        sys.exit(f"say one of {', '.join(TARGETS)}, and no file of it or one; or: page")
    sys.exit(main(*sys.argv[1:]))
