"""Obligations 4, 5, 9 and 13 over a network that loses, delays, cuts and resets, for stores that are servers."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple, TypeAlias

import pytest

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.errors import BackendUnavailableError
from chathistory_core.records import Written, new_turn_id
from chathistory_core.testing.proxy import Address, Proxy, Way
from chathistory_core.testing.scenario import TIME_LIMIT, records, say, texts_of

Scenario: TypeAlias = Callable[[Proxy, ChatHistoryBackend, ChatHistoryBackend], Awaitable[None]]
"""Gets the proxy, a backend behind it, and one that goes to the server directly; both are open."""

CUTS = 12
"""At how many places of a request or reply, from its first byte to its last, it is cut."""

TROUBLES = 20
"""How often the connections of busy writers are broken."""


class NetworkStore(NamedTuple):
    """A server that is a store, and how to make a backend on it under another address."""

    address: Address
    """Of the server: the path of a Unix socket, or host and port."""
    make_backend: Callable[[Address], ChatHistoryBackend]
    """Another unopened backend that connects to this address, over one store that is empty at first."""


class NetworkTests:
    """What was acknowledged stays, nothing is doubled, and the next call works or says clearly why not."""

    @pytest.fixture
    def network_store(self) -> NetworkStore:
        """The server and how to reach it elsewhere: the subclass's to give."""
        raise NotImplementedError("give the class a fixture `network_store` that returns a NetworkStore")

    def test_writes_whose_replies_are_lost_are_stored_once_when_repeated(self, network_store: NetworkStore) -> None:
        async def scenario(proxy: Proxy, backend: ChatHistoryBackend, direct: ChatHistoryBackend) -> None:
            async def lose_and_repeat(call: Callable[[], Awaitable[Written]], number: int) -> None:
                proxy.break_next("reply", reset=number % 2 == 1, stay_down=number % 4 > 1)
                with suppress(BackendUnavailableError):
                    await call()
                assert proxy.mend(), "the reply was not lost"
                await _until_done(call)

            for number in range(8):
                await lose_and_repeat(partial(say, backend, "k", f"{number}", turn_id=f"{number}"), number)
            assert texts_of(await direct.get("k")) == [f"{number}" for number in range(8)]
            for number in range(4):
                turn = f"r{number}"
                await lose_and_repeat(partial(backend.replace, "k", records(turn), turn_id=turn), number)
                assert (await backend.replace("k", records(turn), turn_id=turn)).replayed
                assert texts_of(await direct.get("k")) == [turn]

        _run(network_store, scenario)

    @pytest.mark.parametrize("way", ["request", "reply"])
    def test_an_append_cut_at_any_byte_is_whole_or_absent_and_stored_once_when_repeated(
        self, network_store: NetworkStore, way: Way
    ) -> None:
        texts = [f"{number} {'.' * 100}" for number in range(20)]

        async def scenario(proxy: Proxy, backend: ChatHistoryBackend, direct: ChatHistoryBackend) -> None:
            async def append(key: str) -> None:
                await say(backend, key, *texts, turn_id="t")

            async def check(key: str) -> None:
                assert texts_of(await direct.get(key)) in ([], texts)
                await _until_done(lambda: append(key))
                assert texts_of(await direct.get(key)) == texts
                await append(key)
                assert texts_of(await backend.get(key)) == texts

            await _cut_everywhere(proxy, way, append, check)

        _run(network_store, scenario)

    def test_a_replace_cut_at_any_byte_leaves_the_old_or_the_new(self, network_store: NetworkStore) -> None:
        old, new = ["a", "b"], [f"{number} {'.' * 100}" for number in range(20)]

        async def scenario(proxy: Proxy, backend: ChatHistoryBackend, direct: ChatHistoryBackend) -> None:
            async def replace(key: str) -> None:
                await backend.replace(key, records(*new), turn_id="t")

            async def before(key: str) -> None:
                await direct.replace(key, records(*old), turn_id="s")

            async def check(key: str) -> None:
                assert texts_of(await direct.get(key)) in (old, new)
                await _until_done(lambda: replace(key))
                assert texts_of(await direct.get(key)) == new

            await _cut_everywhere(proxy, "request", replace, check, before)

        _run(network_store, scenario)

    @pytest.mark.parametrize("way", ["request", "reply"])
    def test_a_read_cut_at_any_byte_gives_everything_or_an_error(self, network_store: NetworkStore, way: Way) -> None:
        texts = [f"{number} {'.' * 100}" for number in range(20)]

        async def scenario(proxy: Proxy, backend: ChatHistoryBackend, direct: ChatHistoryBackend) -> None:
            held = await say(direct, "k", *texts)

            async def read(_: str) -> None:
                found = await backend.get("k")
                assert (texts_of(found), found.revision) == (texts, held.revision)

            await _cut_everywhere(proxy, way, read, read)

        _run(network_store, scenario)

    def test_a_clear_whose_reply_is_lost_says_so_and_is_not_made_again_by_itself(
        self, network_store: NetworkStore
    ) -> None:
        async def scenario(proxy: Proxy, backend: ChatHistoryBackend, direct: ChatHistoryBackend) -> None:
            await say(backend, "k", "a")
            with proxy.held():
                clearing = asyncio.create_task(backend.clear("k"))
                await proxy.held_reply()
                await say(direct, "k", "written after the clear")
                proxy.cut()
            with pytest.raises(BackendUnavailableError):
                await clearing
            assert texts_of(await direct.get("k")) == ["written after the clear"]
            assert texts_of(await backend.get("k")) == ["written after the clear"]
            assert await backend.clear("k")

        _run(network_store, scenario)

    def test_no_call_gets_the_late_reply_of_one_that_was_cancelled(self, network_store: NetworkStore) -> None:
        async def scenario(proxy: Proxy, backend: ChatHistoryBackend, direct: ChatHistoryBackend) -> None:
            await say(backend, "read", "r")
            calls: list[Callable[[], Awaitable[object]]] = [
                lambda: backend.get("read"),
                backend.summaries,
                lambda: say(backend, "written", "w", turn_id="t"),
            ]
            for call in calls:
                with proxy.held():
                    task = asyncio.ensure_future(call())
                    await proxy.held_reply()
                    while not task.done():  # before Python 3.12 `asyncio.wait_for` may forget a cancellation
                        task.cancel()
                        await asyncio.wait([task], timeout=0.05)
                await say(backend, "next", "n", turn_id="n")
                assert texts_of(await backend.get("next")) == ["n"]
                assert await backend.get("unknown") == await direct.get("unknown")
                assert texts_of(await backend.get("read")) == ["r"]
            assert (await say(backend, "written", "w", turn_id="t")).replayed

        _run(network_store, scenario)

    def test_a_late_reply_is_waited_for(self, network_store: NetworkStore) -> None:
        async def scenario(proxy: Proxy, backend: ChatHistoryBackend, direct: ChatHistoryBackend) -> None:
            with proxy.held():
                task = asyncio.create_task(say(backend, "k", "a"))
                await proxy.held_reply()
                assert not task.done()
                assert texts_of(await direct.get("k")) == ["a"]
            assert not (await task).replayed

        _run(network_store, scenario)

    @pytest.mark.parametrize("reset", [False, True])
    def test_connections_that_were_cut_while_idle_are_made_anew(
        self, network_store: NetworkStore, *, reset: bool
    ) -> None:
        async def scenario(proxy: Proxy, backend: ChatHistoryBackend, direct: ChatHistoryBackend) -> None:
            await asyncio.gather(*(say(backend, f"{number}", "a") for number in range(8)))
            proxy.cut(reset=reset)
            await _until_done(lambda: say(backend, "k", "a", turn_id="t"))
            proxy.cut(reset=reset)
            answers = await asyncio.gather(*(backend.get(f"{number}") for number in range(8)), return_exceptions=True)
            assert {type(each) for each in answers if isinstance(each, Exception)} <= {BackendUnavailableError}
            await _until_done(lambda: backend.get("k"))
            assert texts_of(await direct.get("k")) == ["a"]

        _run(network_store, scenario)

    def test_a_server_that_is_gone_is_unavailable_and_the_call_works_when_it_is_back(
        self, network_store: NetworkStore
    ) -> None:
        async def scenario(proxy: Proxy, backend: ChatHistoryBackend, direct: ChatHistoryBackend) -> None:
            await say(backend, "k", "a")
            calls: list[Callable[[], Awaitable[object]]] = [
                lambda: say(backend, "k", "b", turn_id="t"),
                lambda: backend.replace("other", records("x"), turn_id="r"),
                lambda: backend.get("k"),
                backend.summaries,
                lambda: backend.clear("k"),
            ]
            with proxy.down():
                for call in calls:
                    with pytest.raises(BackendUnavailableError) as caught:
                        await call()
                    assert caught.value.retryable
                assert texts_of(await direct.get("k")) == ["a"]
            await _until_done(lambda: say(backend, "k", "b", turn_id="t"))
            assert texts_of(await backend.get("k")) == ["a", "b"]

        _run(network_store, scenario)

    def test_an_opening_without_a_server_is_unavailable_and_works_when_it_is_back(
        self, network_store: NetworkStore
    ) -> None:
        async def scenario(proxy: Proxy, _: ChatHistoryBackend, direct: ChatHistoryBackend) -> None:
            backend = network_store.make_backend(proxy.address)
            with proxy.down(), pytest.raises(BackendUnavailableError):
                async with backend:
                    pass
            async with backend:
                await say(backend, "k", "a")
            assert texts_of(await direct.get("k")) == ["a"]

        _run(network_store, scenario)

    def test_writers_whose_connections_are_cut_again_and_again_lose_and_double_nothing(
        self, network_store: NetworkStore
    ) -> None:
        async def scenario(proxy: Proxy, backend: ChatHistoryBackend, direct: ChatHistoryBackend) -> None:
            left = 8

            async def write(name: int) -> None:
                nonlocal left
                for number in range(6):
                    turn = f"{name} {number}"
                    await _until_done(partial(say, backend, "k", f"{turn} a", f"{turn} b", turn_id=turn))
                left -= 1

            async def trouble() -> None:
                for number in range(TROUBLES):
                    before = proxy.traffic.round_trips
                    while left and proxy.traffic.round_trips < before + 3:  # noqa: ASYNC110 - of the proxy's thread
                        await asyncio.sleep(0)
                    if number % 2:
                        proxy.cut(reset=number % 4 == 1)
                    else:
                        proxy.break_next("reply" if number % 4 else "request", after=number % 7 * 5)
                proxy.mend()

            await asyncio.gather(trouble(), *(write(name) for name in range(8)))
            found = texts_of(await direct.get("k"))
            turns = [text.removesuffix(" a") for text in found[::2]]
            assert found == [f"{turn} {half}" for turn in turns for half in "ab"]
            assert sorted(turns) == sorted(f"{name} {number}" for name in range(8) for number in range(6))

        _run(network_store, scenario)


