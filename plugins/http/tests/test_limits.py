"""What is taken of requests: how much, how slowly, and how much of all at once."""

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from chathistory_http.service.limits import Bodies
from chathistory_http.service.protocol import MAX_HEAD_BYTES, BoundedProtocol
from chathistory_http.wire.problems import ProblemError

MessageOf = MutableMapping[str, Any]
LARGE = 16 * 1024 * 1024
SECONDS = 20.0
"""How long an answer may take before a test fails."""


def receiver(*chunks: bytes, then: str = "") -> Callable[[], Awaitable[MessageOf]]:
    """A server's `receive` of a body in these chunks; or which never ends (`wait`), or breaks off (`disconnect`)."""
    messages: list[MessageOf] = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    if not then:
        messages[-1]["more_body"] = False
    if then == "disconnect":
        messages.append({"type": "http.disconnect"})

    async def receive() -> MessageOf:
        if messages:
            return messages.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    return receive


async def body_of(bodies: Bodies, receive: Callable[[], Awaitable[MessageOf]], length: str | None = None) -> bytes:
    async with bodies.read(length, receive) as body:
        return body


def refused(bodies: Bodies, receive: Callable[[], Awaitable[MessageOf]], length: str | None = None) -> ProblemError:
    with pytest.raises(ProblemError) as raised:
        asyncio.run(body_of(bodies, receive, length))
    return raised.value


@pytest.mark.parametrize("chunks", [(b"",), (b"one",), (b"one", b"two"), (b"", b"one", b"", b"two", b"")])
def test_a_body_comes_whole(chunks: tuple[bytes, ...]) -> None:
    assert asyncio.run(body_of(Bodies(), receiver(*chunks))) == b"".join(chunks)


def test_a_body_of_the_largest_size_is_taken_and_one_byte_more_is_not() -> None:
    bodies = Bodies(max_bytes=10)
    assert asyncio.run(body_of(bodies, receiver(b"12345", b"67890"))) == b"1234567890"
    assert asyncio.run(body_of(bodies, receiver(b"1234567890"), "10")) == b"1234567890"
    assert refused(bodies, receiver(b"12345", b"67890", b"1", then="wait")).status == 413


@pytest.mark.parametrize("length", ["11", "1" + "0" * 30])
def test_a_body_that_says_it_is_too_large_is_refused_before_it_comes(length: str) -> None:
    assert refused(Bodies(max_bytes=10), receiver(then="wait"), length).status == 413


@pytest.mark.parametrize("length", ["", "-1", "ten", "1e3", "²", "0x10", " 5"])
def test_a_length_that_is_none_is_not_believed(length: str) -> None:
    assert asyncio.run(body_of(Bodies(max_bytes=10), receiver(b"12345"), length)) == b"12345"
    assert refused(Bodies(max_bytes=4), receiver(b"12345"), length).status == 413


def test_a_body_that_does_not_come_is_given_up_and_the_connection_closed() -> None:
    problem = refused(Bodies(seconds=0.01), receiver(b"1", then="wait"))
    assert problem.status == 408
    assert problem.headers == {"Connection": "close"}


def test_a_body_that_comes_gets_the_time_that_its_size_takes() -> None:
    chunk = b"x" * (64 * 1024)

    async def steady() -> MessageOf:
        await asyncio.sleep(0.02)
        left.pop()
        return {"type": "http.request", "body": chunk, "more_body": bool(left)}

    left = list(range(10))
    assert len(asyncio.run(body_of(Bodies(seconds=0.1), steady))) == 10 * len(chunk)


def test_a_body_that_trickles_is_given_up() -> None:
    async def trickle() -> MessageOf:
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}

    assert refused(Bodies(seconds=0.1), trickle).status == 408


def test_a_body_that_breaks_off_is_none() -> None:
    assert refused(Bodies(), receiver(b"1", then="disconnect")).status == 400


def test_bodies_at_once_have_a_bound_and_make_room_when_they_are_done() -> None:
    bodies = Bodies(max_bytes=10, max_bytes_at_once=25)

    async def scenario() -> None:
        async with bodies.read(None, receiver(b"1234567890")), bodies.read("10", receiver(b"1234567890")):
            for length in ("6", None):
                with pytest.raises(ProblemError) as raised:
                    await body_of(bodies, receiver(b"123456"), length)
                assert raised.value.status == 503
                assert raised.value.headers == {"Retry-After": "1"}
            assert await body_of(bodies, receiver(b"12345")) == b"12345"
        for _ in range(3):
            with pytest.raises(ProblemError):
                await body_of(bodies, receiver(b"1" * 11))
            with pytest.raises(ProblemError):
                await body_of(bodies, receiver(b"1", then="disconnect"), "10")
        async with bodies.read("10", receiver(b"1234567890")), bodies.read(None, receiver(b"1234567890")):
            assert await body_of(bodies, receiver(b"12345"), "5") == b"12345"

    asyncio.run(scenario())


