"""An exchange with a server: commands go over one connection of a client's pool, and their replies come back.

The driver's own way is longer: it packs a command slowly, and makes a task and timers of each where a client has a
`socket_timeout`.
"""

from collections.abc import Sequence
from typing import TypeAlias

from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ResponseError

Argument: TypeAlias = bytes | str | int

Command: TypeAlias = Sequence[Argument]

Reply: TypeAlias = list[bytes]

_LONG = 2**14
"""Bytes of an argument that is not copied."""


async def exchange(
    client: Redis, commands: Sequence[Command], *, once: bool = False
) -> Sequence[Reply | ResponseError]:
    """What the server replies to each of the commands.

    After a lost reply, or an error that the client retries, all are sent again, as often as it says; `once` where that
    must not be.
    """
    request = [part for command in commands for part in _packed(command)]
    pool = client.connection_pool
    connection = await pool.get_connection()  # type: ignore[no-untyped-call]  # a decorator hides its types
    replies = list[Reply | ResponseError]()

    async def attempt() -> None:
        replies.clear()
        await connection.send_packed_command(request)
        replies[:] = [await _reply(connection) for _ in commands]
        for reply in replies:
            if isinstance(reply, ResponseError):
                raise reply  # what the client retries may be an answer too, such as that of a replica

    try:
        if once:
            await attempt()
        else:
            await connection.retry.call_with_retry(attempt, lambda _: connection.disconnect())
    except ResponseError as error:
        if not replies:  # it is of making the connection, else it stands among them
            raise
        error.with_traceback(None)  # which would keep what was sent
    finally:
        await pool.release(connection)
    return replies


def told(reply: Reply | Exception) -> Reply:
    """The reply; an error is raised."""
    try:
        if isinstance(reply, Exception):
            raise reply
        return reply
    finally:
        del reply  # else an error and this frame keep each other alive, and with them what was sent


def _packed(command: Command) -> list[bytes]:
    """The command as the protocol has it, in few pieces: TLS wraps each by itself."""
    pieces = list[bytes]()
    short = [b"*%d" % len(command)]
    for argument in command:
        value = argument if isinstance(argument, bytes) else str(argument).encode()
        short.append(b"\r\n$%d\r\n" % len(value))
        if len(value) < _LONG:
            short.append(value)
        else:
            pieces += (b"".join(short), value)
            short = []
    short.append(b"\r\n")
    return [*pieces, b"".join(short)]


async def _reply(connection: AbstractConnection) -> Reply | ResponseError:
    try:
        reply: Reply = await connection.read_response(disable_decoding=True)
    except ResponseError as error:
        return error.with_traceback(None)  # which the driver's frames and it would keep alive
    return reply
