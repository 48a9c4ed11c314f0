"""From what a user names to what is used: backends and histories by URL, name, options or configuration."""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from traceback import extract_tb
from typing import TYPE_CHECKING, overload

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.codec import Codec
from chathistory_core.conversations import MAX_REMEMBERED_BYTES
from chathistory_core.errors import BackendBrokenError, BackendLoadError, ChatHistoryError, ConfigurationError
from chathistory_core.loading import OnLoadError
from chathistory_core.provider import MessageFilter, exclude_history
from chathistory_core.reducers import Reducer
from chathistory_core.saving.outbox import OnSaveError
from chathistory_core.saving.storing import OnFailure
from chathistory_core.session import AgentSession
from chathistory_core.stored import STATE_KEY, StoredChatHistoryProvider, random_key
from chathistory_core.views.repair import Repair
from chathistory_core.views.windows import Window

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from chathistory_core.plugin import BackendOptions
    from chathistory_core.settings import Settings


@overload
def open_backend(backend: "BackendOptions") -> ChatHistoryBackend: ...
@overload
def open_backend(backend: str | None = None, *, options: Mapping[str, object] | None = None) -> ChatHistoryBackend: ...
def open_backend(
    backend: "str | BackendOptions | None" = None, *, options: Mapping[str, object] | None = None
) -> ChatHistoryBackend:
    """The backend that is named, not yet opened: use it with `async with`.

    `backend` is a URL whose query holds options (`sqlite:///history.db?ttl=30d`), a name with `options` beside it, or
    an options object. Without it the environment decides (`CHATHISTORY_BACKEND`, `CHATHISTORY_OPTIONS__TTL`), then
    `chathistory.toml` in the working directory or at `CHATHISTORY_CONFIG`, then `sqlite:///chathistory.db`.

    Raises:
        ConfigurationError: an option or a setting is unknown or out of range.
        BackendLoadError: the backend is not installed, broken, offered twice, or written for another contract.
    """
    return _made(backend, options)


@asynccontextmanager
async def open_history(
    backend: "str | BackendOptions | None" = None,
    *,
    options: Mapping[str, object] | None = None,
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
) -> AsyncIterator[StoredChatHistoryProvider]:
    """A provider over the backend that is named as for `open_backend`; the backend is open as long as the block lasts.

    The other arguments are those of `StoredChatHistoryProvider`. What waits in the outbox when the block is left is
    tried once more; where that fails, leaving raises the error, with the runs in its `unsaved`.
    """
    async with _made(backend, options) as opened:
        history = StoredChatHistoryProvider(
            opened,
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
        async with history._outbox:  # noqa: SLF001 - nobody else sees its end
            yield history


def _made(backend: "str | BackendOptions | None", options: Mapping[str, object] | None) -> ChatHistoryBackend:
    from chathistory_core.plugin import BackendOptions

    if isinstance(backend, BackendOptions):
        if options is not None:
            raise TypeError("an options object holds every option: give no `options` beside it")
        return _open(backend, f"{type(backend).__module__}.{type(backend).__qualname__}")
    if backend is not None and not isinstance(backend, str):
        raise TypeError(f"`backend` is a URL, a name or a BackendOptions, not {type(backend).__name__}")

    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"`options` are by name, in a mapping, not {type(options).__name__}")

    from chathistory_core.discovery import find_backend, load_options
    from chathistory_core.settings import read_settings

    settings = read_settings(backend, options=options)
    try:
        installed = find_backend(settings.name)
        kind = load_options(installed)
    except BackendLoadError as error:
        if backend is None:
            error.add_note(f"It is named by {settings.source}.")
        raise
    return _open(_validated(kind, settings, str(installed)), str(installed))


def _validated(kind: "type[BackendOptions]", settings: "Settings", offered_by: str) -> "BackendOptions":
    from pydantic import ValidationError

    try:
        return kind.model_validate({name: setting.value for name, setting in settings.options.items()})
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)
    except Exception as error:  # noqa: BLE001 - see _told
        raise BackendBrokenError(f"backend {offered_by} cannot read its options: {_told(error)}") from None
    problems = "; ".join(_problem(kind, settings, detail) for detail in details)
    raise ConfigurationError(f"backend {settings.name!r}: {problems}")  # out here: pydantic's error holds values


def _problem(kind: "type[BackendOptions]", settings: "Settings", detail: "ErrorDetails") -> str:
    location, message = detail["loc"], detail["msg"].removeprefix("Value error, ").removeprefix("Input ")
    if not location:
        return f"its options do not go together: {message}"
    option = ".".join(map(str, location))
    setting = settings.options.get(str(location[0]))
    source = setting.source if setting else f"the backend is named by {settings.source}"
    if detail["type"] == "extra_forbidden" and len(location) == 1:
        from difflib import get_close_matches

        closest = get_close_matches(option, kind.model_fields, n=1)
        hint = f" (did you mean {closest[0]!r}?)" if closest else ""
        message = f"is unknown{hint}: there are {', '.join(sorted(kind.model_fields)) or 'none'}"
    elif detail["type"] == "missing":
        message = "is missing"
    return f"option {option!r} ({source}) {message}"


def _open(options: "BackendOptions", offered_by: str) -> ChatHistoryBackend:
    try:
        backend = options.open()
    except ChatHistoryError:
        raise
    except Exception as error:  # noqa: BLE001 - see _told
        raise BackendBrokenError(f"backend {offered_by} cannot be made: {_told(error)}") from None
    made: object = backend
    if not isinstance(made, AbstractAsyncContextManager):
        raise BackendBrokenError(
            f"backend {offered_by} is broken: `open` returned {type(made).__name__}, not a backend"
        )
    return backend


def _told(error: Exception) -> str:
    """What may be told of an error that may show a URL: its type and place, and which module is missing."""
    place = extract_tb(error.__traceback__)[-1]
    told = f"{type(error).__name__} at {place.filename}:{place.lineno}"
    return f"{told}: {error}" if isinstance(error, ImportError) else told
