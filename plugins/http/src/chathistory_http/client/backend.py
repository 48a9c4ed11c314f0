"""The backend: the protocol of the core, each operation one request to the service."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

import httpx
from pydantic import SecretStr

from chathistory_core import (
    BackendStateError,
    ConfigurationError,
    Conversation,
    ConversationSummary,
    Limits,
    Opened,
    Operation,
    Order,
    Record,
    Written,
    check_key,
    check_page,
    check_read,
    check_write,
)
from chathistory_http.client.connecting import where
from chathistory_http.client.records import find_records
from chathistory_http.client.requests import Requests
from chathistory_http.client.token import is_token


class Face(Protocol):
    """What a server has for conversations, over some of its routes; what is given was checked."""

    limits: Limits

    async def get(self, key: str, limit: int | None, before: int | None, after: int | None) -> Conversation: ...

    async def write(
        self,
        operation: Operation,
        key: str,
        batch: Sequence[Record],
        turn_id: str,
        expected_revision: str | None,
        expected_epoch: str | None,
    ) -> Written: ...

    async def clear(self, key: str, expected_revision: str | None) -> bool: ...

    async def summaries(
        self, prefix: str, after: ConversationSummary | None, limit: int | None, order: Order
    ) -> Sequence[ConversationSummary]: ...


class HTTPBackend:
    """Keeps conversations in a chat history service, over whatever backend that has."""

    limits = Limits()

    def __init__(
        self,
        client: httpx.AsyncClient | Callable[[], httpx.AsyncClient],
        *,
        token: SecretStr | str | None = None,
        retries: int = 2,
    ) -> None:
        """A `client` is borrowed: its owner closes it, in the loop where it was used. What a function makes is closed.

        The client's `base_url` is the service's. `token` is the bearer token that each request takes along. Reads and
        writes are sent again up to `retries` times where the connection or the service failed; a `clear` never is.
        `limits` are the service's once the backend is open.
        """
        if retries < 0:
            raise ValueError(f"`retries` is {retries}: it must not be negative")
        self._given = client
        self._token = SecretStr(token) if isinstance(token, str) else token
        if self._token is not None and not is_token(self._token.get_secret_value()):
            raise ValueError("`token` is not of ASCII characters without blanks")
        self._retries = retries
        self._opened = Opened("the HTTP backend")
        self._owned: httpx.AsyncClient | None = None
        self._face: Face | None = None

    async def __aenter__(self) -> Self:
        self._opened.open()
        try:
            self._face = await self._find_face(Requests(self._client(), token=self._token, retries=self._retries))
            self.limits = self._face.limits
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        client, self._owned, self._face = self._owned, None, None
        self._opened.close()
        if client is not None:
            await client.aclose()

    def _client(self) -> httpx.AsyncClient:
        client = self._given
        if not isinstance(client, httpx.AsyncClient):
            client = self._owned = client()
        if not client.base_url.host:
            raise ConfigurationError("the client does not know where the service is: give it a `base_url`")
        return client

    async def _find_face(self, requests: Requests) -> Face:
        """What the server has, where this backend can use it."""
        face = await find_records(requests)
        if face is None:
            raise ConfigurationError(
                f"at {where(requests.url)} is no service with routes for records (it answers 404 to /about): check the "
                "URL and its path; where the server has only the article's six routes, a RemoteChatHistoryProvider "
                "can use it, with fewer promises"
            )
        return face

    def _checked(self) -> Face:
        self._opened.check()
        if self._face is None:
            raise BackendStateError("the HTTP backend is still being opened: wait for `async with`")
        return self._face

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        check_read(key, limit, before, after)
        return await self._checked().get(key, limit, before, after)

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        return await self._write("append", key, records, turn_id, expected_revision, expected_epoch)

    async def replace(
        self, key: str, records: Sequence[Record], *, turn_id: str, expected_revision: str | None = None
    ) -> Written:
        return await self._write("replace", key, records, turn_id, expected_revision, None)

    async def _write(
        self,
        operation: Operation,
        key: str,
        records: Sequence[Record],
        turn_id: str,
        expected_revision: str | None,
        expected_epoch: str | None,
    ) -> Written:
        batch = check_write(operation, key, records, turn_id, self.limits)
        return await self._checked().write(operation, key, batch, turn_id, expected_revision, expected_epoch)

    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        check_key(key)
        return await self._checked().clear(key, expected_revision)

    async def summaries(
        self,
        *,
        prefix: str = "",
        after: ConversationSummary | None = None,
        limit: int | None = None,
        order: Order = "key",
    ) -> Sequence[ConversationSummary]:
        check_page(prefix, limit, order)
        return await self._checked().summaries(prefix, after, limit, order)
