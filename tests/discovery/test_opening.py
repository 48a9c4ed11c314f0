"""What `open_backend` takes, and the stores that our own backends make of it."""

import asyncio
import traceback
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from chathistory_core import (
    BackendBrokenError,
    BackendStateError,
    ChatHistoryBackend,
    ConfigurationError,
    Record,
    new_turn_id,
)
from chathistory_core.messages import ChatMessage
from chathistory_core.opening import open_backend, open_history
from chathistory_core.plugin import BackendOptions
from chathistory_memory.plugin import MemoryOptions
from chathistory_sqlite import SQLiteBackend
from chathistory_sqlite.plugin import SQLiteOptions

SECRET = "canary-17"


def say(backend: ChatHistoryBackend, text: str) -> None:
    async def append() -> None:
        async with backend:
            await backend.append("ann", [Record(text.encode(), "text")], turn_id=new_turn_id())

    asyncio.run(append())


def said(backend: ChatHistoryBackend) -> list[str]:
    async def get() -> list[str]:
        async with backend:
            return [record.payload.decode() for record in (await backend.get("ann")).records]

    return asyncio.run(get())


def test_a_url_a_name_with_options_and_an_options_object_open_the_same_store(tmp_path: Path) -> None:
    url = f"sqlite:///{(tmp_path / 'a.db').as_posix()}"
    ways: list[Callable[[], ChatHistoryBackend]] = [
        lambda: open_backend(url),
        lambda: open_backend(f"{url}?ttl=30d&synchronous=NORMAL&busy_timeout=2s"),
        lambda: open_backend("sqlite", options={"url": url, "ttl": timedelta(days=30)}),
        lambda: open_backend(SQLiteOptions(url=url)),
    ]
    for number, way in enumerate(ways):
        say(way(), str(number))
    for way in ways:
        assert said(way()) == ["0", "1", "2", "3"]


def test_changing_one_line_of_the_file_moves_the_store() -> None:
    file = Path("chathistory.toml")
    for line in ('backend = "sqlite:///one.db"', 'backend = "sqlite:///two.db"', 'backend = "memory://moved"'):
        file.write_text(line, "utf-8")
        assert said(open_backend()) == []
        say(open_backend(), line)
        assert said(open_backend()) == [line]
    assert Path("one.db").exists()
    assert Path("two.db").exists()
    file.write_text('backend = "sqlite:///one.db"', "utf-8")
    assert said(open_backend()) == ['backend = "sqlite:///one.db"']


def test_without_anything_conversations_are_kept_in_the_working_directory() -> None:
    say(open_backend(), "hello")
    assert Path("chathistory.db").exists()
    assert said(open_backend("sqlite:///chathistory.db")) == ["hello"]


def test_a_history_is_opened_like_a_backend_and_closes_it() -> None:
    async def both() -> None:
        message = ChatMessage.user("hello")
        async with open_history("sqlite:///a.db?ttl=30d", scope=("ann",)) as history:
            async with history.turn(history.session("talk"), [message]):
                pass
            backend = history.get_service(SQLiteBackend)
            assert backend is not None
        with pytest.raises(BackendStateError):
            await backend.get("ann/talk")
        async with open_history(SQLiteOptions(url="sqlite:///a.db"), scope=("ann",)) as history:
            assert list(await history.messages(history.session("talk"))) == [message]
        async with open_history("sqlite", options={"url": "sqlite:///a.db"}, state_key="mine") as history:
            assert history.state_keys == ("mine",)
            assert [summary.key for summary in await history.summaries()] == ["ann/talk"]

    asyncio.run(both())


def test_a_history_without_arguments_is_the_configured_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def store_one_turn() -> None:
        async with open_history() as history, history.turn(history.session("ann"), [ChatMessage.user("hello")]):
            pass

    monkeypatch.setenv("CHATHISTORY_BACKEND", "sqlite:///configured.db")
    asyncio.run(store_one_turn())
    assert Path("configured.db").exists()


def test_opening_makes_no_file_before_the_block_is_entered() -> None:
    open_backend("sqlite:///later.db")
    assert not Path("later.db").exists()


def test_an_options_object_takes_no_options_beside_it() -> None:
    with pytest.raises(TypeError, match="give no `options` beside it"):
        open_backend(MemoryOptions(), options={"ttl": "1d"})  # type: ignore[call-overload]  # what the test is about


@pytest.mark.parametrize("backend", [Path("x.db"), 3, MemoryOptions, b"memory"])
def test_what_names_no_backend_is_a_type_error(backend: object) -> None:
    with pytest.raises(TypeError, match="`backend` is a URL, a name or a BackendOptions, not "):
        open_backend(backend)  # type: ignore[call-overload]  # what the test is about


def test_options_that_are_no_mapping_are_a_type_error() -> None:
    with pytest.raises(TypeError, match="`options` are by name, in a mapping, not str"):
        open_backend("memory", options="ttl=30d")  # type: ignore[call-overload]  # what the test is about


