"""`If-Match` and `If-None-Match`: HTTP's words for what a caller expects of a conversation."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from chathistory_core import NO_REVISION, ChatHistoryBackend, Conversation, RevisionConflictError, new_revision
from chathistory_http.service.call import Call
from chathistory_http.wire.headers import Tags, read_tags
from chathistory_http.wire.problems import ProblemError

T = TypeVar("T")

_MATCH = "If-Match"
_NONE_MATCH = "If-None-Match"


async def write_under_conditions(
    call: Call, backend: ChatHistoryBackend, key: str, write: Callable[[str | None], Awaitable[T]]
) -> T:
    """What `write` gives, with the revision that the request expects.

    A revision that no conversation can have stands for a condition that is not met: so a turn that is stored already is
    answered all the same, and only then the backend refuses.

    Raises:
        ProblemError: bad-request, where the conditions cannot be read.
        RevisionConflictError: they are not met.
    """
    tags = _tags(call, _MATCH)
    others = _tags(call, _NONE_MATCH)
    if others is not None:
        if tags is not None or not others.any:
            raise ProblemError("bad-request", f"a write takes `{_NONE_MATCH}: *` (only if it is new) or `{_MATCH}`")
        return await write(NO_REVISION)
    if tags is None:
        return await write(None)
    if not tags.any and len(tags.strong) == 1:
        return await write(tags.strong[0])
    while True:
        revision = (await backend.get(key, limit=0)).revision if tags.any or tags.strong else NO_REVISION
        met = _is_met(tags, revision)
        try:
            return await write(revision if met else new_revision())
        except RevisionConflictError:  # "whatever there is" may have changed on the way
            if not (tags.any and met):
                raise


def check_unwritten(call: Call, conversation: Conversation) -> None:
    """Whether the conditions of a write that writes nothing are met, else `RevisionConflictError`."""
    tags, others = _tags(call, _MATCH), _tags(call, _NONE_MATCH)
    if (tags is not None and not _is_met(tags, conversation.revision)) or (
        others is not None and others.any and conversation.revision
    ):
        raise RevisionConflictError(conversation.key)


def has_conditions(call: Call) -> bool:
    """Whether the request expects something."""
    return call.header(_MATCH) is not None or call.header(_NONE_MATCH) is not None


async def read_under_conditions(
    call: Call, backend: ChatHistoryBackend, key: str, limit: int | None, before: int | None, after: int | None
) -> tuple[Conversation, bool]:
    """The conversation, and whether the caller has it at this revision already: then it is the head alone.

    Raises:
        ProblemError: bad-request, where the conditions cannot be read.
        RevisionConflictError: it is at none of the revisions that the request expects.
    """
    tags, others = _tags(call, _MATCH), _tags(call, _NONE_MATCH)
    if others is not None:
        head = await backend.get(key, limit=0)
        if tags is None and _names(others, head.revision):
            return head, True
    found = await backend.get(key, limit=limit, before=before, after=after)
    if tags is not None and not _is_met(tags, found.revision):
        raise RevisionConflictError(key)
    return found, others is not None and _names(others, found.revision)


def _tags(call: Call, name: str) -> Tags | None:
    value = call.header(name)
    return None if value is None else read_tags(name, value)


def _is_met(tags: Tags, revision: str) -> bool:
    return revision != NO_REVISION if tags.any else revision in tags.strong


def _names(tags: Tags, revision: str) -> bool:
    """Whether it is one of them; for reading, a weak tag is as good as a strong one."""
    return _is_met(tags, revision) or revision in tags.weak
