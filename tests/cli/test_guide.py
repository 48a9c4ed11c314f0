"""The guide says what happens."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "command-line.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_every_command_of_the_guide_prints_what_it_says(cli: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_text(blocks("json")[0], "utf-8")
    commands = [one for block in blocks("console") for one in block.split("$ ") if one]
    assert len(commands) > 10
    for command in commands:
        line, _, shown = command.partition("\n")
        run = cli(*shlex.split(line)[1:])
        assert (run.status, run.err) == (0, ""), line
        assert not shown or run.out == shown, line


def test_the_command_of_the_guide_can_be_added(cli: Callable[..., Any], install: Callable[..., None]) -> None:
    [source] = blocks("python")
    install("my-package", source, group="chathistory.commands", names={"count": ":count"})
    assert cli("count") == (0, "0 conversations\n", "")
