"""The file of the tokens: TOML, a table for each, read by the service and added to by `chathistory service-token`.

::

    [[token]]
    name = "acme"
    sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    rights = ["read", "write", "delete", "list"]
    prefix = "acme/"
"""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TypeGuard

from chathistory_core import ConfigurationError, InvalidKeyError, check_prefix
from chathistory_http.service.tokens import RIGHTS, Right, Token

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")
_MEMBERS = ("name", "sha256", "rights", "prefix")


def add_token(path: Path, token: Token) -> None:
    """Put the token into the file, which is made where there is none.

    Raises:
        ConfigurationError: the file cannot be read or written, or has one of this name.
    """
    text = table_of(token)
    if path.exists():
        if any(token.name == each.name for each in read_tokens(path)):
            raise ConfigurationError(
                f"{str(path)!r} has a token of the name {token.name!r}: take another, or remove it"
            )
        if path.stat().st_size:
            text = f"\n{text}"
    try:  # in one write, at the end: whoever may read the file may do so afterwards
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "ab", buffering=0) as file:
            file.write(text.encode())
    except OSError as error:
        raise ConfigurationError(f"the tokens' file {str(path)!r} cannot be written: {error.strerror}") from None


def table_of(token: Token) -> str:
    """The token's table in the file.

    Raises:
        ConfigurationError: its name or prefix cannot stand there.
    """
    _check(token.name, token.prefix, "the token")
    rights = [right for right in RIGHTS if right in token.rights]
    members: dict[str, str | list[Right]] = {
        "name": token.name,
        "sha256": token.digest.hex(),
        "rights": rights,
        "prefix": token.prefix,
    }
    return "[[token]]\n" + "".join(f"{name} = {_toml(value)}\n" for name, value in members.items())


def _toml(value: "str | list[Right]") -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_tokens(path: Path) -> list[Token]:
    """The tokens of a TOML file: tables `[[token]]` with `name`, `sha256`, `rights` and `prefix`.

    Raises:
        ConfigurationError: the file cannot be read, or holds something else.
    """
    try:
        content = tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigurationError(f"the tokens' file {str(path)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"the tokens' file {str(path)!r} is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"the tokens' file {str(path)!r} is not TOML: {error}") from None
    tables = content.pop("token", [])
    if content or not isinstance(tables, list):
        raise ConfigurationError(f"the tokens' file {str(path)!r} holds something else than tables `[[token]]`")
    tokens: dict[str, Token] = {}
    for number, table in enumerate(tables, 1):
        token = _read_one(table, f"token {number} in {str(path)!r}")
        if token.name in tokens:
            raise ConfigurationError(f"{str(path)!r} has two tokens of the name {token.name!r}: give one another name")
        tokens[token.name] = token
    return list(tokens.values())


def _read_one(table: object, where: str) -> Token:
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{where} is no table: write `[[token]]`")
    if unknown := sorted(each for each in table if each not in _MEMBERS):
        raise ConfigurationError(
            f"{where} has {unknown[0]!r}, which is unknown: there are {', '.join(sorted(_MEMBERS))}"
        )
    name, digest, rights, prefix = (table.get(member) for member in ("name", "sha256", "rights", "prefix"))
    if not isinstance(name, str):
        raise ConfigurationError(f"{where} has no `name`")
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise ConfigurationError(f"{where} ({name!r}): `sha256` is the token's SHA-256 in 64 hexadecimal digits")
    if not isinstance(rights, list) or not rights or not all(_is_right(right) for right in rights):
        raise ConfigurationError(f"{where} ({name!r}): `rights` is a list of some of {', '.join(RIGHTS)}")
    if not isinstance(prefix, str):  # never by default: who forgets it would open every tenant's conversations
        raise ConfigurationError(f'{where} ({name!r}) has no `prefix`: "" stands for every key')
    _check(name, prefix, where)
    return Token(name, bytes.fromhex(digest), frozenset(rights), prefix)


def _check(name: str, prefix: str, where: str) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{where}: a name is 1 to 100 of A-Z a-z 0-9 . _ @ -, not {name[:100]!r}")
    try:
        check_prefix(prefix)
    except InvalidKeyError as error:
        raise ConfigurationError(f"{where} ({name!r}): {error}") from None


def _is_right(value: object) -> TypeGuard[Right]:
    return value in RIGHTS
