"""Which backend is chosen, with what options: arguments, environment, `chathistory.toml`, and their order."""

import logging
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from chathistory_core.errors import ConfigurationError

_log = logging.getLogger("chathistory")

DEFAULT_URL = "sqlite:///chathistory.db"
CONFIG_FILE = "chathistory.toml"

_BACKEND = "CHATHISTORY_BACKEND"
_CONFIG = "CHATHISTORY_CONFIG"
_OPTION = "CHATHISTORY_OPTIONS__"
_SERVICE = "CHATHISTORY_SERVICE_"
_NAME = re.compile(r"[a-z][a-z0-9+._-]*")


class Setting(NamedTuple):
    """A value, and in words where it stands."""

    value: object
    source: str

    def __repr__(self) -> str:
        return f"<Setting in {self.source}>"


class Settings(NamedTuple):
    """The chosen backend's name, where it stands, and its options; a URL is the option `url`."""

    name: str
    source: str
    options: Mapping[str, Setting]


class _Source(NamedTuple):
    backend: str | None
    place: str
    options: Iterable[tuple[str, Setting]]


def read_settings(backend: str | None = None, *, options: Mapping[str, object] | None = None) -> Settings:
    """What is configured: by the arguments, else the environment, else the file, else `DEFAULT_URL`, which is logged.

    The strongest source that names a backend decides; options come from it and from stronger ones. What is weaker is
    not read.

    Raises:
        ConfigurationError: a name, variable, key or file that cannot be.
    """
    found: dict[str, Setting] = {}
    for source in _sources(backend, options or {}):
        name, url_options = (None, []) if source.backend is None else _split(source.backend, source.place)
        for option, setting in _once([*url_options, *source.options]).items():
            found.setdefault(option, setting)
        if name is not None:
            return Settings(name, source.place, found)
    _log.info("no backend is configured: the default is %s, in %s", DEFAULT_URL, Path.cwd())
    name, url_options = _split(DEFAULT_URL, "the default")
    return Settings(name, "the default", dict(url_options) | found)


def _sources(backend: str | None, options: Mapping[str, object]) -> Iterator[_Source]:
    given = [(name, Setting(value, "the argument `options`")) for name, value in options.items()]
    yield _Source(backend, "the argument", given)
    yield _environment()
    yield _file()


def _environment() -> _Source:
    options: list[tuple[str, Setting]] = []
    for variable, value in sorted(os.environ.items()):
        if variable.startswith(_OPTION) and variable != _OPTION:
            options.append((variable.removeprefix(_OPTION).lower(), Setting(value, f"environment variable {variable}")))
        elif (
            variable.startswith("CHATHISTORY_")
            and not variable.startswith(_SERVICE)
            and variable not in {_BACKEND, _CONFIG}
        ):
            raise ConfigurationError(
                f"environment variable {variable} is unknown{_closest(variable, [_BACKEND, _CONFIG, _OPTION])}: "
                f"there are {_BACKEND}, {_CONFIG}, {_OPTION}<OPTION> and {_SERVICE}<SETTING>"
            )
    return _Source(os.environ.get(_BACKEND), f"environment variable {_BACKEND}", options)


def _file() -> _Source:
    named = os.environ.get(_CONFIG)
    path = Path(CONFIG_FILE if named is None else named).absolute()
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        if named is None:
            return _Source(None, str(path), [])
        raise ConfigurationError(f"{path}, named by environment variable {_CONFIG}, does not exist") from None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8") from None
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is not TOML: {error}") from None
    return _content(content, path)


def _content(content: Mapping[str, object], path: Path) -> _Source:
    for key in content:
        if key not in {"backend", "options"}:
            raise ConfigurationError(
                f"key {key!r} in {path} is unknown{_closest(key, ['backend', 'options'])}: "
                "there are `backend` and `[options]`"
            )
    backend, options = content.get("backend"), content.get("options", {})
    if backend is not None and not isinstance(backend, str):
        raise ConfigurationError(f"`backend` in {path} is a name or a URL as text, not {type(backend).__name__}")
    if not isinstance(options, dict):
        raise ConfigurationError(f"`options` in {path} is a table, not {type(options).__name__}: write `[options]`")
    given = [(name, Setting(value, f"[options] in {path}")) for name, value in options.items()]
    return _Source(backend, f"`backend` in {path}", given)


def _closest(word: str, known: list[str]) -> str:
    closest = get_close_matches(word, known, n=1)
    return f" (did you mean {closest[0]}?)" if closest else ""


def _split(backend: str, place: str) -> tuple[str, list[tuple[str, Setting]]]:
    """The backend's name, and the options its URL holds. No error shows the URL: a password may be anywhere in it."""
    scheme, separator, rest = backend.partition("://")
    name = scheme.lower() if separator else scheme
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{place} is neither a backend's name (lower-case letters, digits, + . _ -) nor a URL (name://…)"
        )
    if not separator:
        return name, []
    place = f"the URL in {place}"
    if "#" in rest:
        raise ConfigurationError(f"{place} holds a #: write it as %23")
    address, _, query = rest.partition("?")
    if "@" in query:  # then the `?` most likely belongs to a password
        raise ConfigurationError(
            f"{place} holds an @ behind a ?: write ? in what stands before as %3F, @ behind it as %40"
        )
    return name, [("url", Setting(f"{name}://{address}", place)), *_query(query, place)]


def _query(query: str, place: str) -> Iterator[tuple[str, Setting]]:
    for item in query.split("&") if query else ():
        option, separator, value = item.partition("=")
        if not separator or not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", option):
            raise ConfigurationError(f"{place} has a query that is not option=value, joined by &")
        try:
            yield option, Setting(unquote(value, errors="strict"), place)
        except UnicodeDecodeError:
            raise ConfigurationError(f"option {option!r} in {place} is not percent-encoded UTF-8") from None


def _once(options: Iterable[tuple[str, Setting]]) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    for name, setting in options:
        if name in found:
            places = " and in ".join(dict.fromkeys([found[name].source, setting.source]))
            raise ConfigurationError(f"option {name!r} is given twice: in {places}")
        found[name] = setting
    return found
