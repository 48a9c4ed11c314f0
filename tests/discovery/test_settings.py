"""Which backend is chosen and with what: arguments, environment, file, default, and their order."""

import logging
import pickle
import traceback
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from chathistory_core import ConfigurationError
from chathistory_core.opening import open_backend
from chathistory_core.settings import DEFAULT_URL, read_settings

Toy = Callable[..., dict[str, object]]

SECRET = "canary-99"


def configure(text: str, path: str = "chathistory.toml") -> Path:
    file = Path(path).absolute()
    file.write_text(text, "utf-8")
    return file


def chosen(backend: str | None = None, **options: object) -> tuple[str, Mapping[str, object]]:
    settings = read_settings(backend, options=options)
    return settings.name, {name: setting.value for name, setting in settings.options.items()}


def refused(backend: str | None = None, *, options: Mapping[str, object] | None = None) -> str:
    """The text of the error; nothing that is shown of it holds the secret."""
    with pytest.raises(ConfigurationError) as caught:
        open_backend(backend, options=options)
    shown = "".join(traceback.format_exception(caught.value)) + repr(pickle.loads(pickle.dumps(caught.value)))
    assert SECRET not in shown
    return str(caught.value)


# The query of a URL


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("toy://", {"url": "toy://"}),
        ("toy://?", {"url": "toy://"}),
        ("toy://h:1/a%20b?ttl=30d&size=3", {"url": "toy://h:1/a%20b", "ttl": timedelta(days=30), "size": 3}),
        ("toy://a@b?ttl=PT1H", {"url": "toy://a@b", "ttl": timedelta(hours=1)}),
        ("toy://h?ttl=%33%30d", {"url": "toy://h", "ttl": timedelta(days=30)}),
        ("toy:///x://y", {"url": "toy:///x://y"}),
    ],
)
def test_the_query_of_a_url_is_its_options(toy: Toy, url: str, options: Mapping[str, object]) -> None:
    assert toy(url) == options


def test_a_query_is_percent_decoded_and_a_plus_is_a_plus() -> None:
    assert chosen("toy://h?a=x%26y%3D%C3%A9+z&b=&C=1=2")[1] == {"url": "toy://h", "a": "x&y=é+z", "b": "", "C": "1=2"}


@pytest.mark.parametrize("query", ["ttl", "=1", "a=1&&b=2", "a=1&", f"{SECRET}", f"{SECRET}=1", "a b=1"])
def test_a_query_that_is_no_list_of_options_is_refused(query: str) -> None:
    assert refused(f"toy://h?{query}") == "the URL in the argument has a query that is not option=value, joined by &"


def test_an_option_that_is_not_utf_8_is_refused() -> None:
    assert refused("toy://h?a=%ff") == "option 'a' in the URL in the argument is not percent-encoded UTF-8"


@pytest.mark.parametrize("password", [f"a?{SECRET}", f"a?b={SECRET}", f"a#{SECRET}", f"a?{SECRET}#"])
def test_a_password_that_is_not_percent_encoded_is_refused_and_not_shown(password: str) -> None:
    assert refused(f"toy://user:{password}@host").startswith("the URL in the argument holds a")


@pytest.mark.parametrize(
    "backend", ["", "://x", "SQLite", f"user:{SECRET}@host", f"{SECRET}:", "a b://x", "memory:", "é"]
)
def test_what_is_neither_name_nor_url_is_refused_and_not_shown(backend: str) -> None:
    assert refused(backend) == (
        "the argument is neither a backend's name (lower-case letters, digits, + . _ -) nor a URL (name://…)"
    )


# One option, one place


def test_an_option_given_twice_in_a_url_is_refused() -> None:
    assert refused("memory://?ttl=1d&ttl=1d") == "option 'ttl' is given twice: in the URL in the argument"


def test_an_option_given_in_the_url_and_beside_it_is_refused() -> None:
    assert refused("memory://?ttl=1d", options={"ttl": "2d"}) == (
        "option 'ttl' is given twice: in the URL in the argument and in the argument `options`"
    )
    assert "option 'url' is given twice" in refused("memory://", options={"url": "memory://a"})
    assert "option 'url' is given twice" in refused("memory://?url=memory://a")


def test_an_option_given_twice_by_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHATHISTORY_BACKEND", "memory://?ttl=1d")
    monkeypatch.setenv("CHATHISTORY_OPTIONS__TTL", "1d")
    assert refused() == (
        "option 'ttl' is given twice: in the URL in environment variable CHATHISTORY_BACKEND "
        "and in environment variable CHATHISTORY_OPTIONS__TTL"
    )


# Precedence


def test_without_anything_the_default_is_used_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "chathistory"):
        assert chosen() == ("sqlite", {"url": "sqlite:///chathistory.db"})
    [record] = caplog.records
    assert record.name == "chathistory"
    assert record.getMessage() == f"no backend is configured: the default is {DEFAULT_URL}, in {Path.cwd()}"


