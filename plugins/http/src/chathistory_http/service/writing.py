"""Writes, as both faces of the service make them."""

from collections.abc import Sequence

from chathistory_core import Operation, Record, Written
from chathistory_http.service.call import Call
from chathistory_http.service.conditions import write_under_conditions
from chathistory_http.service.service import Service
from chathistory_http.wire import headers
from chathistory_http.wire.headers import read_text
from chathistory_http.wire.problems import ProblemError


def turn_id_of(call: Call) -> str | None:
    """The turn id that the call gives.

    Raises:
        ProblemError: bad-request, where it cannot be read.
    """
    given = call.single(headers.TURN_ID)
    return None if given is None else read_text(headers.TURN_ID, given)


async def write(
    service: Service, call: Call, operation: Operation, key: str, records: Sequence[Record], turn_id: str
) -> Written:
    """What the write did, made under the call's conditions.

    Raises:
        ProblemError: bad-request, where the conditions cannot be read.
        ChatHistoryError: as of the backend.
    """
    backend = service.backend
    given = call.single(headers.EPOCH)
    epoch = None if given is None else read_text(headers.EPOCH, given)
    if operation == "append":

        async def write_once(revision: str | None) -> Written:
            return await backend.append(key, records, turn_id=turn_id, expected_revision=revision, expected_epoch=epoch)

    else:
        if epoch is not None:
            raise ProblemError("bad-request", f"`{headers.EPOCH}` goes with POST: a PUT begins a new epoch")

        async def write_once(revision: str | None) -> Written:
            return await backend.replace(key, records, turn_id=turn_id, expected_revision=revision)

    return await write_under_conditions(call, backend, key, write_once)


async def clear(service: Service, call: Call, key: str) -> bool:
    """Whether there was something to clear."""

    async def clear_once(revision: str | None) -> bool:
        return await service.backend.clear(key, expected_revision=revision)

    if call.header("if-none-match") is not None:
        raise ProblemError("bad-request", "`If-None-Match` does not go with DELETE")
    if (call.header("if-match") or "").strip() == headers.ANY:
        return await clear_once(None)
    return await write_under_conditions(call, service.backend, key, clear_once)
