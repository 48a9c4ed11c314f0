"""What may be set by a URL, by name, or by the environment."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pytest
from pydantic import ValidationError

from chathistory_core import ConfigurationError, open_backend
from chathistory_core.plugin import BackendOptions, BackendPlugin
from chathistory_http import HTTPOptions, tls

SECRET = "the-token-nobody-may-see"
URL = "CHAT_HISTORY_SERVICE_URL"
TOKEN = "CHAT_HISTORY_SERVICE_TOKEN"


class Running(Protocol):
    url: str


def https() -> type[BackendOptions]:
    """What the name `https` is opened with."""
    offer = tls.chathistory_backend()
    assert isinstance(offer, BackendPlugin)
    return offer.options


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost",
        "http://localhost:5000/",
        "https://history.example/behind/a%20path",
        "http://127.0.0.1:8080",
        "http://[::1]:5000",
    ],
)
def test_a_url_of_a_service_is_taken(url: str) -> None:
    assert HTTPOptions(url=url).url == url
    HTTPOptions(url=url).open()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:5000",
        "redis://localhost",
        "http://",
        "http://:5000",
        "http://host:0",
        "http://host:99999",
        f"http://host:{SECRET}",
        f"http://[{SECRET}",
        f"http://user:{SECRET}@host",
        f"http://{SECRET}@host",
        f"http://host?token={SECRET}",
        "http://host/a b",
        "http://höst",
    ],
)
def test_another_url_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ValidationError) as caught:
        HTTPOptions(url=url)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"token": f"{SECRET}\r\nX: y"},
        {"token": f"{SECRET} "},
        {"token": ""},
        {"timeout": "0s"},
        {"max_connections": 0},
        {"retries": -1},
        {"unknown": 1},
    ],
)
def test_options_that_are_out_of_range_are_refused_without_showing_them(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as caught:
        HTTPOptions.model_validate(options)
    assert SECRET not in str(caught.value)


def test_options_and_the_backend_show_no_token() -> None:
    options = HTTPOptions.model_validate({"url": "http://host", "token": SECRET})
    assert SECRET not in f"{options!r} {options} {options.open()!r} {vars(options.open())}"


def test_every_option_reads_from_text() -> None:
    options = HTTPOptions.model_validate(
        {"url": "https://host", "token": SECRET, "timeout": "5s", "max_connections": "8", "retries": "0"}
    )
    assert (options.timeout.total_seconds(), options.max_connections, options.retries) == (5, 8, 0)
    assert options.token is not None
    assert options.token.get_secret_value() == SECRET


def test_without_a_url_the_environment_s_is_taken_with_its_token_then_the_one_of_the_article(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (HTTPOptions().url, HTTPOptions().token) == ("http://localhost:5000", None)
    assert HTTPOptions().timeout.total_seconds() == 60
    monkeypatch.setenv(URL, "https://history.example")
    monkeypatch.setenv(TOKEN, SECRET)
    options = HTTPOptions()
    assert options.url == "https://history.example"
    assert options.token is not None
    assert options.token.get_secret_value() == SECRET


def test_the_environment_s_token_goes_to_no_url_that_was_given_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URL, "https://history.example")
    monkeypatch.setenv(TOKEN, SECRET)
    assert HTTPOptions(url="https://another.example").token is None
    own = HTTPOptions.model_validate({"url": "https://another.example", "token": "own"}).token
    assert own is not None
    assert own.get_secret_value() == "own"


def test_a_url_of_the_environment_that_cannot_be_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URL, f"ftp://{SECRET}")
    with pytest.raises(ConfigurationError, match=URL) as caught:
        open_backend("http")
    assert SECRET not in str(caught.value)


def test_https_alone_leads_nowhere_without_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValidationError, match="url"):
        https().model_validate({})
    with pytest.raises(ValidationError, match="https://host"):
        https().model_validate({"url": "http://host"})
    monkeypatch.setenv(URL, "http://history.example")
    with pytest.raises(ValidationError, match="https://host"):
        https().model_validate({})
    monkeypatch.setenv(URL, "https://history.example")
    https().model_validate({}).open()


def test_the_names_are_those_of_the_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    open_backend("http")
    open_backend("https://host")
    with pytest.raises(ConfigurationError, match=r"option 'url' .* is missing"):
        open_backend("https")
    with pytest.raises(ConfigurationError, match=r"https://host:port"):
        open_backend("https", options={"url": "http://host"})


def test_a_url_names_the_backend_and_its_query_the_options(sqlite_service: Running) -> None:
    async def main() -> None:
        async with open_backend(f"{sqlite_service.url}?timeout=5s&retries=1") as backend:
            assert (await backend.get("unknown")).record_count == 0

    asyncio.run(main())
    with pytest.raises(ConfigurationError, match=r"did you mean 'retries'"):
        open_backend("https://host?retrys=1")


def test_importing_the_package_or_its_plugin_imports_no_driver() -> None:
    code = (
        "import sys, chathistory_http, chathistory_http.plugin; from chathistory_http import HTTPOptions; "
        "HTTPOptions(url='http://host'); print({'httpx', 'fastapi', 'uvicorn', 'starlette'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "set()\n"


def test_the_package_offers_what_it_lists() -> None:
    import chathistory_http

    for name in chathistory_http.__all__:
        assert getattr(chathistory_http, name).__name__ == name
    with pytest.raises(AttributeError):
        _ = chathistory_http.nothing


def test_the_examples_of_the_readme_run(sqlite_service: Running) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    examples = re.findall(r"(?s)```python\n(.*?)```", readme)
    assert len(examples) == 3
    for example in examples:
        code = example.replace("http://localhost:5000", sqlite_service.url)
        subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_the_token_of_the_environment_goes_to_the_url_of_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URL, raising=False)
    monkeypatch.setenv(TOKEN, SECRET)
    assert HTTPOptions().token is None
    monkeypatch.setenv(URL, "http://elsewhere")
    token = HTTPOptions().token
    assert token is not None
    assert token.get_secret_value() == SECRET
