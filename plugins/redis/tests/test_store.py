"""How a store lies on its server: expiry, the listing, shards, namespaces, and whose client it is."""

import asyncio
import gc
import subprocess
import sys
from binascii import crc_hqx
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import cast

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio import RedisCluster

from chathistory_core import (
    BackendStateError,
    ChatHistoryBackend,
    ConfigurationError,
    Conversation,
    Order,
    Record,
    erase,
    new_turn_id,
)
from chathistory_redis import RedisBackend, RedisOptions
from chathistory_redis.patience import Patience

TTL = timedelta(days=1)

PassTime = Callable[[Redis, timedelta], None]

INDEX = {b"{chathistory}:store", *(b"{chathistory:0}:" + name for name in (b"heads", b"names", b"recent", b"expiry"))}


def records(*texts: str) -> list[Record]:
    return [Record(text.encode(), "text") for text in texts]


def texts(conversation: Conversation) -> list[str]:
    return [record.payload.decode() for record in conversation.records]


def run(options: RedisOptions, scenario: Callable[[ChatHistoryBackend], Awaitable[None]]) -> None:
    async def opened() -> None:
        async with options.open() as backend:
            await scenario(backend)

    asyncio.run(opened())


@pytest.fixture(params=["valkey", "redis"])
def url(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


def sizes_of_index(client: Redis) -> list[int]:
    tag = "{chathistory:0}:"
    return [client.hlen(f"{tag}heads"), *(client.zcard(f"{tag}{name}") for name in ("names", "recent", "expiry"))]


def test_with_a_ttl_no_key_but_the_listing_is_without_expiry(url: str) -> None:
    async def scenario(backend: ChatHistoryBackend) -> None:
        for write in (backend.append, backend.replace):
            await write(f"{write.__name__} once", records("a"), turn_id="t")
            await write(f"{write.__name__} twice", records("a"), turn_id="t")
            await write(f"{write.__name__} twice", records("b"), turn_id="u")
        await backend.replace("begun empty", [], turn_id="t")
        await backend.append("emptied", records("a") * 2_000, turn_id="t")
        await backend.replace("emptied", [], turn_id="u")
        await backend.append("goes on", records("a"), turn_id="t")
        await backend.replace("goes on", [], turn_id="u")
        await backend.append("goes on", records("a"), turn_id="v")
        await backend.append("again", records("a"), turn_id="t")
        await backend.clear("again")
        await backend.append("again", records("a"), turn_id="t")
        with Redis.from_url(url) as client:
            for _ in range(2):
                lasting = {key for key in client.keys("*") if client.ttl(key) == -1}
                assert lasting == INDEX
                await backend.append("goes on", records("a"), turn_id="v")  # a replay

    run(RedisOptions(url=url, ttl=TTL), scenario)


def test_without_a_ttl_nothing_expires(url: str) -> None:
    async def scenario(backend: ChatHistoryBackend) -> None:
        await backend.append("k", records("a"), turn_id="t")
        with Redis.from_url(url) as client:
            assert {client.ttl(key) for key in client.keys("*")} == {-1}

    run(RedisOptions(url=url), scenario)


def test_a_write_without_a_ttl_makes_what_would_expire_last(url: str, pass_time: PassTime) -> None:
    async def expiring(backend: ChatHistoryBackend) -> None:
        await backend.append("k", records("a"), turn_id="t")

    async def lasting(backend: ChatHistoryBackend) -> None:
        await backend.append("k", records("b"), turn_id="u")
        with Redis.from_url(url) as client:
            assert {client.ttl(key) for key in client.keys("*")} == {-1}
            pass_time(client, TTL * 2)
        assert texts(await backend.get("k")) == ["a", "b"]

    run(RedisOptions(url=url, ttl=TTL), expiring)
    run(RedisOptions(url=url), lasting)


def test_a_conversation_expires_by_the_clock_of_the_server(url: str) -> None:
    async def scenario(backend: ChatHistoryBackend) -> None:
        await backend.append("k", records("a"), turn_id="t")
        await asyncio.sleep(0.25)  # nobody can set that clock
        assert await backend.get("k") == Conversation("k")
        assert await backend.summaries() == []
        with Redis.from_url(url) as client:
            assert set(client.keys("*")) == INDEX

    run(RedisOptions(url=url, ttl=timedelta(seconds=0.2)), scenario)


def test_what_expired_leaves_the_listing_after_enough_writes(url: str, pass_time: PassTime) -> None:
    async def scenario(backend: ChatHistoryBackend) -> None:
        for number in range(100):
            await backend.append(f"{number}", records("a"), turn_id="t")
        with Redis.from_url(url) as client:
            assert sizes_of_index(client) == [100] * 4
            pass_time(client, TTL)
            for number in range(8):
                await backend.append("new", records("b"), turn_id=f"{number}")
            assert sizes_of_index(client) == [1] * 4
            assert len(client.keys("{chathistory:0}:*")) == 4 + 2
        assert [summary.key for summary in await backend.summaries()] == ["new"]

    run(RedisOptions(url=url, ttl=TTL), scenario)


def test_opening_takes_what_expired_out_of_the_listing(url: str, pass_time: PassTime) -> None:
    async def fill(backend: ChatHistoryBackend) -> None:
        for number in range(50):
            await backend.append(f"{number}", records("a"), turn_id="t")
        with Redis.from_url(url) as client:
            pass_time(client, TTL)

    async def look(backend: ChatHistoryBackend) -> None:
        with Redis.from_url(url) as client:
            assert sizes_of_index(client) == [0] * 4
            assert client.keys("*") == [b"{chathistory}:store"]

    run(RedisOptions(url=url, ttl=TTL), fill)
    run(RedisOptions(url=url), look)


def test_clearing_and_erasing_leave_no_key_behind(url: str) -> None:
    async def scenario(backend: ChatHistoryBackend) -> None:
        for key in "a", "b", "c":
            await backend.append(key, records("a"), turn_id="t")
        await backend.replace("d", [], turn_id="t")
        assert await backend.clear("a")
        assert await erase(backend, "", everything=True) == 3
        with Redis.from_url(url) as client:
            assert client.keys("*") == [b"{chathistory}:store"]

    run(RedisOptions(url=url, ttl=TTL), scenario)


def test_no_more_turns_are_kept_than_are_promised(url: str) -> None:
    async def scenario(backend: ChatHistoryBackend) -> None:
        for number in range(1_010):
            await backend.append("k", records("a"), turn_id=f"{number}")
        with Redis.from_url(url) as client:
            assert client.hlen("{chathistory:0}:turns:k") == 2 * 1_000
        assert (await backend.append("k", records("a"), turn_id="10")).replayed
        assert not (await backend.append("k", records("a"), turn_id="9")).replayed

    run(RedisOptions(url=url), scenario)


def test_the_newest_conversations_are_found_behind_many_that_expired(valkey: str, pass_time: PassTime) -> None:
    # so many that one call does not reach behind them
    async def lasting(backend: ChatHistoryBackend) -> None:
        for key in "a", "b":
            await backend.append(key, records("x"), turn_id="t")

    async def expiring(backend: ChatHistoryBackend) -> None:
        await backend.append("c", records("x"), turn_id="t")
        with Redis.from_url(valkey) as client:
            pass_time(client, TTL)
            head = cast("bytes", client.hget("{chathistory:0}:heads", "c"))
            more = [f"c{number}" for number in range(10_100)]
            client.hset("{chathistory:0}:heads", mapping=dict.fromkeys(more, head))
            client.zadd("{chathistory:0}:names", dict.fromkeys(more, 0))
            client.zadd("{chathistory:0}:recent", {key: -int(head[48:].split()[3]) for key in more})
            client.zadd("{chathistory:0}:expiry", {key: int(head[32:48]) for key in more})
        for limit in (1, 2, 3):
            found = await backend.summaries(limit=limit, order="recent")
            assert [summary.key for summary in found] == ["b", "a"][:limit]
            found = await backend.summaries(limit=limit)
            assert [summary.key for summary in found] == ["a", "b"][:limit]
        assert await backend.summaries(prefix="c", limit=5) == []
        rest = await backend.summaries(after=(await backend.summaries(limit=1, order="recent"))[0], order="recent")
        assert [summary.key for summary in rest] == ["a"]

    run(RedisOptions(url=valkey), lasting)
    run(RedisOptions(url=valkey, ttl=TTL), expiring)


def test_conversations_of_one_instant_are_listed_once_by_byte(url: str) -> None:
    keys = sorted(["a", "B", "aa", "a\x01", "é", "e", "\uffff", "\U00010000", "Z", "z", "~"])

    async def scenario(backend: ChatHistoryBackend) -> None:
        for key in keys:
            await backend.append(key, records("x"), turn_id="t")
        with Redis.from_url(url) as client:  # no clock is that coarse
            instant = b"1800000000000000"
            for name, head in cast("dict[bytes, bytes]", client.hgetall("{chathistory:0}:heads")).items():
                count, size, created, _, turns = head[48:].split(b" ")
                counters = b" ".join([count, size, created, instant, turns])
                client.hset("{chathistory:0}:heads", name, head[:48] + counters)
                client.zadd("{chathistory:0}:recent", {name: -int(instant)})
        for limit in (1, 2, 3, 100):
            found: list[str] = []
            after = None
            while page := await backend.summaries(after=after, limit=limit, order="recent"):
                found += [summary.key for summary in page]
                after = page[-1]
            assert found == keys

    run(RedisOptions(url=url), scenario)


def test_more_conversations_than_one_call_lists_are_listed(valkey: str) -> None:
    count = 10_050

    async def scenario(backend: ChatHistoryBackend) -> None:
        keys = [f"{number:05}" for number in range(count)]
        for start in range(0, count, 100):
            await asyncio.gather(*(backend.append(key, records("x"), turn_id="t") for key in keys[start : start + 100]))
        with Redis.from_url(valkey) as client:
            client.config_resetstat()
            listed = await backend.summaries()
            assert client.info("commandstats")["cmdstat_evalsha"]["calls"] == count // 1_000 + 1
        assert [summary.key for summary in listed] == keys
        assert [summary.key for summary in await backend.summaries(limit=10_020)] == keys[:10_020]
        recent = sorted(listed, key=lambda summary: (-summary.updated_at.timestamp(), summary.key))
        assert await backend.summaries(order="recent") == recent
        assert await backend.summaries(order="recent", limit=10_020) == recent[:10_020]
        assert await backend.summaries(order="recent", limit=10_000) == recent[:10_000]
        assert (
            await backend.summaries(order="recent", prefix="1", limit=3)
            == [summary for summary in recent if summary.key.startswith("1")][:3]
        )

    run(RedisOptions(url=valkey), scenario)


def test_a_shard_that_has_more_of_a_page_than_the_others_is_asked_for_all_of_it(url: str) -> None:
    names = [f"{number:04}" for number in range(800)]
    in_one = [key for key in names if crc_hqx(key.encode(), 0) % 8 == 3][:60]
    keys = sorted([*in_one, *(f"z{number}" for number in range(40))])

    async def scenario(backend: ChatHistoryBackend) -> None:
        for key in reversed(keys):
            await backend.append(key, records("x"), turn_id="t")
        for limit in (1, 8, 50, 60, 80, 100, 1_000):
            assert [each.key for each in await backend.summaries(limit=limit)] == keys[:limit]
            assert [each.key for each in await backend.summaries(limit=limit, order="recent")] == keys[:limit]
        half = await backend.summaries(limit=30, order="recent")
        for order in ("key", "recent"):
            assert [each.key for each in await backend.summaries(after=half[-1], limit=40, order=order)] == keys[30:70]
        assert [each.key for each in await backend.summaries(prefix="0", limit=25)] == in_one[:25]
        assert await backend.summaries(limit=0) == []

    run(RedisOptions(url=url, shards=8), scenario)


@pytest.mark.parametrize("order", ["key", "recent"])
@pytest.mark.parametrize("shards", [1, 8])
def test_a_page_makes_the_server_do_the_same_whatever_the_number_of_conversations(
    shards: int, order: Order, url: str
) -> None:
    async def scenario(backend: ChatHistoryBackend) -> None:
        work = []
        with Redis.from_url(url) as client:
            for start, stop in ((0, 400), (400, 1_600)):
                keys = [f"{number:05}" for number in range(start, stop)]
                await asyncio.gather(*(backend.append(key, records("x"), turn_id="t") for key in keys))
                (after,) = (await backend.summaries(order=order, limit=stop // 2))[-1:]
                client.config_resetstat()
                assert len(await backend.summaries(order=order, limit=50, after=after)) == 50
                told = cast("dict[str, dict[str, int]]", client.info("commandstats"))
                reads = client.info("stats")["total_reads_processed"]
                work.append((reads, {name: each["calls"] for name, each in told.items() if "config" not in name}))
        assert work[0] == work[1]
        assert work[0][1]["cmdstat_evalsha"] == shards
        assert work[0][0] == 3  # the page of all shards, and two questions of this test

    run(RedisOptions(url=url, shards=shards), scenario)


def test_an_opening_that_fails_leaves_no_timer_behind(valkey: str) -> None:
    async def scenario() -> None:
        async with RedisOptions(url=valkey, shards=5).open():
            pass
        with pytest.raises(ConfigurationError):
            async with RedisOptions(url=valkey, shards=4, timeout=timedelta(hours=1)).open():
                pass
        gc.collect()
        assert not [each for each in gc.get_objects() if isinstance(each, Patience)]  # a timer would hold it

    asyncio.run(scenario())


def test_the_number_of_shards_is_fixed_when_a_store_is_made(url: str) -> None:
    async def fill(backend: ChatHistoryBackend) -> None:
        for number in range(20):
            await backend.append(f"{number}", records("a"), turn_id="t")

    async def look(backend: ChatHistoryBackend) -> None:
        assert len(await backend.summaries()) == 20
        assert (await backend.append("7", records("a"), turn_id="t")).replayed

    run(RedisOptions(url=url, shards=5), fill)
    run(RedisOptions(url=url, shards=5), look)
    run(RedisOptions(url=url), look)
    for shards in (1, 4):
        with pytest.raises(ConfigurationError, match=f"has 5 shards, not {shards}"):
            run(RedisOptions(url=url, shards=shards), look)
    with Redis.from_url(url) as client:
        tags = {key.partition(b"}")[0] for key in client.keys("{chathistory:*")}
        assert tags == {b"{chathistory:%d" % number for number in range(5)}


def test_a_new_store_has_one_shard(url: str) -> None:
    async def scenario(backend: ChatHistoryBackend) -> None:
        await backend.append("k", records("a"), turn_id="t")

    run(RedisOptions(url=url), scenario)
    run(RedisOptions(url=url, shards=1), scenario)
    with pytest.raises(ConfigurationError, match="has 1 shards, not 2"):
        run(RedisOptions(url=url, shards=2), scenario)


def test_namespaces_share_a_server_and_nothing_else(url: str) -> None:
    async def scenario() -> None:
        names = ("chathistory", "other", "other:0", "ö ther")
        backends = [RedisOptions(url=url, namespace=name, shards=2).open() for name in names]
        for name, backend in zip(names, backends, strict=True):
            async with backend:
                await backend.append("k", records(name), turn_id="t")
        for name, backend in zip(names, backends, strict=True):
            async with backend:
                assert texts(await backend.get("k")) == [name]
                assert len(await backend.summaries()) == 1
                assert await backend.clear("k")

    asyncio.run(scenario())


def test_a_cluster_keeps_shards_on_several_nodes(cluster: str, cluster_nodes: list[str]) -> None:
    async def scenario(backend: ChatHistoryBackend) -> None:
        keys = [f"{number:02}" for number in range(60)]
        await asyncio.gather(*(backend.append(key, records(key), turn_id="t") for key in keys))
        assert [summary.key for summary in await backend.summaries()] == keys
        recent = await backend.summaries(order="recent", limit=60)
        assert [summary.updated_at for summary in recent] == sorted((each.updated_at for each in recent), reverse=True)
        assert {summary.key for summary in recent} == set(keys)
        assert await erase(backend, "", everything=True) == 60

    run(RedisOptions(url=cluster, cluster=True, shards=8), scenario)
    held = []
    for node in cluster_nodes:
        with Redis.from_url(node) as client:
            held.append(client.info("commandstats")["cmdstat_evalsha"]["calls"])
    assert all(held)


def test_a_borrowed_client_stays_open(valkey: str) -> None:
    async def scenario() -> None:
        async with AsyncRedis.from_url(valkey) as client:
            for _ in range(2):
                async with RedisBackend(client) as backend:
                    await backend.append("k", records("a"), turn_id="t")
            connections = client.connection_pool.get_connection_count()
            assert await client.ping()
            assert client.connection_pool.get_connection_count() == connections

    asyncio.run(scenario())


def test_a_borrowed_cluster_client_stays_open(cluster: str) -> None:
    async def scenario() -> None:
        async with RedisCluster.from_url(cluster, decode_responses=True) as client:
            async with RedisBackend(client, shards=3) as backend:
                await asyncio.gather(*(backend.append(f"{n}", records("a"), turn_id="t") for n in range(50)))
                assert len(await backend.summaries()) == 50
                assert await backend.clear("7")
            assert await client.ping()

    asyncio.run(scenario())


def test_an_owned_client_is_closed_and_made_anew_at_each_opening(valkey: str) -> None:
    made: list[AsyncRedis] = []

    def make() -> AsyncRedis:
        made.append(AsyncRedis.from_url(valkey))
        return made[-1]

    backend = RedisBackend(make)

    async def scenario() -> None:
        async with backend:
            await backend.append("k", records("a"), turn_id=new_turn_id())
        with Redis.from_url(valkey) as client:
            assert len(client.client_list()) == 1

    for count in (1, 2):
        asyncio.run(scenario())
        assert len(made) == count


def test_a_call_while_the_backend_is_being_opened_is_refused(valkey: str) -> None:
    async def scenario() -> None:
        backend = RedisOptions(url=valkey).open()
        opening = asyncio.create_task(backend.__aenter__())
        await asyncio.sleep(0)
        with pytest.raises(BackendStateError, match="being opened"):
            await backend.get("k")
        await opening
        assert await backend.get("k") == Conversation("k")
        await backend.__aexit__(None, None, None)

    asyncio.run(scenario())


@pytest.mark.parametrize("namespace", ["", "a{b", "a}b", "a\nb", "\0"])
def test_a_namespace_that_would_break_hash_tags_is_refused(namespace: str) -> None:
    with pytest.raises(ValueError, match="namespace"):
        RedisBackend(AsyncRedis, namespace=namespace)


def test_numbers_out_of_range_are_refused() -> None:
    for ttl in (timedelta(0), timedelta(seconds=-1), timedelta(days=100_000)):
        with pytest.raises(ValueError, match="ttl"):
            RedisBackend(AsyncRedis, ttl=ttl)
    for shards in (0, 257):
        with pytest.raises(ValueError, match="shards"):
            RedisBackend(AsyncRedis, shards=shards)
    for timeout in (timedelta(0), timedelta(seconds=-1)):
        with pytest.raises(ValueError, match="timeout"):
            RedisBackend(AsyncRedis, timeout=timeout)


def test_a_format_that_could_not_be_told_from_its_record_is_refused(valkey: str) -> None:
    async def scenario(backend: ChatHistoryBackend) -> None:
        with pytest.raises(ValueError, match="format"):
            await backend.append("k", [Record(b"a", "te\0xt")], turn_id="t")
        assert await backend.get("k") == Conversation("k")

    run(RedisOptions(url=valkey), scenario)


def test_looking_at_the_plugin_loads_no_driver() -> None:
    code = (
        "import sys, chathistory_redis.plugin as plugin; plugin.chathistory_backend().options(url='redis://host');"
        "sys.exit('redis' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