def test_announced_bodies_that_fill_the_memory_keep_no_turn_of_others_waiting() -> None:
    bodies = Bodies(max_bytes=1024 * 1024, max_bytes_at_once=1024 * 1024)

    async def scenario() -> None:
        never = asyncio.Event()

        async def silent() -> dict[str, object]:
            await never.wait()
            raise AssertionError

        announced = asyncio.create_task(body_of(bodies, silent, f"{1024 * 1024}"))
        await asyncio.sleep(0)
        assert await body_of(bodies, receiver(b"1" * 1024), "1024") == b"1" * 1024
        with pytest.raises(ProblemError) as raised:
            await body_of(bodies, receiver(b"1" * 1025), "1025")
        assert raised.value.status == 503
        announced.cancel()
        await asyncio.wait([announced])

    asyncio.run(scenario())


def test_a_request_that_is_cancelled_makes_room() -> None:
    bodies = Bodies(max_bytes=10, max_bytes_at_once=10)

    async def scenario() -> None:
        task = asyncio.create_task(body_of(bodies, receiver(b"1", then="wait"), "10"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await body_of(bodies, receiver(b"1234567890")) == b"1234567890"

    asyncio.run(scenario())


def test_a_request_that_is_cancelled_when_its_time_is_up_is_cancelled() -> None:
    async def scenario() -> None:
        task = asyncio.create_task(body_of(Bodies(seconds=0), receiver(then="wait")))
        await asyncio.sleep(0)  # it waits
        time.sleep(0.001)  # noqa: ASYNC251 - its time is up, and the loop has not seen it
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())


# What uvicorn is told about connections.


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the size of the body; or, under /early, at once; under /large with much."""
    size = 0
    while scope["path"] != "/early":
        message = await receive()
        size += len(message.get("body", b""))
        if not message.get("more_body", False):
            break
    body = bytes(LARGE) if scope["path"] == "/large" else f"{size}".encode()
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def serving(
    *, seconds: float = 30.0, linger: float = 10.0, bytes_per_second: int = 64 * 1024, keep_alive: int = 5
) -> Iterator[uvicorn.Server]:
    """A server of `echo`."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        protocol = partial(BoundedProtocol, seconds=seconds, linger_seconds=linger, bytes_per_second=bytes_per_second)
        config = uvicorn.Config(
            echo,
            http=protocol,  # type: ignore[arg-type]  # it is called only
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_keep_alive=keep_alive,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            wait_until(lambda: server.started)
            yield server
        finally:
            server.should_exit = True
            thread.join()


def address_of(server: uvicorn.Server) -> tuple[str, int]:
    host, port = server.servers[0].sockets[0].getsockname()
    return host, port


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > end:
            pytest.fail("it did not happen")
        time.sleep(0.005)


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, int]]:
    with serving() as server:
        yield address_of(server)


@pytest.fixture(scope="module")
def impatient() -> Iterator[tuple[str, int]]:
    with serving(seconds=0.2, linger=0.2) as server:
        yield address_of(server)


@contextmanager
def connected(address: tuple[str, int], *, receive_buffer: int = 0) -> Iterator[socket.socket]:
    with socket.socket() as connection:
        connection.settimeout(SECONDS)
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.connect(address)
        yield connection


def until_closed(connection: socket.socket) -> bytes:
    received = b""
    while chunk := connection.recv(65_536):
        received += chunk
    return received


def received_size(connection: socket.socket) -> int:
    """How many bytes come until the connection is closed or breaks."""
    size = 0
    try:
        while chunk := connection.recv(1_000_000):
            size += len(chunk)
    except ConnectionResetError:
        pass
    return size


def send_until_closed(connection: socket.socket, part: bytes) -> None:
    """Send it again and again."""
    end = time.monotonic() + SECONDS
    try:
        while time.monotonic() < end:
            connection.sendall(part)
            time.sleep(0.001)
    except (BrokenPipeError, ConnectionResetError):
        return
    pytest.fail("the server reads without end")


def ask(address: tuple[str, int], *parts: bytes) -> bytes:
    """What the server answers to these bytes, until it closes the connection."""
    with connected(address) as connection:
        for part in parts:
            try:
                connection.sendall(part)
            except (BrokenPipeError, ConnectionResetError):
                break
        try:
            return until_closed(connection)
        except ConnectionResetError:
            return b""


HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"


def test_a_head_of_the_largest_size_is_taken(server: tuple[str, int]) -> None:
    filling = b"X: " + b"x" * (MAX_HEAD_BYTES - len(HEAD) - 64) + b"\r\n"
    assert ask(server, HEAD + filling + b"\r\n").startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * MAX_HEAD_BYTES + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        HEAD + b"X: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n",
        HEAD + b"X: y\r\n" * 8_000 + b"\r\n",
        HEAD + b"x" * MAX_HEAD_BYTES + b": y\r\n\r\n",
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_head_that_is_too_large_is_431(head: bytes, at_once: bool, server: tuple[str, int]) -> None:
    answer = ask(server, *([head] if at_once else [head[:20], head[20:10_000], head[10_000:]]))
    assert answer.startswith(b"HTTP/1.1 431 ") or answer == b""  # gone with the connection that was closed amid it
    with connected(server) as connection:
        connection.sendall(head[: MAX_HEAD_BYTES + 5_000])
        assert until_closed(connection).startswith(b"HTTP/1.1 431 ")


