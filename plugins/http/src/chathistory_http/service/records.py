"""The records' face: conversations as they are stored, at `/records`."""

import asyncio
from functools import partial
from typing import Final

from chathistory_core import Conversation, InvalidKeyError, Operation, Record, check_write
from chathistory_core.formats import chat_message
from chathistory_http.service.answer import JSON, Answer, head_of, result_of
from chathistory_http.service.call import Call
from chathistory_http.service.conditions import read_under_conditions
from chathistory_http.service.endpoint import Handler, not_allowed
from chathistory_http.service.listing import page_of
from chathistory_http.service.service import Service, key_of
from chathistory_http.service.splitting import Parts, charset_of, text_in
from chathistory_http.service.transcript import SLICE, check_record, counted
from chathistory_http.service.writing import clear, turn_id_of, write
from chathistory_http.wire import headers
from chathistory_http.wire.keys import RECORDS
from chathistory_http.wire.problems import ProblemError
from chathistory_http.wire.queries import read_cursors
from chathistory_http.wire.records import joined, read_record, write_stored
from chathistory_http.wire.summaries import write_summaries
from chathistory_http.wire.writes import write_cleared, write_written

_BELOW: Final = RECORDS.encode()


class Records:
    """Answers for a conversation, and for their list."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.handlers: dict[str, Handler] = {
            "GET": self._get,
            "POST": partial(self._write, "append"),
            "PUT": partial(self._write, "replace"),
            "DELETE": self._delete,
        }

    async def _get(self, call: Call) -> Answer:
        key = key_of(call, _BELOW)
        if key is None:
            summaries, links = await page_of(self._service, call, RECORDS)
            return Answer(200, (JSON, *links), write_summaries(summaries))
        self._service.let_in(call, "read", key)
        limit, before, after = read_cursors(call.query)
        if call.method == "HEAD":
            limit = 0
        found, is_known = await read_under_conditions(call, self._service.backend, key, limit, before, after)
        if is_known:
            return Answer(304, head_of(found))
        body = None if call.method == "HEAD" else await _body_of(found)
        return Answer(200, (JSON, *head_of(found)), body)

    async def _write(self, operation: Operation, call: Call) -> Answer:
        key = self._key(call)
        service = self._service
        service.let_in(call, "write", key)
        turn_id = turn_id_of(call)
        if turn_id is None:
            raise ProblemError(
                "bad-request", f"`{headers.TURN_ID}` is missing: name the turn, so that a retry is known"
            )
        charset = charset_of(call)
        async with service.body(call) as body:
            parts = Parts(text_in(body, charset), "records")
            records = await _records_of(parts, service.backend.limits.max_records)
            _check(service, operation, key, records, turn_id)
            written = await write(service, call, operation, key, records, turn_id)
        return Answer(200, (JSON, *result_of(written, turn_id)), write_written(written))

    async def _delete(self, call: Call) -> Answer:
        key = self._key(call)
        self._service.let_in(call, "delete", key)
        cleared = await clear(self._service, call, key)
        return Answer(200, (JSON,), write_cleared(cleared=cleared))

    def _key(self, call: Call) -> str:
        key = key_of(call, _BELOW)
        if key is None:
            raise not_allowed("GET", "HEAD")
        return key


async def _body_of(conversation: Conversation) -> bytes:
    stored: list[bytes] = []
    for index, record in enumerate(conversation.records):
        if index % SLICE == SLICE - 1:
            await asyncio.sleep(0)
        stored.append(write_stored(record))
    return joined(conversation, stored)


async def _records_of(parts: Parts, most: int) -> list[Record]:
    records: list[Record] = []
    async for index, part in counted(parts, most):
        record = read_record(part.value, index)
        if record.format == chat_message.name:
            check_record(record, index)
        records.append(record)
    return records


def _check(service: Service, operation: Operation, key: str, records: list[Record], turn_id: str) -> None:
    """Whether the backend would take the write, told in the words of this face."""
    try:
        check_write(operation, key, records, turn_id, service.backend.limits)
    except InvalidKeyError:
        raise
    except ValueError as error:
        raise ProblemError("invalid-record", str(error)) from None
