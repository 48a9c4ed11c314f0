"""Who is let in: tokens, their rights and prefixes, their file, and how often they may come."""

import base64
import os
import secrets
import stat
from pathlib import Path

import pytest

from chathistory_core import ConfigurationError, scope
from chathistory_http.service.access import Access
from chathistory_http.service.token_file import add_token, read_tokens, table_of
from chathistory_http.service.tokens import (
    RIGHTS,
    Right,
    Token,
    new_token,
    token_of,
    token_of_everything,
)
from chathistory_http.wire.problems import ProblemError


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def bearer(token: str) -> str:
    return f"Bearer {token}"


def refusal(
    access: Access,
    authorization: str | None,
    right: Right | None,
    key: str | None = None,
    *,
    address: str | None = None,
) -> tuple[int, str, dict[str, str]]:
    """Status, detail and headers of the answer."""
    with pytest.raises(ProblemError) as raised:
        access.check(authorization, right, key, address=address)
    return raised.value.status, raised.value.detail, dict(raised.value.headers)


def test_a_token_is_256_random_bits() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    for token in tokens:
        assert len(base64.urlsafe_b64decode(f"{token.removeprefix('chs_')}=")) == 32


def test_a_token_opens_what_its_rights_and_prefix_say_and_nothing_else() -> None:
    text = new_token()
    access = Access([token_of(text, "ann", ["read", "list"], "acme/ann/")])
    access.check(bearer(text), "read", "acme/ann/work")
    access.check(bearer(text), "list")
    access.check(bearer(text), None)
    refused: tuple[Right, ...] = ("write", "delete", "metrics")
    for right in refused:
        assert refusal(access, bearer(text), right, "acme/ann/work")[0] == 403
    for key in ("acme/bob/work", "acme/ann", "acme/anna/x", "ACME/ANN/x", "/acme/ann/x", "a", ""):
        assert refusal(access, bearer(text), "read", key)[0] == 403


def test_a_neighbour_s_scope_is_not_covered() -> None:
    text = new_token()
    access = Access([token_of(text, "ann", RIGHTS, scope("ann"))])
    access.check(bearer(text), "read", scope("ann") + "x")
    for other in (scope("anna"), scope("ann/x"), scope("an")):
        assert refusal(access, bearer(text), "read", f"{other}x")[0] == 403


@pytest.mark.parametrize("prefix", ["acme/", "日本/", "a\u0301/", "%2F/", "../"])
def test_a_prefix_is_compared_as_it_is(prefix: str) -> None:
    text = new_token()
    access = Access([token_of(text, "one", RIGHTS, prefix)])
    access.check(bearer(text), "write", f"{prefix}x")
    for other in ("á/x", "//x", "x/../acme/x", prefix.swapcase() if prefix.swapcase() != prefix else "else"):
        assert refusal(access, bearer(text), "write", other)[0] == 403


