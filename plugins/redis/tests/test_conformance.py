"""What every backend must do, on each kind of server."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import ClassVar

import pytest
from fakeredis import FakeAsyncRedis, FakeRedis, FakeServer
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

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
from chathistory_redis import RedisBackend, RedisOptions

TTL = timedelta(days=1)

PassTime = Callable[[Redis, timedelta], None]


class TestValkey(BackendTests, ProcessTests, CrashTests, NetworkTests, ExpiryTests):
    @pytest.fixture
    def make_backend(self, valkey: str) -> BackendFactory:
        return RedisOptions(url=valkey).open

    @pytest.fixture
    def network_store(self, valkey: str) -> NetworkStore:
        return NetworkStore(valkey.removeprefix("unix://"), lambda path: RedisOptions(url=f"unix://{path}").open())

    @pytest.fixture
    def expiring_store(self, valkey: str, pass_time: PassTime) -> ExpiringStore:
        return ExpiringStore(RedisOptions(url=valkey, ttl=TTL).open, TTL, partial(pass_time, Redis.from_url(valkey)))


class TestRedis(BackendTests, ProcessTests, ExpiryTests):
    left_out: ClassVar[Mapping[type, str]] = dict.fromkeys(
        (CrashTests, NetworkTests), "the driver is the same as with Valkey"
    )

    @pytest.fixture
    def make_backend(self, redis: str) -> BackendFactory:
        return partial(RedisBackend, partial(AsyncRedis.from_url, redis, decode_responses=True), shards=3)

    @pytest.fixture
    def expiring_store(self, redis: str, pass_time: PassTime) -> ExpiringStore:
        return ExpiringStore(RedisOptions(url=redis, ttl=TTL).open, TTL, partial(pass_time, Redis.from_url(redis)))


class TestCluster(BackendTests):
    left_out: ClassVar[Mapping[type, str]] = {
        **dict.fromkeys((CrashTests, ExpiryTests, ProcessTests), "one script does it all, as on a single server"),
        NetworkTests: "a proxy stands before one of the nodes and not before the others",
    }

    @pytest.fixture
    def make_backend(self, cluster: str) -> BackendFactory:
        return RedisOptions(url=cluster, cluster=True, shards=4).open


class TestFake(BackendTests, ExpiryTests):
    @pytest.fixture
    def make_backend(self) -> BackendFactory:
        server = FakeServer()
        return partial(RedisBackend, lambda: FakeAsyncRedis(server=server), allow_eviction=True)

    @pytest.fixture
    def expiring_store(self, pass_time: PassTime) -> ExpiringStore:
        server = FakeServer()
        return ExpiringStore(
            partial(RedisBackend, lambda: FakeAsyncRedis(server=server), allow_eviction=True, ttl=TTL),
            TTL,
            partial(pass_time, FakeRedis(server=server)),
        )
