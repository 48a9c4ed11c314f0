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


async def exchange(
    client: Redis, commands: Sequence[Command], *, once: bool = False
) -> Sequence[Reply | ResponseError]:
    """What the server replies to each of the commands.

    After a lost reply all are sent again, as often as the client says; `once` where that must not be.
    """
    request = [part for command in commands for part in _packed(command)]
    pool = client.connection_pool
    connection = await pool.get_connection()  # type: ignore[no-untyped-call]  # a decorator hides its types

    async def attempt() -> Sequence[Reply | ResponseError]:
        await connection.send_packed_command(request)
        return [await _reply(connection) for _ in commands]

    replies: Sequence[Reply | ResponseError]
    try:
        if once:
            replies = await attempt()
        else:
            replies = await connection.retry.call_with_retry(attempt, lambda _: connection.disconnect())
    finally:
        await pool.release(connection)
    return replies


def _packed(command: Command) -> list[bytes]:
    """The command as the protocol has it; long arguments are not copied."""
    parts = [b"*%d" % len(command)]
    for argument in command:
        value = argument if isinstance(argument, bytes) else str(argument).encode()
        parts += (b"\r\n$%d\r\n" % len(value), value)
    parts.append(b"\r\n")
    return parts


async def _reply(connection: AbstractConnection) -> Reply | ResponseError:
    try:
        reply: Reply = await connection.read_response(disable_decoding=True)
    except ResponseError as error:
        return error
    return reply