def test_a_refusal_says_nothing_of_the_key_and_shows_no_token() -> None:
    text = new_token()
    access = Access([token_of(text, "ann", RIGHTS, "acme/")])
    answers = [refusal(access, bearer(text), "read", key) for key in ("bob/1", "bob/other", "x")]
    assert len({repr(answer) for answer in answers}) == 1
    unknown = new_token()
    refused = refusal(access, bearer(unknown), "read", "acme/1")
    assert text not in repr(answers)
    assert unknown not in repr(refused)


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Basic {token}",
        "{token}",
        "Token {token}",
        "Bearer{token}",
        "Bearer {token}x",
        "Bearer x{token}",
        "Bearer {token}, Bearer {token}",
        "Bearer {token} {token}",
        "Bearer {token}\x00",
        "Bearer {upper}",
        "Bearer {half}",
        "Bearer {digest}",
        "Bearer \udcff\xff",
    ],
)
def test_whatever_is_not_a_token_is_401_and_challenged(authorization: str | None) -> None:
    text = new_token()
    token = token_of(text, "ann", RIGHTS, "")
    access = Access([token])
    if authorization is not None:
        authorization = authorization.format(
            token=text, upper=text.upper(), half=text[: len(text) // 2], digest=token.digest.hex()
        )
    status, detail, headers = refusal(access, authorization, None)
    assert status == 401
    assert headers["WWW-Authenticate"].startswith("Bearer")
    assert text not in detail


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer "])
def test_the_scheme_is_read_in_any_case(scheme: str) -> None:
    text = new_token()
    Access([token_of(text, "ann", RIGHTS, "")]).check(f"{scheme} {text} ", "read", "x")


def test_without_tokens_and_without_being_told_nobody_is_let_in() -> None:
    assert refusal(Access(), None, "read", "x")[0] == 401
    assert Access().visible_prefix(None, "") is None


def test_anonymous_access_is_everyone_s_and_never_beside_tokens(tmp_path: Path) -> None:
    access = Access(anonymous=True)
    for right in RIGHTS:
        access.check(None, right, "x")
        access.check(bearer(new_token()), right, "x")
    assert access.visible_prefix(None, "a") == "a"
    with pytest.raises(ConfigurationError, match="decide"):
        Access([token_of(new_token(), "ann", RIGHTS, "")], anonymous=True)
    with pytest.raises(ConfigurationError, match="decide"):
        Access(file=tmp_path / "tokens.toml", anonymous=True)


@pytest.mark.parametrize(
    ("asked", "visible"),
    [
        ("", "acme/ann/"),
        ("ac", "acme/ann/"),
        ("acme/ann/", "acme/ann/"),
        ("acme/ann/work", "acme/ann/work"),
        ("acme/bob/", None),
        ("acme/anna", None),
        ("b", None),
    ],
)
def test_a_listing_is_cut_to_the_token_s_prefix(asked: str, visible: str | None) -> None:
    text = new_token()
    assert Access([token_of(text, "ann", RIGHTS, "acme/ann/")]).visible_prefix(bearer(text), asked) == visible


def test_of_two_tokens_each_has_its_own_rights() -> None:
    one, two = new_token(), new_token()
    access = Access([token_of(one, "one", ["read"], "1/"), token_of(two, "two", ["write"], "2/")])
    access.check(bearer(one), "read", "1/x")
    access.check(bearer(two), "write", "2/x")
    assert refusal(access, bearer(one), "read", "2/x")[0] == 403
    assert refusal(access, bearer(two), "read", "2/x")[0] == 403


def test_a_digest_that_is_nearly_right_is_wrong() -> None:
    text, other = new_token(), new_token()
    nearly = token_of(text, "one", RIGHTS, "").digest[:31] + bytes(1)
    access = Access([Token("nearly", nearly, frozenset(RIGHTS), ""), token_of(other, "other", RIGHTS, "")])
    assert refusal(access, bearer(text), None)[0] == 401
    access.check(bearer(other), None)


def test_the_token_of_the_environment_may_do_everything_and_must_be_long() -> None:
    for text in (secrets.token_hex(32), secrets.token_urlsafe(32), new_token(), secrets.token_hex(16)):
        access = Access([token_of_everything(text, "environment", "the variable")])
        for right in RIGHTS:
            access.check(bearer(text), right, "any key")
    for text in ("", "secret", "correct horse battery staple, and some more words", "x" * 300, "é" * 40, "a" * 31):
        with pytest.raises(ConfigurationError, match="the variable is no token") as raised:
            token_of_everything(text, "environment", "the variable")
        assert text == "" or text not in str(raised.value)


def test_a_token_shows_neither_itself_nor_its_digest() -> None:
    text = new_token()
    token = token_of(text, "ann", RIGHTS, "")
    assert text not in repr(token)
    assert token.digest.hex() not in repr(token)
    assert repr(token.digest) not in repr(token)


def test_tokens_in_the_file_come_back_as_they_were_put_there(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    rights: tuple[Right, ...] = ("read", "metrics")
    prefixes = ["", "acme/", 'quote" \\ back', "日本 🕌/", "tab\tdel\x7f\x1f/", "\u2028"]
    tokens = [token_of(new_token(), f"t{number}", rights, prefix) for number, prefix in enumerate(prefixes)]
    for token in tokens:
        add_token(path, token)
    assert read_tokens(path) == tokens
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_in_the_file_stays_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    first = f"# ours, do not touch\n{table_of(token_of(new_token(), 'one', ['read'], ''))}# the end"
    path.write_text(first, "utf-8")
    path.chmod(0o640)
    add_token(path, token_of(new_token(), "two", ["read"], ""))
    assert path.read_text("utf-8").startswith(first)
    assert [token.name for token in read_tokens(path)] == ["one", "two"]
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_name_is_given_once(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    add_token(path, token_of(new_token(), "ann", ["read"], ""))
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match="'ann'"):
        add_token(path, token_of(new_token(), "ann", ["read"], ""))
    assert path.read_bytes() == before
    path.write_bytes(before * 2)
    with pytest.raises(ConfigurationError, match="two tokens of the name 'ann'"):
        read_tokens(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("token = 1", "something else"),
        ("tokens = []", "something else"),
        ("[token]\nname = 'a'", "something else"),
        ("token = [1]", "token 1 .* is no table"),
        ("[[token]]\nnam = 'a'", "'nam', which is unknown"),
        ("[[token]]\nprefix = ''", "no `name`"),
        ("[[token]]\nname = 'a b'\nsha256 = '{hash}'\nrights = ['read']\nprefix = ''", "a name is"),
        ("[[token]]\nname = 'a'\nsha256 = 'abc'\nrights = ['read']\nprefix = ''", "SHA-256"),
        ("[[token]]\nname = 'a'\nrights = ['read']\nprefix = ''", "SHA-256"),
        ("[[token]]\nname = 'a'\nsha256 = '{hash}'\nrights = 'read'\nprefix = ''", "`rights` is a list"),
        ("[[token]]\nname = 'a'\nsha256 = '{hash}'\nrights = ['reed']\nprefix = ''", "`rights` is a list"),
        ("[[token]]\nname = 'a'\nsha256 = '{hash}'\nrights = [['read']]\nprefix = ''", "`rights` is a list"),
        ("[[token]]\nname = 'a'\nsha256 = '{hash}'\nrights = []\nprefix = ''", "`rights` is a list"),
        ("[[token]]\nname = 'a'\nsha256 = '{hash}'\nrights = ['read']", "no `prefix`"),
        ("[[token]]\nname = 'a'\nsha256 = '{hash}'\nrights = ['read']\nprefix = 1", "no `prefix`"),
        ('[[token]]\nname = "a"\nsha256 = "{hash}"\nrights = ["read"]\nprefix = "\\u0000"', "NUL"),
        ("[[token]", "is not TOML"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    digest = "ab" * 32
    path.write_text(text.replace("{hash}", digest), "utf-8")
    with pytest.raises(ConfigurationError, match=said) as raised:
        Access(file=path)
    assert digest not in str(raised.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        Access(file=tmp_path / "absent.toml")
    (tmp_path / "latin").write_bytes(b"# \xff")
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        Access(file=tmp_path / "latin")


def test_a_changed_file_is_in_force_within_a_second_without_a_restart(tmp_path: Path) -> None:
    path, clock = tmp_path / "tokens.toml", Clock()
    one, two = new_token(), new_token()
    add_token(path, token_of(one, "one", ["read"], ""))
    access = Access(file=path, clock=clock)
    add_token(path, token_of(two, "two", ["read"], ""))
    clock.now += 1
    access.check(bearer(two), "read", "x")
    path.write_text(table_of(token_of(two, "two", ["read"], "")), "utf-8")
    clock.now += 1
    assert refusal(access, bearer(one), "read", "x")[0] == 401
    access.check(bearer(two), "read", "x")


def test_a_reload_is_in_force_at_once(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text("", "utf-8")
    access = Access(file=path, clock=Clock())
    text = new_token()
    add_token(path, token_of(text, "one", ["read"], ""))
    assert refusal(access, bearer(text), "read", "x")[0] == 401
    access.reload()
    access.check(bearer(text), "read", "x")


def test_a_file_that_was_broken_or_removed_leaves_the_tokens_in_force_and_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, clock = tmp_path / "tokens.toml", Clock()
    text = new_token()
    add_token(path, token_of(text, "one", ["read"], ""))
    access = Access(file=path, clock=clock)
    path.write_text("[[token]", "utf-8")
    for _ in range(3):
        clock.now += 1
        access.check(bearer(text), "read", "x")
    path.unlink()
    for _ in range(3):
        clock.now += 1
        access.check(bearer(text), "read", "x")
    assert len(caplog.records) == 2
    assert text not in caplog.text
    add_token(path, token_of(new_token(), "two", ["read"], ""))
    clock.now += 1
    assert refusal(access, bearer(text), "read", "x")[0] == 401


def test_a_token_that_comes_too_often_waits_and_no_other_does() -> None:
    clock = Clock()
    one, two = new_token(), new_token()
    access = Access([token_of(one, "one", RIGHTS, ""), token_of(two, "two", RIGHTS, "")], rate=5, clock=clock)
    for _ in range(10):
        access.check(bearer(one), "read", "x")
    status, _, headers = refusal(access, bearer(one), "read", "x")
    assert (status, headers) == (429, {"Retry-After": "1"})
    access.check(bearer(two), "read", "x")
    clock.now += 0.2
    access.check(bearer(one), "read", "x")
    assert refusal(access, bearer(one), "read", "x")[0] == 429
    clock.now += 60
    for _ in range(10):
        access.check(bearer(one), "read", "x")
    assert refusal(access, bearer(one), "read", "x")[0] == 429


def test_without_tokens_the_rate_is_each_address_s() -> None:
    access = Access(anonymous=True, rate=1, clock=Clock())
    for address in ("10.0.0.1", "10.0.0.2"):
        for _ in range(2):
            access.check(None, "read", "x", address=address)
        assert refusal(access, None, "read", "x", address=address)[0] == 429


def test_a_slow_rate_says_how_long_to_wait() -> None:
    access = Access(anonymous=True, rate=0.1, clock=Clock())
    access.check(None, "read", "x")
    assert refusal(access, None, "read", "x")[2] == {"Retry-After": "10"}


def test_who_guesses_is_told_to_wait_and_who_has_a_token_at_the_same_address_is_not() -> None:
    text = new_token()
    access = Access([token_of(text, "ann", RIGHTS, "")], clock=Clock())
    answers = [refusal(access, bearer("x" * 40), "read", "x", address="10.0.0.1") for _ in range(50)]
    assert [status for status, _, _ in answers] == [401] * 40 + [429] * 10
    access.check(bearer(text), "read", "x", address="10.0.0.1")


def test_addresses_without_end_take_no_room_without_end() -> None:
    access = Access(anonymous=True, rate=1, clock=Clock())
    for number in range(30_000):
        access.check(None, "read", "x", address=f"{number}")
    access.check(None, "read", "x", address="29999")
    assert refusal(access, None, "read", "x", address="29999")[0] == 429
    for _ in range(2):  # as at first: it is forgotten that this one came
        access.check(None, "read", "x", address="0")
