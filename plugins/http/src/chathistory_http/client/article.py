"""A server that has only the article's six routes, spoken to as well as they allow.

It knows neither turns nor revisions, epochs and times, so what stands for them here is made of the messages: it tells
that a conversation was changed, and keeps nobody from changing it.
"""

import asyncio
import json
import logging
import re
from collections.abc import Sequence
from typing import Final, TypeAlias

from chathistory_core import (
    NO_REVISION,
    BackendError,
    ConfigurationError,
    Conversation,
    ConversationSummary,
    EpochChangedError,
    InvalidKeyError,
    Limits,
    Operation,
    Order,
    Record,
    RevisionConflictError,
    TurnConflictError,
    Written,
    turn_digest,
)
from chathistory_http.client.article_texts import EMPTY, UNTOLD, chosen, read_messages, read_summaries, write_messages
from chathistory_http.client.connecting import where
from chathistory_http.client.failures import Request, UnknownOutcomeError, refusal
from chathistory_http.client.requests import Requests
from chathistory_http.wire import about, keys, percent
from chathistory_http.wire.records import MEDIA_TYPE

logger = logging.getLogger("chathistory")

_MISSING: Final = (
    "a turn whose reply is lost may be stored or not and cannot be sent again; nothing tells that a conversation was "
    "replaced or cleared meanwhile, and an expected revision is compared before the write, not with it; there are no "
    "times; every read and every listing loads everything"
)


Sent: TypeAlias = dict[tuple[str, str], tuple[bytes, Written | None]]
"""What one client has sent, by key and turn id, oldest first; without a result where that is not known."""


class ArticleFace:
    """The conversations of such a server. A turn is one request, where the article's own client sends two."""

    limits = Limits()

    def __init__(self, requests: Requests, sent: Sent) -> None:
        self._requests = requests
        self._sent = sent

    async def get(self, key: str, limit: int | None, before: int | None, after: int | None) -> Conversation:
        """As of a backend; an empty conversation counts as none, unless `limit` is 0."""
        request = Request(f"read conversation {key!r}", key)
        stored = await self._requests.ask(request, "GET", _path(key), read_messages)
        if stored:
            records = tuple(chosen(stored, limit, before, after))
            return Conversation(key, stored[-1].turn_id, record_count=len(stored), records=records)
        if limit == 0 and any(summary.key == key for summary in await self._list()):
            return Conversation(key, EMPTY)
        return Conversation(key)

    async def write(
        self,
        operation: Operation,
        key: str,
        batch: Sequence[Record],
        turn_id: str,
        expected_revision: str | None,
        expected_epoch: str | None,
    ) -> Written:
        """As of a backend, but exactly once only for this client and while it lasts."""
        path, digest = _path(key, appending=operation == "append"), turn_digest(operation, batch)
        known = self._sent.get((key, turn_id))
        if known is not None:
            return _replayed(key, turn_id, digest, *known)
        if expected_revision is not None:
            await self._expect(key, expected_revision)
        if expected_epoch:
            raise EpochChangedError(key)
        messages = await write_messages(key, batch)
        try:
            if operation == "replace":
                await self._send("PUT", "replace", key, path, messages, turn_id)
            elif messages:
                await self._send("POST", "append to", key, path, messages, turn_id)
        except (UnknownOutcomeError, asyncio.CancelledError):
            if operation == "append":
                self._note(key, turn_id, digest, None)
            raise
        written = Written(UNTOLD, "", 1 if operation == "replace" else 0)
        self._note(key, turn_id, digest, written)
        return written

    async def clear(self, key: str, expected_revision: str | None) -> bool:
        """As of a backend."""
        found = await self.get(key, 0, None, None)
        if found.revision == NO_REVISION:
            return False
        if expected_revision is not None:
            await self._expect(key, expected_revision)
        request = Request(f"clear conversation {key!r}", key, again="takes away")
        await self._requests.ask(request, "DELETE", _path(key), _ignore)
        return True

    async def summaries(
        self,
        prefix: str,
        after: ConversationSummary | None,
        limit: int | None,
        order: Order,  # noqa: ARG002 - which is that of keys where there are no times
    ) -> Sequence[ConversationSummary]:
        """As of a backend, with no times to be ordered by."""
        found = sorted(summary for summary in await self._list() if summary.key.startswith(prefix))
        return [summary for summary in found if after is None or summary.key > after.key][:limit]

    async def _list(self) -> list[ConversationSummary]:
        return await self._requests.ask(Request("list conversations"), "GET", keys.MESSAGES, read_summaries)

    async def _expect(self, key: str, revision: str) -> None:
        found = await self.get(key, 1, None, None)
        if revision != found.revision and (found.records or revision != EMPTY):
            raise RevisionConflictError(key)

    async def _send(
        self, method: str, words: str, key: str, path: str, messages: Sequence[bytes], turn_id: str
    ) -> None:
        again: Final = "doubles" if method == "POST" else "safe"
        request = Request(f"{words} conversation {key!r}, turn {turn_id!r}", key, turn_id, again)
        body = b'{"messages":[%b]}' % b",".join(messages)
        await self._requests.ask(request, method, path, _ignore, headers={"Content-Type": MEDIA_TYPE}, body=body)

    def _note(self, key: str, turn_id: str, digest: bytes, written: Written | None) -> None:
        self._sent[key, turn_id] = digest, written
        while len(self._sent) > self.limits.turns_kept:
            del self._sent[next(iter(self._sent))]


async def find_article(requests: Requests, sent: Sent | None) -> tuple[ArticleFace, Sent]:
    """The routes of the article at the server that is there, and what was sent to it in earlier openings.

    The log says which promises are missing, once: where nothing was sent yet.

    Raises:
        ConfigurationError: it is no chat history service.
    """
    request = Request("say what it is")
    response = await requests.send(request, "GET", "/")
    if not response.is_success and not response.is_client_error:
        raise refusal(response, request)
    if not response.is_success or not _is_service(response.content):
        raise ConfigurationError(f"at {where(requests.url)} is no chat history service: check the URL and its path")
    if sent is None:
        logger.warning("the service at %s has only the article's routes: %s", where(requests.url), _MISSING)
        sent = {}
    return ArticleFace(requests, sent), sent


def _is_service(body: bytes) -> bool:
    try:
        told = json.loads(body)
    except ValueError:
        return False
    return isinstance(told, dict) and told.get("service") == about.SERVICE


def _path(key: str, *, appending: bool = False) -> str:
    """Where the server has the conversation. It keeps `%2F` as it comes, and a raw `/` leads nowhere."""
    reason = ""
    if key in (".", ".."):
        reason = "it would lead elsewhere"
    elif re.search("%2f", key, re.IGNORECASE):
        reason = "the server would take it for one with a /"
    elif appending and not re.fullmatch("[ -~]+", key):
        reason = "the server stores, and fails then, under a key that is not printable ASCII"
    if reason:
        raise InvalidKeyError(f"key {key!r} cannot be used with a server that has only the article's routes: {reason}")
    return f"{keys.MESSAGES}/{percent.encode(key)}"


def _replayed(key: str, turn_id: str, digest: bytes, stored: bytes, written: Written | None) -> Written:
    if written is None:
        raise BackendError(
            f"what became of turn {turn_id!r} of conversation {key!r} is unknown, and sent again it would be stored "
            "twice: read the conversation, and send what is missing under a new turn id"
        )
    if stored != digest:
        raise TurnConflictError(key, turn_id, written)
    return written._replace(replayed=True)


def _ignore(_: bytes) -> None:
    """Nothing: what the answer says is in its status."""
