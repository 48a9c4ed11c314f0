"""Commands that other distributions add."""

from collections.abc import Callable
from typing import Any

Run = Callable[..., Any]
Install = Callable[..., None]

GROUP = "chathistory.commands"

COUNT = '''
import asyncio

from chathistory_core.cli.options import Options, Url, store
from chathistory_core.cli.text import put_line

def count(*, url: Url = None, option: Options = None) -> None:
    """Count the conversations."""
    asyncio.run(_count(store(url, option)))

async def _count(backend):
    async with backend:
        put_line(f"{len(await backend.summaries())} conversations")
'''

APP = '''
import typer

app = typer.Typer(help="Work with archives.")

@app.command()
def pack() -> None:
    """Pack one."""
    print("packed")

@app.command()
def unpack() -> None:
    """Unpack one."""
'''


def test_a_function_is_a_command(cli: Run, install: Install, chat: Callable[..., str]) -> None:
    install("counter", COUNT, group=GROUP, names={"count": ":count"})
    cli("import", "--format", "openai-chat", chat("Hi"))
    assert cli("count") == (0, "1 conversations\n", "")
    assert "option 'tll'" in cli("count", "--option", "tll=1d").error
    assert "Count the conversations." in cli().out


def test_an_app_is_a_command_with_commands_of_its_own(cli: Run, install: Install) -> None:
    install("archive", APP, group=GROUP, names={"archive": ":app"})
    assert cli("archive", "pack") == (0, "packed\n", "")
    assert "unpack" in cli("archive", "--help").out
    assert "Work with archives." in cli("--help").out


def test_a_command_is_loaded_when_it_is_called_for(cli: Run, install: Install) -> None:
    install("loud", "print('loaded')\ndef loud() -> None: pass", group=GROUP, names={"loud": ":loud"})
    assert cli("list") == (0, "", "")
    assert cli("loud") == (0, "loaded\n", "")


def test_a_broken_command_is_a_line_of_warning_and_hurts_nobody(cli: Run, install: Install) -> None:
    install("broken", "raise OSError('no\\nlibrary')", group=GROUP, names={"broken": ":broken"})
    install("quits", "raise SystemExit(3)", group=GROUP, names={"quits": ":quits"})
    install("no-function", "number = 7", group=GROUP, names={"number": ":number", "absent": ":absent"})
    install("untyped", "def f(x: int | str) -> None: pass", group=GROUP, names={"untyped": ":f"})
    install("counter", COUNT, group=GROUP, names={"count": ":count"})
    assert cli("list") == (0, "", "")
    assert cli("count").status == 0
    run = cli("--help")
    assert run.status == 0
    assert "count" in run.out
    assert [line.partition(" is broken")[0] for line in run.err.splitlines()] == [
        f"chathistory: left out: command {name!r} of {distribution} 1.0"
        for name, distribution in (
            ("absent", "no-function"),
            ("broken", "broken"),
            ("number", "no-function"),
            ("quits", "quits"),
            ("untyped", "untyped"),
        )
    ]
    assert "OSError: no library" in cli("broken").error
    assert "int is neither a function nor a typer.Typer" in cli("number").error


def test_a_command_cannot_take_the_place_of_one_that_is_there(cli: Run, install: Install) -> None:
    install("thief", "def list_() -> None: print('stolen')", group=GROUP, names={"list": ":list_", "demo": ":list_"})
    assert cli("list") == (0, "", "")
    assert "stolen" not in cli("demo", "--help").out
    run = cli("--help")
    assert run.err.count("there is one of this name already") == 2
    assert "List the conversations" in run.out


def test_a_command_that_two_distributions_offer_is_none_of_them(cli: Run, install: Install) -> None:
    for name in "one", "two":
        install(name, "def go() -> None: print('went')", group=GROUP, names={"go": ":go"})
    assert "command 'go' is offered by one 1.0 and two 1.0: uninstall all but one" in cli("go").error
