"""The article's face: conversations as messages, at `/chat-history`."""

from functools import partial
from typing import Final

from chathistory_core import Conversation, Operation, check_key, new_turn_id
from chathistory_http.service.answer import JSON_UTF8, Answer, field, head_of, result_of
from chathistory_http.service.call import Call
from chathistory_http.service.conditions import check_unwritten, has_conditions, read_under_conditions
from chathistory_http.service.endpoint import Handler, not_allowed
from chathistory_http.service.listing import page_of
from chathistory_http.service.service import Service, key_of
from chathistory_http.service.splitting import charset_of, text_in
from chathistory_http.service.writing import clear, turn_id_of, write
from chathistory_http.wire.json_text import text_of
from chathistory_http.wire.keys import MESSAGES, messages_path
from chathistory_http.wire.queries import read_cursors

_BELOW: Final = MESSAGES.encode()


class Article:
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
            return await self._list(call)
        service = self._service
        service.let_in(call, "read", key)
        limit, before, after = read_cursors(call.query)
        if call.method == "HEAD":
            limit = 0
        found, is_known = await read_under_conditions(call, service.backend, key, limit, before, after)
        if is_known:
            return Answer(304, head_of(found))
        body = None if call.method == "HEAD" else await service.transcript.messages_of(key, found.records)
        return Answer(200, (JSON_UTF8, *head_of(found)), body)

    async def _write(self, operation: Operation, call: Call) -> Answer:
        key = self._key(call)
        service = self._service
        service.let_in(call, "write", key)
        given = turn_id_of(call)
        turn_id = new_turn_id() if given is None else given
        location = (field("Location", call.root + messages_path(key)),) if operation == "append" else ()
        status = 202 if operation == "append" else 204
        charset = charset_of(call)
        async with service.body(call) as body:
            most = service.backend.limits.max_records
            records = await service.transcript.records_of(key, text_in(body, charset), most)
            if not records and operation == "append":
                return Answer(status, location + head_of(await self._unwritten(call, key)))
            written = await write(service, call, operation, key, records, turn_id)
        return Answer(status, location + result_of(written, turn_id))

    async def _unwritten(self, call: Call, key: str) -> Conversation:
        """The head of a conversation to which nothing is appended, where the caller expects something of it."""
        if not has_conditions(call):
            return Conversation(check_key(key))
        head = await self._service.backend.get(key, limit=0)
        check_unwritten(call, head)
        return head

    async def _delete(self, call: Call) -> Answer:
        key = self._key(call)
        self._service.let_in(call, "delete", key)
        await clear(self._service, call, key)
        return Answer(204)

    def _key(self, call: Call) -> str:
        key = key_of(call, _BELOW)
        if key is None:
            raise not_allowed("GET", "HEAD")
        return key

    async def _list(self, call: Call) -> Answer:
        found, links = await page_of(self._service, call, MESSAGES)
        body = [{"conversationKey": one.key, "messageCount": one.record_count} for one in found]
        return Answer(200, (JSON_UTF8, *links), text_of(body))
