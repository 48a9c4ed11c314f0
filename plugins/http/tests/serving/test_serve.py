"""`chathistory serve` and `chathistory service-token`, as they are started and stopped."""

import asyncio
import os
import re
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest
import trustme
from fastapi import FastAPI
from starlette.testclient import TestClient

from chathistory_core import open_backend
from chathistory_core.cli import main
from chathistory_http.service import Access, create_app
from chathistory_http.service.serving import listen, make_app
from chathistory_http.service.settings import Settings, addresses
from chathistory_http.service.token_file import add_token, read_tokens
from chathistory_http.service.tokens import RIGHTS, new_token, token_of

ROOT = Path(__file__).resolve().parents[4]
SECONDS = 60.0
"""How long anything may take, on a machine that has other things to do."""

get, post = partial(httpx.get, timeout=SECONDS), partial(httpx.post, timeout=SECONDS)

BODY = b'{"messages":[{"role":"user","contents":[{"$type":"text","text":"a secret"}]}]}'
JSON = {"Content-Type": "application/json"}


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in [name for name in os.environ if name.startswith("CHATHISTORY_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)


Start = Callable[..., Any]


class Run(Protocol):
    """Runs `chathistory` in this process: its exit code, what it printed, and what it said beside that."""

    def __call__(self, *arguments: str) -> tuple[int, str, str]: ...


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["chathistory", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, printed.out, printed.err

    return run


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def address_of(service: Any) -> tuple[str, int]:
    url = httpx.URL(service.url)
    assert url.port is not None
    return url.host, url.port


def stored(url: str, key: str) -> int:
    """How many records the conversation has."""

    async def count() -> int:
        async with open_backend(url) as backend:
            return (await backend.get(key, limit=0)).record_count

    return asyncio.run(count())


# What is refused.


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "give tokens .* or say --allow-anonymous"),
        (["--host", "::"], "give tokens"),
        (["--host", "0.0.0.0", "--allow-anonymous"], "pass in the clear: .* --behind-proxy"),
        (["--host", "0.0.0.0", "--tokens", "tokens.toml"], "pass in the clear"),
        (["--behind-proxy", "127.0.0.1"], "behind a proxy others .* give tokens"),
        (["--behind-proxy", "*", "--allow-anonymous"], "'\\*' is no IP address"),
        (["--behind-proxy", "10.0.0.1/8", "--allow-anonymous"], "'10.0.0.1/8' is no IP address"),
        (["--allow-anonymous", "--tokens", "tokens.toml"], "give one of them"),
        (["--tokens", "absent.toml"], "absent.toml' cannot be read"),
        (["--tls-key", "key.pem"], "go together"),
        (["--tls-key", "key.pem", "--tls-certificate", "cert.pem"], "no certificate and its key"),
        (["--tls-key", "tokens.toml", "--tls-certificate", "tokens.toml"], "no certificate and its key"),
        (["--root-path", "history"], "begins with a /"),
        (["--cors-origin", "*"], "name the sites"),
        (["--url", "memory://", "--workers", "2"], "a store in 'memory' is one process's"),
        (["--url", "memory://shared", "--workers", "2"], "a store in 'memory' is one process's"),
        (["--host", "host.invalid"], "'host.invalid' cannot be found"),
        (["--url", "sqlite:///absent/folder/history.db"], "absent"),
        (["--url", "nothing://"], "nothing"),
        (["--option", "tll=3d"], "option 'tll'"),
    ],
)
def test_what_is_unsafe_or_cannot_be_is_refused_in_one_line(arguments: list[str], said: str, cli: Run) -> None:
    Path("tokens.toml").write_text("", "utf-8")
    status, out, err = cli("serve", "--port", "0", *arguments)
    assert (status, out) == (1, "")
    assert re.search(said, err), err
    assert err.count("\n") == 1