def test_what_is_configured_is_not_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHATHISTORY_BACKEND", f"toy://user:{SECRET}@host")
    with caplog.at_level(logging.DEBUG):
        chosen()
    assert not caplog.records


def test_options_without_a_backend_are_the_default_backend_s(monkeypatch: pytest.MonkeyPatch) -> None:
    configure("[options]\nttl = '3d'\nsynchronous = 'NORMAL'")
    monkeypatch.setenv("CHATHISTORY_OPTIONS__TTL", "2d")
    assert chosen(busy_timeout="1s") == (
        "sqlite",
        {"url": DEFAULT_URL, "busy_timeout": "1s", "ttl": "2d", "synchronous": "NORMAL"},
    )


def test_a_url_among_the_options_comes_before_the_default_one() -> None:
    configure("[options]\nurl = 'sqlite:///other.db'")
    assert chosen() == ("sqlite", {"url": "sqlite:///other.db"})


def test_the_file_is_stronger_than_the_default() -> None:
    configure('backend = "toy://file?size=2"\n[options]\nttl = "3d"')
    assert chosen() == ("toy", {"url": "toy://file", "size": "2", "ttl": "3d"})


def test_the_environment_is_stronger_than_the_file_and_leaves_its_options_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure('backend = "toy://file"\n[options]\nttl = "3d"\nsize = 1')
    monkeypatch.setenv("CHATHISTORY_BACKEND", "toy://environment?size=4")
    assert chosen() == ("toy", {"url": "toy://environment", "size": "4"})


def test_options_of_the_environment_come_before_those_of_the_file_that_names_the_backend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure('backend = "toy://file?size=2"\n[options]\nttl = "3d"')
    monkeypatch.setenv("CHATHISTORY_OPTIONS__SIZE", "9")
    assert chosen() == ("toy", {"url": "toy://file", "size": "9", "ttl": "3d"})


def test_option_arguments_come_before_everything(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    configure('backend = "toy://file"\n[options]\nttl = "3d"')
    monkeypatch.setenv("CHATHISTORY_OPTIONS__SIZE", "9")
    assert toy(ttl=timedelta(days=1)) == {"url": "toy://file", "size": 9, "ttl": timedelta(days=1)}


def test_a_backend_argument_is_stronger_than_everything_and_takes_nothing_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure('backend = "toy://file"\n[options]\nttl = "3d"')
    monkeypatch.setenv("CHATHISTORY_BACKEND", "toy://environment")
    monkeypatch.setenv("CHATHISTORY_OPTIONS__SIZE", "9")
    assert chosen("memory") == ("memory", {})
    assert chosen("memory", ttl="1d") == ("memory", {"ttl": "1d"})


def test_what_is_weaker_than_the_source_that_names_the_backend_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    configure("this is not TOML")
    monkeypatch.setenv("CHATHISTORY_BACKEND", "toy")
    assert chosen() == ("toy", {})
    monkeypatch.setenv("CHATHISTORY_BAKEND", "toy")
    assert chosen("memory") == ("memory", {})


def test_chathistory_config_names_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    configure('backend = "memory"')
    monkeypatch.setenv("CHATHISTORY_CONFIG", str(configure('backend = "toy"', "other.toml")))
    assert chosen()[0] == "toy"
    monkeypatch.setenv("CHATHISTORY_CONFIG", "other.toml")
    assert chosen()[0] == "toy"


def test_values_of_the_file_keep_their_types(toy: Toy) -> None:
    configure('backend = "toy"\n[options]\nttl = 90\nsize = 3')
    assert toy() == {"ttl": timedelta(seconds=90), "size": 3}


def test_a_file_saved_with_a_byte_order_mark_is_read() -> None:
    Path("chathistory.toml").write_bytes(b'\xef\xbb\xbfbackend = "toy"\r\n')
    assert chosen()[0] == "toy"


# What cannot be


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("CHATHISTORY_BAKEND", " (did you mean CHATHISTORY_BACKEND?)"),
        ("CHATHISTORY_OPTIONS_TTL", " (did you mean CHATHISTORY_OPTIONS__?)"),
        ("CHATHISTORY_OPTIONS__", " (did you mean CHATHISTORY_OPTIONS__?)"),
        ("CHATHISTORY_", ""),
    ],
)
def test_an_unknown_variable_is_refused(monkeypatch: pytest.MonkeyPatch, variable: str, hint: str) -> None:
    monkeypatch.setenv("CHATHISTORY_BACKEND", "memory")
    monkeypatch.setenv(variable, SECRET)
    text = refused()
    assert text.startswith(f"environment variable {variable} is unknown")
    if hint and variable != "CHATHISTORY_OPTIONS__":
        assert hint in text
    assert text.endswith(
        "there are CHATHISTORY_BACKEND, CHATHISTORY_CONFIG, CHATHISTORY_OPTIONS__<OPTION> "
        "and CHATHISTORY_SERVICE_<SETTING>"
    )


