"""What only some backends can: the kit asks for the tests of what it sees, and they fail where there is nothing."""

import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest

from chathistory_core.testing import (
    BackendFactory,
    BackendTests,
    CrashTests,
    ExpiringStore,
    ExpiryTests,
    NetworkStore,
    NetworkTests,
    ProcessTests,
)
from chathistory_core.testing.proxy import Address
from chathistory_memory import MemoryBackend, MemoryStore
from chathistory_sqlite import SQLiteBackend

LISTENER = ("127.0.0.1", 0)


class Plain(MemoryBackend):
    """One that can nothing of it."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)


class Connects(Plain):
    address: Address = ""

    async def __aenter__(self) -> Self:
        with socket.create_connection(tuple(self.address)):  # type: ignore[arg-type]  # host and port
            return await super().__aenter__()


@pytest.fixture
def listener() -> Iterator[Address]:
    with socket.create_server(LISTENER) as server:
        host, port = server.getsockname()
        yield host, port


def check(theirs: type[BackendTests], make_backend: BackendFactory) -> None:
    theirs().test_what_it_can_has_its_tests(make_backend)


def suite(*bases: type, left_out: dict[type, str] | None = None) -> type[BackendTests]:
    """A class of tests as an author writes it."""
    names: dict[str, Any] = {"left_out": left_out or {}}
    return type("TestTheirs", (BackendTests, *bases), names)


def test_a_backend_that_can_no_more_than_it_must_needs_no_other_tests() -> None:
    check(suite(), partial(Plain, MemoryStore()))


def test_a_time_to_live_without_its_tests_is_a_failure() -> None:
    make_backend = partial(MemoryBackend, MemoryStore())
    with pytest.raises(AssertionError, match="`ttl`: add ExpiryTests to the bases of TestTheirs"):
        check(suite(), make_backend)
    check(suite(ExpiryTests), make_backend)


@pytest.mark.parametrize("missing", [ProcessTests, CrashTests])
def test_a_store_that_processes_share_without_the_tests_of_it_is_a_failure(tmp_path: Path, missing: type) -> None:
    make_backend = partial(SQLiteBackend.from_path, tmp_path / "history.db")
    others = {ProcessTests, CrashTests, ExpiryTests} - {missing}
    with pytest.raises(AssertionError, match=rf"add {missing.__name__} to the bases of TestTheirs") as caught:
        check(suite(*others), make_backend)
    assert not any(f"add {other.__name__}" in str(caught.value) for other in others)
    check(suite(*others, missing), make_backend)


def test_a_copy_in_another_process_is_no_store_that_processes_share() -> None:
    check(suite(), partial(Plain, PicklableStore()))


class PicklableStore(MemoryStore):
    """Each process has a copy of its own."""

    def __reduce__(self) -> tuple[Callable[[], MemoryStore], tuple[()]]:
        return MemoryStore, ()


def test_a_connection_without_the_tests_of_networks_is_a_failure(
    listener: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connects, "address", listener)
    make_backend = partial(Connects, MemoryStore())
    with pytest.raises(AssertionError, match="it connects to a server: add NetworkTests to the bases of TestTheirs"):
        check(suite(), make_backend)
    check(suite(NetworkTests), make_backend)


def test_tests_may_be_left_out_with_a_reason() -> None:
    make_backend = partial(MemoryBackend, MemoryStore())
    check(suite(left_out={ExpiryTests: "they are in another class"}), make_backend)
    with pytest.raises(AssertionError, match="add ExpiryTests"):
        check(suite(left_out={ExpiryTests: ""}), make_backend)


def test_no_tests_are_left_out_of_what_a_backend_cannot() -> None:
    with pytest.raises(AssertionError, match="names what the backend cannot"):
        check(suite(left_out={NetworkTests: "no time"}), partial(Plain, MemoryStore()))


def test_the_tests_of_expiry_fail_where_nothing_expires() -> None:
    store = ExpiringStore(partial(Plain, MemoryStore()), timedelta(hours=1), lambda _: None)
    with pytest.raises(AssertionError):
        ExpiryTests().test_an_expired_conversation_is_invisible_at_once(store)


def test_the_tests_of_networks_fail_where_calls_do_not_pass_the_proxy(listener: Address) -> None:
    store = MemoryStore()
    with pytest.raises(AssertionError, match="the reply was not lost"):
        NetworkTests().test_writes_whose_replies_are_lost_are_stored_once_when_repeated(
            NetworkStore(listener, lambda _: Plain(store))
        )