def test_a_port_that_is_taken_is_told(cli: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        status, _, err = cli("serve", "--url", "memory://", "--port", str(taken.getsockname()[1]))
    assert status == 1
    assert "cannot be listened on" in err


def test_without_the_server_s_packages_it_says_what_to_install(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "chathistory_http.service.serving")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    status, _, err = cli("serve", "--url", "memory://")
    assert status == 1
    assert 'uvicorn is not installed. Run: pip install "chathistory-core[server]"' in err


@pytest.mark.parametrize("variable", ["CHATHISTORY_SERVICE_PROT", "CHATHISTORY_SERVICE_", "CHATHISTORY_SERVICE_URL"])
def test_an_unknown_variable_of_the_service_is_refused(
    variable: str, cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "1")
    status, _, err = cli("serve", "--url", "memory://")
    assert status == 1
    assert variable in err
    assert "CHATHISTORY_SERVICE_PORT" in err


def test_a_token_in_the_environment_that_can_be_guessed_is_refused_and_not_shown(
    cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHATHISTORY_SERVICE_TOKEN", "hunter2")
    status, out, err = cli("serve", "--url", "memory://")
    assert status == 1
    assert "hunter2" not in out + err


@pytest.mark.parametrize(
    "arguments",
    [["--port", "70000"], ["--workers", "0"], ["--rate", "0"], ["--log-level", "loud"], ["--request-timeout", "0"]],
)
def test_a_value_out_of_range_is_wrong_usage(arguments: list[str], cli: Run) -> None:
    assert cli("serve", "--url", "memory://", *arguments)[0] == 2


def test_the_variables_are_the_options(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHATHISTORY_SERVICE_HOST", "0.0.0.0")
    assert "give tokens" in cli("serve", "--url", "memory://")[2]
    monkeypatch.setenv("CHATHISTORY_SERVICE_ALLOW_ANONYMOUS", "true")
    assert "pass in the clear" in cli("serve", "--url", "memory://")[2]


def test_the_guide_and_the_deployment_name_the_settings_that_there_are(
    cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = set(re.findall("--[a-z-]+", cli("serve", "--help")[1])) - {"--help", "--url", "--option"}
    monkeypatch.setenv("CHATHISTORY_SERVICE_PROT", "1")
    variables = set(re.findall(r"CHATHISTORY_SERVICE_\w+", cli("serve")[2].partition("there are")[2]))
    guide = (ROOT / "docs/how-to/run-the-service.md").read_text("utf-8")
    rows = re.findall(r"^\| (?:`(--[a-z-]+)`)? ?\| (?:`([A-Z_]+)`)? \|.*\|$", guide, re.MULTILINE)
    assert {f"CHATHISTORY_SERVICE_{variable}" for _, variable in rows} == variables
    assert {option for option, _ in rows if option} == options
    deployed = "".join(path.read_text("utf-8") for path in (ROOT / "plugins/http/deploy").iterdir())
    assert set(re.findall(r"CHATHISTORY_SERVICE_[A-Z_]+[A-Z]", deployed + guide)) <= variables
    [unit] = re.findall("^ExecStart=(.*)$", guide, re.MULTILINE)
    assert set(re.findall("--[a-z-]+", unit)) <= options


# Tokens on the command line.


def test_a_token_is_printed_alone_and_its_digest_is_put_into_the_file(cli: Run) -> None:
    status, out, err = cli("service-token", "acme", "--prefix", "acme/", "--tokens", "tokens.toml")
    assert status == 0
    token = out.removesuffix("\n")
    assert token not in err
    assert token not in Path("tokens.toml").read_text("utf-8")
    [kept] = read_tokens(Path("tokens.toml"))
    assert (kept.name, kept.prefix, sorted(kept.rights)) == ("acme", "acme/", ["delete", "list", "read", "write"])
    Access(file=Path("tokens.toml")).check(f"Bearer {token}", "write", "acme/x")


def test_rights_are_those_that_were_said(cli: Run) -> None:
    cli("service-token", "one", "--all", "--right", "list", "--right", "read", "--tokens", "tokens.toml")
    [kept] = read_tokens(Path("tokens.toml"))
    assert (kept.prefix, sorted(kept.rights)) == ("", ["list", "read"])


def test_without_a_file_the_entry_is_printed_beside_the_token(cli: Run) -> None:
    _, out, err = cli("service-token", "acme", "--prefix", "acme")
    Path("tokens.toml").write_text(err[err.index("[[token]]") : err.index("\n\nNote")], "utf-8")
    Access(file=Path("tokens.toml")).check(f"Bearer {out.strip()}", "read", "acme/x")
    assert "'acme' begins 'acmex' too" in err


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["one"], 2, "--prefix TEXT or --all"),
        (["one", "--prefix", ""], 2, "--prefix TEXT or --all"),
        (["one", "--prefix", "a/", "--all"], 2, "--prefix TEXT or --all"),
        (["one", "--all", "--right", "reed"], 2, "'reed'"),
        (["two words", "--all"], 1, "'two words'"),
        (["one", "--prefix", "x" * 600], 1, "600 bytes"),
        (["there", "--all", "--tokens", "tokens.toml"], 1, "has a token of the name 'there'"),
        (["one", "--all", "--tokens", "absent/tokens.toml"], 1, "cannot be written"),
    ],
)
def test_a_token_that_cannot_be_made_is_not_printed(arguments: list[str], status: int, said: str, cli: Run) -> None:
    add_token(Path("tokens.toml"), token_of(new_token(), "there", RIGHTS, ""))
    ended, out, err = cli("service-token", *arguments)
    assert (ended, out) == (status, "")
    assert said in err


def test_making_a_token_needs_no_server() -> None:
    script = "import sys, chathistory_http.commands; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "chathistory_http.commands" in loaded
    assert {"fastapi", "starlette", "uvicorn", "httpx", "prometheus_client"}.isdisjoint(loaded)


# The doors: which web sites may use it.


def test_without_tokens_it_answers_under_the_names_of_this_machine_alone() -> None:
    with TestClient(make_app(Settings(url="memory://")), base_url="http://localhost:5000") as client:
        for host in ("localhost", "LOCALHOST:5000", "127.0.0.1", "127.0.0.1:5000", "[::1]:5000", "[::1]"):
            assert client.get("/chat-history", headers={"Host": host}).status_code == 200
        for host in (
            "evil.example",
            "localhost.evil.example",
            "evil.example:5000",
            "127.0.0.1.evil.example",
            "",
            "[",
            "x]",
        ):
            answer = client.get("/chat-history", headers={"Host": host})
            assert answer.status_code == 421
            assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("settings", [{"allow_anonymous": True}, {"behind_proxy": ["127.0.0.1"]}])
def test_under_other_names_it_answers_where_it_was_told_so(settings: dict[str, object]) -> None:
    with TestClient(make_app(Settings(url="memory://", **settings)), base_url="http://history.example") as client:  # type: ignore[arg-type]  # each of its own type
        assert client.get("/chat-history").status_code == 200


def test_no_web_site_may_use_it_unless_it_was_named() -> None:
    asked = {"Origin": "https://one.example", "Access-Control-Request-Method": "PUT"}
    with TestClient(make_app(Settings(url="memory://")), base_url="http://localhost") as client:
        for answer in (client.options("/chat-history/x", headers=asked), client.get("/chat-history", headers=asked)):
            assert not [name for name in answer.headers if name.startswith("access-control")]
    named = Settings(url="memory://", cors_origins=["https://one.example"])
    with TestClient(make_app(named), base_url="http://localhost") as client:
        asked["Access-Control-Request-Headers"] = "authorization, content-type, idempotency-key, if-match"
        allowed = client.options("/chat-history/x", headers=asked)
        assert allowed.status_code == 200
        assert allowed.headers["Access-Control-Allow-Origin"] == "https://one.example"
        assert "access-control-allow-credentials" not in allowed.headers
        read = client.get("/chat-history/x", headers={"Origin": "https://one.example"})
        assert "ETag" in read.headers["Access-Control-Expose-Headers"]
        other = client.get("/chat-history/x", headers={"Origin": "https://two.example"})
        assert "access-control-allow-origin" not in other.headers


def test_mounted_in_another_application_it_asks_for_its_tokens(tmp_path: Path) -> None:
    token, backend = new_token(), open_backend("memory://")
    add_token(tmp_path / "tokens.toml", token_of(token, "ann", ["read", "write"], "ann/"))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with backend:
            yield

    app = FastAPI(lifespan=lifespan)
    app.mount("/history", create_app(backend, access=Access(file=tmp_path / "tokens.toml")))
    with TestClient(app, headers={"Authorization": f"Bearer {token}"}) as client:
        stored = client.post("/history/chat-history/ann/1", content=BODY, headers=JSON)
        assert stored.status_code == 202
        assert len(client.get(stored.headers["Location"]).json()) == 1
        assert client.get("/history/chat-history/bob/1").status_code == 403
        assert client.get("/history/chat-history/ann/1", headers={"Authorization": "Bearer x"}).status_code == 401


# The running service.


def test_it_listens_on_every_address_of_a_name_on_one_port() -> None:
    with ExitStack() as stack:
        listeners = [stack.enter_context(listener) for listener in listen("localhost", 0)]
        assert {listener.getsockname()[0] for listener in listeners} == set(addresses("localhost"))
        assert len({listener.getsockname()[1] for listener in listeners}) == 1
        for listener in listeners:
            with socket.create_connection(listener.getsockname()[:2], timeout=SECONDS):
                pass


def test_a_request_that_is_being_sent_when_the_service_is_stopped_is_stored_and_answered(
    start: Start,
) -> None:
    service = start("--url", "sqlite:///history.db")
    with posting(service, BODY[:10]) as connection:
        service.process.terminate()
        until(lambda: not listens(service))
        connection.sendall(BODY[10:])
        assert received(connection).startswith(b"HTTP/1.1 202 ")
    assert service.wait() in (0, -signal.SIGTERM)
    assert stored("sqlite:///history.db", "slow") == 1


def test_a_write_that_waits_for_the_store_when_the_service_is_stopped_is_stored_and_answered(
    start: Start, tmp_path: Path
) -> None:
    service = start("--url", "sqlite:///history.db")
    get(f"{service.url}/ready").raise_for_status()
    with closing(sqlite3.connect(tmp_path / "history.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with posting(service, BODY) as connection:
            service.process.terminate()
            until(lambda: not listens(service))
            connection.settimeout(0.2)
            with pytest.raises(TimeoutError):
                connection.recv(1)
            other.execute("COMMIT")
            connection.settimeout(SECONDS)
            assert received(connection).startswith(b"HTTP/1.1 202 ")
    assert service.wait() in (0, -signal.SIGTERM)
    assert stored("sqlite:///history.db", "slow") == 1


@contextmanager
def posting(service: Any, part: bytes) -> Iterator[socket.socket]:
    """A connection on which the service has read the head of a POST of `BODY` and this part of it."""
    with socket.create_connection(address_of(service), timeout=SECONDS) as connection:
        head = b"POST /chat-history/slow HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(BODY) + part)
        for _ in range(2):  # what comes later is answered only when this has been accepted, and read
            get(f"{service.url}/health").raise_for_status()
        yield connection


def received(connection: socket.socket) -> bytes:
    """What comes until the connection is closed."""
    answer = b""
    while chunk := connection.recv(65_536):
        answer += chunk
    return answer


def listens(service: Any) -> bool:
    try:
        with socket.create_connection(address_of(service), timeout=SECONDS):
            return True
    except ConnectionError:
        return False


@pytest.mark.parametrize("kind", ["sqlite", "valkey"])
def test_two_workers_share_the_store_and_add_up_what_they_count(
    kind: str, start: Start, request: pytest.FixtureRequest
) -> None:
    url: str = request.getfixturevalue(kind)
    service = start("--url", url, "--workers", "2")
    workers: set[str] = set()
    count = 0

    def both_answered() -> bool:
        nonlocal count
        with ExitStack() as stack:  # connections at once, so that one worker alone does not take them all
            clients = [stack.enter_context(httpx.Client(base_url=service.url, timeout=SECONDS)) for _ in range(8)]
            for client in clients:
                assert client.post("/chat-history/x", content=BODY, headers=JSON).status_code == 202
        count += len(clients)
        workers.update(found[1] for line in service.log if (found := re.search(r" (\d+) uvicorn.access: ", line)))
        return len(workers) == 2

    until(both_answered)
    assert len(get(f"{service.url}/chat-history/x").json()) == count
    counted = re.search(
        r'^chathistory_request_seconds_count{method="POST",.*} (.*)$',
        get(f"{service.url}/metrics").text,
        re.MULTILINE,
    )
    assert counted is not None
    assert float(counted[1]) == count
    with posting(service, BODY[:10]) as connection:
        service.process.terminate()
        until(lambda: sum("Shutting down" in line for line in service.log) == 2)
        connection.sendall(BODY[10:])
        assert received(connection).startswith(b"HTTP/1.1 202 ")
    assert service.wait() == 0


def test_a_token_that_is_added_while_it_runs_is_let_in_and_nothing_secret_is_logged(
    start: Start, tmp_path: Path
) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text("", "utf-8")
    service = start("--url", "memory://", "--tokens", str(path), "--log-level", "debug")
    url = f"{service.url}/chat-history/acme%2Fx"
    assert get(url).status_code == 401
    tokens = [new_token(), new_token()]
    add_token(path, token_of(tokens[0], "acme", ["read", "write"], "acme/"))
    headers = {"Authorization": f"Bearer {tokens[0]}"}
    until(lambda: get(url, headers=headers).status_code == 200)
    add_token(path, token_of(tokens[1], "other", ["read"], ""))
    if hasattr(signal, "SIGHUP"):
        service.process.send_signal(signal.SIGHUP)
    until(lambda: get(url, headers={"Authorization": f"Bearer {tokens[1]}"}).status_code == 200)
    assert post(url, content=BODY, headers=JSON | headers).status_code == 202
    assert post(url, content=BODY[:-9], headers=JSON | headers).status_code == 400
    assert post(url, content=BODY.replace(b"text", b"twxt"), headers=JSON | headers).status_code == 422
    assert get(f"{url}?access_token={tokens[0]}%0d%0a", headers=headers).status_code == 200
    assert service.stop() in (0, -signal.SIGTERM)
    log = "".join(service.log)
    assert "POST /chat-history/acme/x" in log
    for secret in ("a secret", *tokens, *(token[10:40] for token in tokens)):
        assert secret not in log


def test_the_token_of_the_environment_opens_it(start: Start) -> None:
    token = new_token()
    service = start("--url", "memory://", CHATHISTORY_SERVICE_TOKEN=token)
    assert "with tokens" in service.line
    assert get(f"{service.url}/chat-history").status_code == 401
    assert get(f"{service.url}/chat-history", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_it_speaks_tls(start: Start, tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    service = start("--url", "memory://", "--tls-certificate", "cert.pem", "--tls-key", "key.pem")
    context = ssl.create_default_context()
    authority.configure_trust(context)
    assert service.url.startswith("https://")
    assert get(f"{service.url}/chat-history", verify=context).status_code == 200


@pytest.mark.parametrize("trusted", [True, False])
def test_what_a_proxy_says_of_the_client_is_believed_where_it_was_named(trusted: bool, start: Start) -> None:
    options = ["--behind-proxy", "127.0.0.1", "--allow-anonymous", "--root-path", "/history"] if trusted else []
    service = start("--url", "memory://", "--rate", "0.001", *options)
    url = service.url.removesuffix("/history")

    def ask(client: str) -> int:
        return get(f"{url}/chat-history", headers={"X-Forwarded-For": client}).status_code

    assert [ask("203.0.113.1"), ask("203.0.113.1"), ask("203.0.113.2")] == [200, 429, 200 if trusted else 429]
    if trusted:
        answer = post(f"{url}/chat-history/x", content=BODY, headers=JSON | {"X-Forwarded-For": "203.0.113.3"})
        assert answer.headers["Location"] == "/history/chat-history/x"