def test_the_service_s_variables_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHATHISTORY_SERVICE_PORT", "80")
    monkeypatch.setenv("CHATHISTORYISH", "1")
    assert chosen()[0] == "sqlite"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            'bakend = "toy"',
            "key 'bakend' in {path} is unknown (did you mean backend?): there are `backend` and `[options]`",
        ),
        ("[service]", "key 'service' in {path} is unknown: there are `backend` and `[options]`"),
        ("backend = 3", "`backend` in {path} is a name or a URL as text, not int"),
        ("[backend]", "`backend` in {path} is a name or a URL as text, not dict"),
        ('options = "ttl"', "`options` in {path} is a table, not str: write `[options]`"),
        ('backend = ""', "`backend` in {path} is neither a backend's name (lower-case letters, digits, + . _ -)"),
        ("backend = toy", "{path} is not TOML: Invalid value (at line 1, column 11)"),
        (f'backend = "toy://u:{SECRET}@h', "{path} is not TOML: "),
        (f'backend = "toy://u:{SECRET}#@h"', "the URL in `backend` in {path} holds a #: write it as %23"),
        (
            'backend = "memory"\n[options]\nttl = "soon"',
            "backend 'memory': option 'ttl' ([options] in {path}) should be",
        ),
        ('backend = "memory?"', "`backend` in {path} is neither"),
    ],
)
def test_a_file_that_cannot_be_is_refused_with_its_path(text: str, problem: str) -> None:
    path = configure(text)
    assert refused().startswith(problem.format(path=path))


def test_a_file_that_is_not_utf_8_is_refused() -> None:
    Path("chathistory.toml").write_bytes(b'backend = "\xff"')
    assert refused() == f"{Path('chathistory.toml').absolute()} is not UTF-8"


def test_a_folder_in_the_place_of_the_file_is_refused() -> None:
    Path("chathistory.toml").mkdir()
    assert refused().startswith(f"{Path('chathistory.toml').absolute()} cannot be read: ")


def test_a_missing_file_that_was_named_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    configure('backend = "memory"')
    monkeypatch.setenv("CHATHISTORY_CONFIG", "missing.toml")
    path = Path("missing.toml").absolute()
    assert refused() == f"{path}, named by environment variable CHATHISTORY_CONFIG, does not exist"


def test_an_empty_variable_is_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHATHISTORY_BACKEND", "")
    assert refused().startswith("environment variable CHATHISTORY_BACKEND is neither a backend's name")


def test_a_setting_does_not_show_its_value() -> None:
    assert SECRET not in repr(read_settings(f"toy://u:{SECRET}@h?token={SECRET}"))


# Bad options: name, place, what is allowed


def test_an_unknown_option_is_told_with_its_place_and_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(f"memory://?ttll={SECRET}") == (
        "backend 'memory': option 'ttll' (the URL in the argument) is unknown (did you mean 'ttl'?): there are ttl, url"
    )
    assert refused("memory", options={"colour": SECRET}) == (
        "backend 'memory': option 'colour' (the argument `options`) is unknown: there are ttl, url"
    )
    monkeypatch.setenv("CHATHISTORY_BACKEND", "memory")
    monkeypatch.setenv("CHATHISTORY_OPTIONS__TTLS", SECRET)
    assert refused() == (
        "backend 'memory': option 'ttls' (environment variable CHATHISTORY_OPTIONS__TTLS) is unknown "
        "(did you mean 'ttl'?): there are ttl, url"
    )


def test_a_bad_value_is_told_with_its_place_and_what_is_allowed() -> None:
    assert refused(f"sqlite:///x.db?synchronous={SECRET}") == (
        "backend 'sqlite': option 'synchronous' (the URL in the argument) should be 'FULL' or 'NORMAL'"
    )
    assert refused("memory", options={"ttl": SECRET}) == (
        "backend 'memory': option 'ttl' (the argument `options`) "
        "should be a number with s, m, h, d or w (90s, 30d) or ISO 8601 (P30D), up to 100 years"
    )


def test_every_bad_option_is_told_at_once() -> None:
    text = refused(f"sqlite:///x.db?synchronous={SECRET}&ttl={SECRET}&nonsense={SECRET}")
    assert text.count("(the URL in the argument)") == 3
    assert all(f"option {name!r}" in text for name in ("synchronous", "ttl", "nonsense"))


def test_a_missing_option_is_told_with_the_place_that_names_the_backend() -> None:
    path = configure('backend = "sqlite"')
    assert refused() == f"backend 'sqlite': option 'url' (the backend is named by `backend` in {path}) is missing"