def test_a_backend_without_urls_is_chosen_by_its_name(install: Callable[..., Path]) -> None:
    source = """
from chathistory_core.plugin import BackendOptions, BackendPlugin, hookimpl
from chathistory_memory import MemoryBackend

class Options(BackendOptions):
    def open(self):
        return MemoryBackend()

@hookimpl
def chathistory_backend():
    return BackendPlugin(contract=1, options=Options)
"""
    install("toy-backend", source)
    assert said(open_backend("toy")) == []
    with pytest.raises(ConfigurationError, match=r"option 'url' \(the URL in the argument\) is unknown: there are"):
        open_backend("toy://x")


def test_options_that_do_not_go_together_are_refused_without_their_values(install: Callable[..., Path]) -> None:
    source = """
from chathistory_core.plugin import BackendOptions, BackendPlugin, hookimpl
from chathistory_memory import MemoryBackend
from pydantic import field_validator, model_validator

class Options(BackendOptions):
    url: str
    sizes: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _together(self):
        raise ValueError("give sizes with a host")

    def open(self):
        return MemoryBackend()

@hookimpl
def chathistory_backend():
    return BackendPlugin(contract=1, options=Options)
"""
    install("toy-backend", source)
    with pytest.raises(ConfigurationError) as caught:
        open_backend(f"toy://u:{SECRET}@h")
    assert str(caught.value) == "backend 'toy': its options do not go together: give sizes with a host"
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(ConfigurationError, match=r"option 'sizes\.1' \(the argument `options`\) should be a"):
        open_backend("toy", options={"url": "toy://", "sizes": [1, SECRET]})


def test_options_that_break_their_validator_are_told_without_their_values(install: Callable[..., Path]) -> None:
    source = """
from chathistory_core.plugin import BackendOptions, BackendPlugin, hookimpl
from pydantic import field_validator

class Options(BackendOptions):
    url: str

    @field_validator("url")
    @classmethod
    def _check(cls, url):
        raise KeyError(url)

    def open(self): ...

@hookimpl
def chathistory_backend():
    return BackendPlugin(contract=1, options=Options)
"""
    install("toy-backend", source)
    with pytest.raises(BackendBrokenError, match=r"cannot read its options: KeyError at .*toy_plugin_") as caught:
        open_backend(f"toy://u:{SECRET}@h")
    assert SECRET not in "".join(traceback.format_exception(caught.value))


# memory


def test_a_memory_url_without_a_name_is_a_store_of_its_own() -> None:
    for backend in ("memory://", "memory"):
        say(open_backend(backend), "lost")
        assert said(open_backend(backend)) == []


def test_a_memory_url_with_a_name_is_one_store_in_the_process() -> None:
    say(open_backend("memory://a%20name"), "one")
    say(open_backend("memory", options={"url": "memory://a%20name"}), "two")
    say(open_backend(MemoryOptions(url="memory://a name", ttl=timedelta(days=1))), "three")
    assert said(open_backend("memory://a%20name?ttl=1h")) == ["one", "two", "three"]
    assert said(open_backend("memory://another")) == []


def test_a_memory_object_keeps_its_data_while_it_is_closed() -> None:
    backend = open_backend("memory")
    say(backend, "kept")
    assert said(backend) == ["kept"]


@pytest.mark.parametrize("url", ["", "memory", "memory:/x", f"redis://u:{SECRET}@h"])
def test_another_url_is_no_memory_url(url: str) -> None:
    refused(MemoryOptions, {"url": url}, "memory:// or memory://name")


# sqlite


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///relative.db", "relative.db"),
        ("sqlite:///a%20folder/100%25.db", "a folder/100%.db"),
        ("sqlite:///what%3F%23.db", "what?#.db"),
        ("sqlite:///a@b+c.db", "a@b+c.db"),
        ("sqlite:///../up.db", "../up.db"),
        ("SQLite:///Case.DB", "Case.DB"),
    ],
)
def test_a_sqlite_url_names_a_file_beginning_in_the_working_directory(
    url: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here" / "a folder").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    say(open_backend(url), "hello")
    assert (tmp_path / "here" / path).exists()


def test_a_sqlite_url_with_four_slashes_names_an_absolute_path() -> None:
    assert repr(open_backend("sqlite:////var/b.db")).endswith("'/var/b.db'>")


def test_a_sqlite_url_may_name_a_drive() -> None:
    assert repr(open_backend("sqlite:///C:/x.db")).endswith("'C:/x.db'>")


@pytest.mark.parametrize(
    "url",
    [
        *("sqlite://relative.db", "sqlite://host/x.db", "sqlite:relative.db", "relative.db", "sqlite:///"),
        *("sqlite:///a%00.db", f"redis://u:{SECRET}@h", ""),
    ],
)
def test_another_url_is_no_sqlite_url(url: str) -> None:
    refused(SQLiteOptions, {"url": url}, "sqlite:///relative.db, sqlite:////absolute.db or sqlite:///C:/absolute.db")


@pytest.mark.parametrize("url", ["sqlite:///:memory:", "sqlite://", "sqlite:///%3Amemory%3A"])
def test_sqlite_in_memory_is_refused_and_the_error_says_what_to_take(url: str) -> None:
    refused(SQLiteOptions, {"url": url}, "use memory://")


def refused(options: type[BackendOptions], values: Mapping[str, object], problem: str) -> None:
    with pytest.raises(ValidationError) as caught:
        options.model_validate(values)
    assert problem in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
