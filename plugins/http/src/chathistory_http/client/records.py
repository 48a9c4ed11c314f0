"""A service of ours, as it is spoken to: one request an operation, records as they are."""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from chathistory_core import (
    NO_REVISION,
    ConfigurationError,
    Conversation,
    ConversationSummary,
    Limits,
    Operation,
    Order,
    Record,
    Written,
)
from chathistory_http.client.connecting import where
from chathistory_http.client.failures import Request, refusal
from chathistory_http.client.requests import LARGE, Requests
from chathistory_http.wire import about, headers, keys, percent, queries, records, summaries, writes

_JSON: Final = {"Content-Type": records.MEDIA_TYPE}

_MOST: Final = 2**53
"""No position and no count is above it, and no number in a query may be."""


class RecordsFace:
    """The conversations of a service, over its routes for records; what is given was checked."""

    def __init__(self, requests: Requests, limits: Limits) -> None:
        self._requests = requests
        self.limits = limits

    async def get(self, key: str, limit: int | None, before: int | None, after: int | None) -> Conversation:
        """As of a backend."""
        numbers = {"limit": limit, "before": before, "after": after}
        bounded = {name: None if number is None else min(number, _MOST) for name, number in numbers.items()}
        target = keys.RECORDS + queries.write_query(key=key, **bounded)
        return await self._requests.ask(_reading(key), "GET", target, records.read_conversation)

    async def write(
        self,
        operation: Operation,
        key: str,
        batch: Sequence[Record],
        turn_id: str,
        expected_revision: str | None,
        expected_epoch: str | None,
    ) -> Written:
        """As `append` and `replace` of a backend; repeated by itself under the turn id."""
        given = {headers.TURN_ID: percent.encode(turn_id), **_JSON, **_expecting(expected_revision)}
        if expected_epoch is not None:
            given[headers.EPOCH] = percent.encode(_sendable(expected_epoch))
        is_large = sum(len(record.payload) for record in batch) > LARGE
        body = await asyncio.to_thread(records.write_records, batch) if is_large else records.write_records(batch)
        words = "append to conversation" if operation == "append" else "replace conversation"
        return await self._requests.ask(
            Request(f"{words} {key!r}, turn {turn_id!r}", key, turn_id),
            "POST" if operation == "append" else "PUT",
            keys.RECORDS + queries.write_query(key=key),
            writes.read_written_body,
            headers=given,
            body=body,
        )

    async def clear(self, key: str, expected_revision: str | None) -> bool:
        """As of a backend; never repeated, for what was appended in between would go too."""
        return await self._requests.ask(
            Request(f"clear conversation {key!r}", key, again="takes away"),
            "DELETE",
            keys.RECORDS + queries.write_query(key=key),
            writes.read_cleared,
            headers={} if expected_revision is None else _matching(expected_revision),
        )

    async def summaries(
        self, prefix: str, after: ConversationSummary | None, limit: int | None, order: Order
    ) -> Sequence[ConversationSummary]:
        """As of a backend."""
        bounded = None if limit is None else min(limit, _MOST)
        target = keys.RECORDS + queries.write_page_query(prefix, after, bounded, order)
        return await self._requests.ask(Request("list conversations"), "GET", target, summaries.read_summaries)


async def find_records(requests: Requests) -> RecordsFace | None:
    """The routes for records of the service that is there; None where it has none.

    Raises:
        ConfigurationError: it speaks another version of the contract, or is no chat history service.
    """
    request = Request("say what it is")
    response = await requests.send(request, "GET", keys.ABOUT)
    if response.status_code == HTTPStatus.NOT_FOUND:
        return None
    if not response.is_success:
        raise refusal(response, request)
    try:
        found = about.read_about(response.content)
    except ValueError as error:
        raise ConfigurationError(
            f"at {where(requests.url)} is no service that this client can use ({error}): check the URL, and that "
            "service and client are of releases that go together"
        ) from None
    return RecordsFace(requests, found.limits)


def _reading(key: str) -> Request:
    return Request(f"read conversation {key!r}", key)


def _expecting(revision: str | None) -> dict[str, str]:
    if revision is None:
        return {}
    return {"If-None-Match": headers.ANY} if revision == NO_REVISION else _matching(revision)


def _matching(revision: str) -> dict[str, str]:
    """As a clear expects it, too: of `NO_REVISION` the tag is one that no conversation has."""
    return {"If-Match": headers.write_etag(_sendable(revision))}


def _sendable(token: str) -> str:
    """The token, or where no UTF-8 can carry it another one that no service makes either."""
    return token.encode(errors="replace").decode()