def test_an_endless_header_ends(server: tuple[str, int]) -> None:
    with connected(server) as connection:
        connection.sendall(HEAD + b"X: ")
        send_until_closed(connection, b"x" * 4_096)


@pytest.mark.parametrize("start", [b"", b"GET", HEAD, HEAD + b"X: y"])
def test_a_head_that_does_not_come_is_given_up(start: bytes, impatient: tuple[str, int]) -> None:
    answer = ask(impatient, start)
    assert answer.startswith(b"HTTP/1.1 408 ") if start else answer == b""


def test_a_second_head_on_a_connection_has_the_same_bounds(impatient: tuple[str, int]) -> None:
    first = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    with connected(impatient) as connection:
        connection.sendall(first)
        answer = b""
        while not answer.endswith(b"\r\n\r\n3"):
            answer += connection.recv(1_000)
        connection.sendall(b"GET / HTTP/1.1\r\n")
        assert until_closed(connection).startswith(b"HTTP/1.1 408 ")


def test_blank_lines_do_not_keep_a_connection(impatient: tuple[str, int]) -> None:
    with connected(impatient) as connection:
        send_until_closed(connection, b"\r\n")


def test_requests_in_a_row_on_one_connection_are_answered(server: tuple[str, int]) -> None:
    one = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    answer = ask(server, one * 500 + HEAD + b"Content-Length: 4\r\n\r\nabcd")
    assert answer.count(b"HTTP/1.1 200 OK") == 501
    assert answer.endswith(b"\r\n\r\n4")


def test_an_early_answer_arrives_though_the_body_is_still_being_sent(server: tuple[str, int]) -> None:
    size = 32 * 1024 * 1024
    with connected(server) as connection:
        connection.sendall(b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size)
        connection.sendall(bytes(size))
        connection.sendall(HEAD + b"Content-Length: 2\r\n\r\nab")
        answer = until_closed(connection)
    assert answer.count(b"HTTP/1.1 200 OK") == 2


def test_the_rest_of_a_body_that_does_not_come_after_the_answer_is_given_up(impatient: tuple[str, int]) -> None:
    with connected(impatient) as connection:
        connection.sendall(b"POST /early HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        send_until_closed(connection, b"1\r\nx\r\n")


def test_trailers_without_end_are_given_up(server: tuple[str, int]) -> None:
    for path in (b"/early", b"/"):
        with connected(server) as connection:
            connection.sendall(b"POST %b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" % path)
            send_until_closed(connection, b"a: " + b"x" * 1_000 + b"\r\n")


def test_a_long_body_in_chunks_is_no_endless_head(server: tuple[str, int]) -> None:
    chunk = b"1000\r\n" + bytes(0x1000) + b"\r\n"
    answer = ask(server, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 1_000 + b"0\r\n\r\n")
    assert answer.endswith(b"%d" % (0x1000 * 1_000))


def test_a_connection_whose_body_came_after_the_answer_ends_when_nothing_follows() -> None:
    with serving(keep_alive=1) as server, connected(address_of(server)) as connection:
        connection.sendall(b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na")
        while not connection.recv(65_536).endswith(b"0"):
            pass
        connection.sendall(b"b")
        assert until_closed(connection) == b""


def test_a_connection_whose_body_came_after_the_answer_stays(impatient: tuple[str, int]) -> None:
    with connected(impatient) as connection:
        connection.sendall(b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na")
        while not connection.recv(65_536).endswith(b"0"):
            pass
        connection.sendall(b"b")
        connection.settimeout(0.5)
        with pytest.raises(TimeoutError):
            connection.recv(1)


@pytest.mark.parametrize("slow", [True, False])
def test_an_answer_that_nobody_reads_is_given_up(slow: bool) -> None:
    with (
        serving(seconds=0.05 if slow else 30, bytes_per_second=LARGE * 20) as server,
        connected(address_of(server), receive_buffer=4_096) as connection,
    ):
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        if slow:
            wait_until(lambda: server.server_state.total_requests == 1 and not server.server_state.connections)
        received = received_size(connection)
    assert (received < LARGE) == slow


@pytest.mark.parametrize(
    "hosts", [b"", b"Host: a\r\nHost: b\r\n", b"Host: a\r\nHost: a\r\n", b"Host: a\r\nX: y\r\nhost: a\r\n"]
)
def test_a_request_has_one_host(hosts: bytes, server: tuple[str, int]) -> None:
    answer = ask(server, b"GET / HTTP/1.1\r\n" + hosts + b"Connection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in answer


def test_http_1_0_needs_no_host(server: tuple[str, int]) -> None:
    assert ask(server, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")
