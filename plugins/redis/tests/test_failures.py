"""A server that is full, locked, a replica, or holds what is not ours; and what goes on afterwards."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from chathistory_core import (
    BackendError,
    BackendUnavailableError,
    ChatHistoryBackend,
    ChatHistoryError,
    ConfigurationError,
    Conversation,
    Record,
    new_turn_id,
)
from chathistory_redis import RedisBackend, RedisOptions

Start = Callable[[dict[str, str]], str]
Scenario = Callable[[ChatHistoryBackend], Awaitable[None]]

LONG = [Record(bytes(3 * 2**20), "text")] * 2
"""So much that a read takes two pages."""

PASSWORD = "the-pass-word-nobody-may-see"


def records(*texts: str) -> list[Record]:
    return [Record(text.encode(), "text") for text in texts]


def texts(conversation: Conversation) -> list[str]:
    return [record.payload.decode() for record in conversation.records]


def run(options: RedisOptions, scenario: Scenario) -> None:
    async def opened() -> None:
        async with options.open() as backend:
            await scenario(backend)

    asyncio.run(opened())


async def nothing(backend: ChatHistoryBackend) -> None:
    pass


@pytest.fixture(params=["valkey", "redis"])
def url(request: pytest.FixtureRequest) -> str:
    """Each kind of server: they word errors inside scripts differently."""
    found: str = request.getfixturevalue(request.param)
    return found


def refused(options: RedisOptions, kind: type[ChatHistoryError], words: str) -> ChatHistoryError:
    with pytest.raises(kind, match=words) as caught:
        run(options, nothing)
    assert PASSWORD not in str(caught.value)
    assert caught.value.__cause__ is None
    return caught.value


def test_a_server_that_is_not_there_is_unavailable(folder: Path) -> None:
    for url in (f"unix://{folder}/nobody", "redis://127.0.0.1:1"):
        assert refused(RedisOptions(url=url), BackendUnavailableError, "connection failed").retryable


@pytest.mark.parametrize("password", [None, PASSWORD])
def test_an_opening_that_gets_no_answer_in_time_is_an_error(password: str | None, folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(folder / f"silent{password is None}"))
        silent.listen()
        options = RedisOptions(
            url=f"unix://{silent.getsockname()}",
            password=None if password is None else SecretStr(password),
            timeout=timedelta(milliseconds=100),
        )
        assert refused(options, BackendUnavailableError, "in time").retryable


@pytest.fixture
def locked(start: Start) -> str:
    """The URL of a server that wants a password."""
    url = start({})
    with Redis.from_url(url) as client:
        client.config_set("requirepass", PASSWORD)
    return url


def test_a_wrong_or_missing_password_is_told_without_it(locked: str) -> None:
    wrong = f"{PASSWORD}-but-wrong"
    refused(RedisOptions(url=locked.replace("unix://", f"unix://:{wrong}@")), ConfigurationError, "password")
    refused(RedisOptions.model_validate({"url": locked, "password": wrong}), ConfigurationError, "password")
    refused(RedisOptions(url=locked), ConfigurationError, "password")


def test_a_right_password_opens_from_the_url_and_beside_it(locked: str) -> None:
    run(RedisOptions(url=locked.replace("unix://", f"unix://:{PASSWORD}@")), nothing)
    run(RedisOptions.model_validate({"url": locked, "password": PASSWORD}), nothing)
    run(RedisOptions.model_validate({"url": locked, "username": "default", "password": PASSWORD}), nothing)


def test_a_user_without_a_right_is_told_so(valkey: str) -> None:
    with Redis.from_url(valkey) as client:
        client.acl_setuser("reader", enabled=True, nopass=True, keys=["*"], commands=["+@read", "+@connection"])
        try:
            options = RedisOptions(url=valkey, username="reader", allow_eviction=True)
            refused(options, ConfigurationError, "grant")
            refused(RedisOptions(url=valkey, username="reader"), ConfigurationError, "INFO")
        finally:
            client.acl_deluser("reader")


def test_a_user_needs_no_more_rights_than_the_readme_says(valkey: str) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    (rule,) = [line.strip() for line in readme.splitlines() if line.strip().startswith("ACL SETUSER")]
    with Redis.from_url(valkey) as client:
        client.execute_command(*rule.replace("PASSWORD", "secret").split())
        try:

            async def scenario(backend: ChatHistoryBackend) -> None:
                await backend.append("k", records("a"), turn_id="t")
                await backend.replace("k", records("b"), turn_id="u")
                assert texts(await backend.get("k")) == ["b"]
                assert len(await backend.summaries(limit=3, order="recent")) == 1
                assert await backend.clear("k")

            options = {"url": valkey, "username": "chathistory", "password": "secret", "ttl": "1d"}
            run(RedisOptions.model_validate(options), scenario)
        finally:
            client.acl_deluser("chathistory")


def test_a_full_server_takes_nothing_keeps_everything_and_goes_on_later(url: str) -> None:
    with Redis.from_url(url) as client:

        async def scenario(backend: ChatHistoryBackend) -> None:
            await backend.append("k", records("a"), turn_id="t")
            held = await backend.get("k")
            client.config_set("maxmemory", "1")
            for call in (
                backend.append("k", records("b"), turn_id="u"),
                backend.append("new", records("b"), turn_id="u"),
                backend.replace("k", records("b"), turn_id="u"),
            ):
                with pytest.raises(BackendUnavailableError, match="memory"):
                    await call
            assert await backend.get("k") == held
            assert [summary.key for summary in await backend.summaries()] == ["k"]
            client.config_set("maxmemory", "0")
            assert not (await backend.append("k", records("b"), turn_id="u")).replayed
            assert texts(await backend.get("k")) == ["a", "b"]

        try:
            run(RedisOptions(url=url), scenario)
        finally:
            client.config_set("maxmemory", "0")


def test_a_full_server_still_clears(url: str) -> None:
    with Redis.from_url(url) as client:

        async def scenario(backend: ChatHistoryBackend) -> None:
            await backend.append("k", records("a"), turn_id="t")
            client.config_set("maxmemory", "1")
            assert await backend.clear("k")

        try:
            run(RedisOptions(url=url), scenario)
        finally:
            client.config_set("maxmemory", "0")


def test_a_server_that_becomes_a_replica_refuses_writes_until_it_is_none(url: str) -> None:
    with Redis.from_url(url) as client:

        async def scenario(backend: ChatHistoryBackend) -> None:
            await backend.append("k", records("a"), turn_id="t")
            client.replicaof("127.0.0.1", "1")
            for call in (backend.append("k", records("b"), turn_id="u"), backend.clear("k")):
                with pytest.raises(BackendUnavailableError, match="replica"):
                    await call
            assert texts(await backend.get("k")) == ["a"]
            client.replicaof("NO", "ONE")
            await backend.append("k", records("b"), turn_id="u")
            assert texts(await backend.get("k")) == ["a", "b"]

        try:
            run(RedisOptions(url=url), scenario)
        finally:
            client.replicaof("NO", "ONE")


def test_a_server_with_too_few_replicas_is_unavailable(valkey: str) -> None:
    with Redis.from_url(valkey) as client:  # scripts in the older Redis do not look at replicas

        async def scenario(backend: ChatHistoryBackend) -> None:
            client.config_set("min-replicas-to-write", "1")
            with pytest.raises(BackendUnavailableError, match="fewer replicas"):
                await backend.append("k", records("a"), turn_id="t")
            client.config_set("min-replicas-to-write", "0")
            assert not (await backend.append("k", records("a"), turn_id="t")).replayed

        try:
            run(RedisOptions(url=valkey), scenario)
        finally:
            client.config_set("min-replicas-to-write", "0")


@pytest.mark.parametrize("size", [1, 3 * 2**20])
@pytest.mark.parametrize("ttl", [None, timedelta(days=1)])
def test_a_foreign_key_in_our_place_is_told_and_nothing_is_changed(size: int, ttl: timedelta | None, url: str) -> None:
    batch = [Record(bytes(size), "text")] * 2

    def calls(backend: ChatHistoryBackend) -> list[Callable[[], Awaitable[object]]]:
        return [
            lambda: backend.append("k", batch, turn_id="u"),
            lambda: backend.append("new", batch, turn_id="u"),
            lambda: backend.replace("k", records("b"), turn_id="u"),
            lambda: backend.replace("new", records("b"), turn_id="u"),
            lambda: backend.clear("k"),
            lambda: backend.clear("new"),
        ]

    with Redis.from_url(url) as client:

        def keep() -> dict[bytes, bytes | None]:
            return {key: client.dump(key) for key in client.keys("*")}

        async def scenario(backend: ChatHistoryBackend) -> None:
            refused = 0
            parts = ["sizes:k", "sizes:new"]
            if size == 1:
                parts += ["heads", "names", "recent", "expiry", "records:k", "records:new", "turns:k", "turns:new"]
            for name in (f"{{chathistory:0}}:{part}" for part in parts):
                for number in range(6):
                    client.flushdb()
                    await backend.append("k", batch, turn_id="t")
                    client.delete(name)
                    client.set(name, "of another application")
                    before = keep()
                    found = await asyncio.gather(calls(backend)[number](), return_exceptions=True)
                    if isinstance(found[0], BackendError):
                        assert "another application" in str(found[0])
                        assert keep() == before
                        refused += 1
                    assert client.get(name) == b"of another application"
            assert refused >= len(parts) * 2

        run(RedisOptions(url=url, ttl=ttl), scenario)


def test_a_foreign_key_among_the_expiries_stops_a_write_that_would_end_one(url: str) -> None:
    async def expiring(backend: ChatHistoryBackend) -> None:
        await backend.append("k", records("a"), turn_id="t")

    async def lasting(backend: ChatHistoryBackend) -> None:
        with Redis.from_url(url) as client:
            client.set("{chathistory:0}:expiry", "of another application")
            with pytest.raises(BackendError, match="another application"):
                await backend.append("k", records("b"), turn_id="u")
            client.delete("{chathistory:0}:expiry")
        assert texts(await backend.get("k")) == ["a"]
        assert not (await backend.append("k", records("b"), turn_id="u")).replayed

    run(RedisOptions(url=url, ttl=timedelta(days=1)), expiring)
    run(RedisOptions(url=url), lasting)


def test_a_lost_part_of_a_conversation_is_told_until_it_is_cleared(url: str) -> None:
    with Redis.from_url(url) as client:

        async def scenario(backend: ChatHistoryBackend) -> None:
            for part in ("records", "sizes", "turns"):
                await backend.append("k", LONG, turn_id="t")
                client.delete(f"{{chathistory:0}}:{part}:k")
                with pytest.raises(BackendError, match="lost"):
                    await backend.append("k", records("c"), turn_id="u")
                if part in ("records", "sizes"):
                    with pytest.raises(BackendError, match="lost"):
                        await backend.get("k")
                assert await backend.clear("k")
                await backend.append("k", records("new"), turn_id="t")
                assert texts(await backend.get("k")) == ["new"]
                await backend.clear("k")

        run(RedisOptions(url=url), scenario)


def test_where_eviction_is_allowed_what_lost_a_part_counts_as_expired(url: str) -> None:
    with Redis.from_url(url) as client:

        async def scenario(backend: ChatHistoryBackend) -> None:
            for part in ("records", "sizes", "turns"):
                first = await backend.append("k", LONG, turn_id="t")
                client.delete(f"{{chathistory:0}}:{part}:k")
                if part in ("records", "sizes"):
                    assert await backend.get("k") == Conversation("k")
                again = await backend.append("k", LONG[:1] * 3, turn_id="t", expected_revision="")
                assert not again.replayed
                assert again.epoch != first.epoch
                assert len((await backend.get("k")).records) == 3
                client.delete(f"{{chathistory:0}}:{part}:k")
                assert await backend.clear("k") is False
                assert await backend.summaries() == []

        run(RedisOptions(url=url, allow_eviction=True), scenario)


def test_a_lost_listing_hides_no_leftovers_from_a_new_start(url: str) -> None:
    with Redis.from_url(url) as client:

        async def scenario(backend: ChatHistoryBackend) -> None:
            await backend.append("k", records("a", "b"), turn_id="t")
            client.delete("{chathistory:0}:heads")
            assert await backend.get("k") == Conversation("k")
            assert await backend.summaries() == await backend.summaries(limit=5, order="recent") == []
            assert not (await backend.append("k", records("new"), turn_id="t")).replayed
            assert texts(await backend.get("k")) == ["new"]

        run(RedisOptions(url=url, allow_eviction=True), scenario)


@pytest.mark.parametrize(
    ("maxmemory", "policy", "opens"),
    [
        ("100mb", "allkeys-lru", False),
        ("100mb", "volatile-ttl", False),
        ("100mb", "noeviction", True),
        ("0", "allkeys-lru", True),
    ],
)
def test_a_server_that_evicts_is_refused_unless_that_is_allowed(
    maxmemory: str, policy: str, opens: bool, url: str
) -> None:
    with Redis.from_url(url) as client:
        client.config_set("maxmemory", maxmemory)
        client.config_set("maxmemory-policy", policy)
        try:
            if opens:
                run(RedisOptions(url=url), nothing)
            else:
                refused(RedisOptions(url=url), ConfigurationError, "allow_eviction")
            run(RedisOptions(url=url, allow_eviction=True), nothing)
        finally:
            client.config_set("maxmemory", "0")
            client.config_set("maxmemory-policy", "noeviction")


def test_a_node_of_a_cluster_that_evicts_is_refused(cluster: str, cluster_nodes: list[str]) -> None:
    with Redis.from_url(cluster_nodes[2]) as client:
        client.config_set("maxmemory", "100mb")
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            refused(RedisOptions(url=cluster, cluster=True), ConfigurationError, "allow_eviction")
            run(RedisOptions(url=cluster, cluster=True, allow_eviction=True), nothing)
        finally:
            client.config_set("maxmemory", "0")
            client.config_set("maxmemory-policy", "noeviction")


def test_scripts_that_the_server_forgot_run_all_the_same(url: str) -> None:
    with Redis.from_url(url) as client:

        async def scenario(backend: ChatHistoryBackend) -> None:
            for operation in (
                lambda: backend.append("k", records("a"), turn_id=new_turn_id()),
                lambda: backend.get("k"),
                lambda: backend.summaries(),
                lambda: backend.replace("k", records("b"), turn_id=new_turn_id()),
                lambda: backend.clear("k"),
            ):
                client.script_flush()
                await operation()
            assert await backend.get("k") == Conversation("k")

        run(RedisOptions(url=url), scenario)


def test_a_failed_opening_leaves_the_backend_closed_and_ready_to_open(valkey: str) -> None:
    with Redis.from_url(valkey) as client:
        client.set("{chathistory}:store", "2 1")
        options = RedisOptions(url=valkey)
        backend = options.open()

        async def scenario() -> None:
            for _ in range(2):
                with pytest.raises(ConfigurationError, match="version 2"):
                    await backend.__aenter__()
            client.delete("{chathistory}:store")
            async with backend:
                await backend.append("k", records("a"), turn_id="t")

        asyncio.run(scenario())


def test_an_empty_pool_of_a_borrowed_client_is_told(valkey: str) -> None:
    async def scenario() -> None:
        async with AsyncRedis.from_url(valkey, max_connections=2) as client, RedisBackend(client) as backend:
            taken = [
                await client.connection_pool.get_connection()  # type: ignore[no-untyped-call]  # a decorator hides its types
                for _ in range(2)
            ]
            with pytest.raises(BackendUnavailableError, match="pool"):
                await backend.append("k", records("a"), turn_id="t")
            for connection in taken:
                await client.connection_pool.release(connection)
            assert not (await backend.append("k", records("a"), turn_id="t")).replayed

    asyncio.run(scenario())


def test_a_cluster_needs_a_clusters_client_and_another_server_none(valkey: str, cluster: str) -> None:
    refused(RedisOptions(url=cluster, namespace="other"), ConfigurationError, "node of a cluster: open it with")

    async def scenario() -> None:
        with Redis.from_url(valkey) as client:
            client.config_set("port", f"{port}")
        async with RedisOptions(url=f"redis://127.0.0.1:{port}", cluster=True).open():
            pass

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    try:
        with pytest.raises(ConfigurationError, match="no node of a cluster"):
            asyncio.run(scenario())
    finally:
        with Redis.from_url(valkey) as client:
            client.config_set("port", "0")


def test_a_cluster_that_is_not_there_is_unavailable() -> None:
    options = RedisOptions(url="redis://127.0.0.1:1", cluster=True)
    assert refused(options, BackendUnavailableError, "no node that answers").retryable