async def _cut_everywhere(
    proxy: Proxy,
    way: Way,
    call: Callable[[str], Awaitable[None]],
    check: Callable[[str], Awaitable[None]],
    before: Callable[[str], Awaitable[None]] | None = None,
) -> None:
    """Make the call, with a key of its own each time, cut at its first byte, then further on, until it is whole."""
    await call("to measure")
    start = proxy.traffic
    await call("to measure again")
    passed = proxy.traffic.since(start)
    length = max(CUTS, passed.sent if way == "request" else passed.received)
    for number in range(CUTS + 1):
        key = f"{way} {number}"
        if before is not None:
            await before(key)
        proxy.break_next(way, after=length * number // CUTS, reset=number % 4 > 1, stay_down=number % 2 == 0)
        with suppress(BackendUnavailableError):
            await call(key)
        proxy.mend()
        await check(key)


async def _until_done(call: Callable[[], Awaitable[object]]) -> None:
    """Make the call until it is answered, as a caller would: the same call, unchanged, after an error that says so."""
    while True:
        try:
            await call()
        except BackendUnavailableError:
            await asyncio.sleep(0)
        else:
            return


def _run(store: NetworkStore, scenario: Scenario) -> None:
    async def opened() -> None:
        async with (
            asyncio.timeout(TIME_LIMIT),
            store.make_backend(proxy.address) as backend,
            store.make_backend(store.address) as direct,
        ):
            await say(backend, f"warm {new_turn_id()}", "a")
            await scenario(proxy, backend, direct)

    with Proxy(store.address) as proxy:
        asyncio.run(opened())
