"""What may be set by a URL, by name, or by the environment."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError
from redis import Redis

from chathistory_core import ConfigurationError, open_backend
from chathistory_redis import RedisOptions

SECRET = "the-password-nobody-may-see"


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost",
        "redis://localhost:6380/2",
        "rediss://user:password@host:6379/0",
        "valkey://[::1]:6379",
        "valkeys://host/",
        "unix:///run/redis/redis.sock",
        "unix://user:password@/run/redis.sock",
    ],
)
def test_a_url_of_a_server_is_taken(url: str) -> None:
    RedisOptions(url=url).open()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost",
        "http://localhost",
        f"redis://:{SECRET}@host:port",
        f"redis://:{SECRET}@host:99999",
        f"redis://:{SECRET}@host/database",
        f"redis://:{SECRET}@host/1/2",
        "unix://",
        "unix://socket",
        "unix://run/redis.sock",
        "redis://host?db=1",
    ],
)
def test_another_url_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ValidationError) as caught:
        RedisOptions(url=url)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"url": f"redis://:{SECRET}@host", "password": SECRET},
        {"url": f"redis://user:{SECRET}@host", "username": "user"},
        {"url": f"redis://:{SECRET}@host/1", "db": 1},
        {"cluster": True, "db": 1},
        {"cluster": True, "url": "redis://host/1"},
        {"cluster": True, "url": "unix:///socket"},
        {"shards": 0},
        {"max_connections": 0},
        {"namespace": "a{b}"},
        {"namespace": ""},
        {"ttl": "0s"},
        {"db": -1},
        {"unknown": 1},
    ],
)
def test_options_that_contradict_or_are_out_of_range_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as caught:
        RedisOptions.model_validate(options)
    assert SECRET not in str(caught.value)


def test_options_show_no_password() -> None:
    shown = repr(RedisOptions.model_validate({"url": f"redis://:{SECRET}@host"}))
    shown += repr(RedisOptions.model_validate({"url": "redis://host", "password": SECRET}))
    assert SECRET not in shown


def test_every_option_reads_from_text() -> None:
    options = RedisOptions.model_validate(
        {
            "url": "valkey://host",
            "username": "user",
            "password": SECRET,
            "db": "3",
            "cluster": "false",
            "namespace": "app",
            "ttl": "30d",
            "shards": "4",
            "allow_eviction": "true",
            "max_connections": "8",
            "timeout": "5s",
        }
    )
    assert (options.ttl and options.ttl.days, options.shards, options.db) == (30, 4, 3)
    options.open()


def test_a_numbered_database_is_chosen_by_url_or_by_option(valkey: str) -> None:
    async def scenario() -> None:
        async with RedisOptions(url=valkey, db=3).open() as backend:
            await backend.replace("k", [], turn_id="t")

    asyncio.run(scenario())
    with Redis.from_url(valkey, db=3) as client:
        assert client.dbsize() > 0
    with Redis.from_url(valkey) as client:
        assert client.dbsize() == 0


def test_the_examples_of_the_readme_run(valkey: str) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    examples = re.findall(r"(?s)```python\n(.*?)```", readme)
    assert len(examples) == 2
    for example in examples:
        code = example.replace("redis://localhost:6379", valkey)
        subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.parametrize("name", ["redis", "rediss", "valkey", "valkeys", "unix"])
def test_a_name_alone_leads_to_no_server(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"option 'url' .* is missing"):
        open_backend(name)
