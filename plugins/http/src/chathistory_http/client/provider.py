"""The provider of the article: the core's, over a service."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import httpx
from pydantic import ValidationError

from chathistory_core import (
    AgentSession,
    Codec,
    ConfigurationError,
    MessageFilter,
    StoredChatHistoryProvider,
    Window,
    exclude_history,
)
from chathistory_core.conversations import MAX_REMEMBERED_BYTES
from chathistory_core.loading import OnLoadError
from chathistory_core.reducers import Reducer
from chathistory_core.saving.outbox import OnSaveError
from chathistory_core.saving.storing import OnFailure
from chathistory_core.stored import STATE_KEY, random_key
from chathistory_core.views.repair import Repair
from chathistory_http.client.article import Sent, find_article
from chathistory_http.client.backend import Face, HTTPBackend
from chathistory_http.client.records import find_records
from chathistory_http.client.requests import Requests
from chathistory_http.plugin import HTTPOptions


class _AnyServer(HTTPBackend):
    """Takes a server that has only the article's routes too."""

    _sent: Sent | None = None

    async def _find_face(self, requests: Requests) -> Face:
        found = await find_records(requests)
        if found is not None:
            return found
        article, self._sent = await find_article(requests, self._sent)
        return article


class RemoteChatHistoryProvider(StoredChatHistoryProvider):
    """Keeps conversations in a chat history service, which it is connected to while an `async with` lasts.

    It is a `StoredChatHistoryProvider` over an `HTTPBackend`, with the names of the article's helpers beside its own. A
    server that has only the article's six routes is taken too: with fewer promises, which the log names then.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        client: httpx.AsyncClient | None = None,
        token: str | None = None,
        codec: Codec | None = None,
        scope: Sequence[str] = (),
        state_key: str = STATE_KEY,
        new_key: Callable[[AgentSession], str] = random_key,
        save_timeout: float = 10,
        window: Window | None = None,
        reducer: Reducer | None = None,
        repair: Repair | None = None,
        trusted_roles: Collection[str] | None = None,
        max_load_bytes: int | None = None,
        max_remembered_bytes: int = MAX_REMEMBERED_BYTES,
        on_load_error: OnLoadError = "raise",
        on_failure: OnFailure = "discard",
        on_save_error: OnSaveError = "raise",
        exclusive: bool = False,
        provide_output_filter: MessageFilter | None = None,
        store_request_filter: MessageFilter | None = exclude_history,
        store_response_filter: MessageFilter | None = None,
    ) -> None:
        """The service is at `url`, or at the `base_url` of a `client`, which is borrowed; else as for `HTTPOptions`.

        `token` is the bearer token. The other arguments are those of `StoredChatHistoryProvider`.
        """
        if client is not None and url is not None:
            raise TypeError("a `client` knows by its `base_url` where the service is: give no `url` beside it")
        backend = _AnyServer(client, token=token) if client is not None else _backend(url, token)
        super().__init__(
            backend,
            codec=codec,
            scope=scope,
            state_key=state_key,
            new_key=new_key,
            save_timeout=save_timeout,
            window=window,
            reducer=reducer,
            repair=repair,
            trusted_roles=trusted_roles,
            max_load_bytes=max_load_bytes,
            max_remembered_bytes=max_remembered_bytes,
            on_load_error=on_load_error,
            on_failure=on_failure,
            on_save_error=on_save_error,
            exclusive=exclusive,
            provide_output_filter=provide_output_filter,
            store_request_filter=store_request_filter,
            store_response_filter=store_response_filter,
        )
        self._server = backend
        self._opened = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opening:
            await opening.enter_async_context(self._server)
            await opening.enter_async_context(self._outbox)
            self._opened = opening.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._opened.__aexit__(kind, error, traceback)

    try_get_external_conversation_key = StoredChatHistoryProvider.key_of
    get_stored_message_count = StoredChatHistoryProvider.count
    get_messages = StoredChatHistoryProvider.messages
    get_conversation_summaries = StoredChatHistoryProvider.summaries
    session_exists = StoredChatHistoryProvider.exists
    attach_to_session = StoredChatHistoryProvider.attach


RemoteChatHistoryProvider.__module__ = "chathistory_http"  # where it is imported from, and what marks of source name


def _backend(url: str | None, token: str | None) -> HTTPBackend:
    given = {name: value for name, value in {"url": url, "token": token}.items() if value is not None}
    try:
        options = HTTPOptions.model_validate(given)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)
    else:
        return _AnyServer(options.client, token=options.token, retries=options.retries)
    problems = "; ".join(f"`{detail['loc'][0]}` {detail['msg']}" for detail in details)
    raise ConfigurationError(f"the chat history service cannot be reached so: {problems}")
