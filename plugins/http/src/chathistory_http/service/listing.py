"""A page of the conversations that a caller may see."""

from collections.abc import Sequence

from chathistory_core import ConversationSummary, check_key, check_page
from chathistory_http.service.answer import Header, field
from chathistory_http.service.call import Call
from chathistory_http.service.service import Service
from chathistory_http.wire.queries import read_page_query, write_page_query


async def page_of(service: Service, call: Call, path: str) -> tuple[Sequence[ConversationSummary], tuple[Header, ...]]:
    """The heads that the call asks for, and a `Link` to those behind them, where there may be some.

    Raises:
        ProblemError: bad-request, where the query cannot be read.
    """
    service.let_in(call, "list")
    prefix, after, limit, order = read_page_query(call.query)
    check_page(prefix, limit, order)
    if after is not None:
        check_key(after.key)
    visible = service.visible(call, prefix)
    if visible is None:
        return (), ()
    found = await service.backend.summaries(prefix=visible, after=after, limit=limit, order=order)
    if not found or len(found) != limit:
        return found, ()
    query = write_page_query(prefix, found[-1], limit, order)
    return found, (field("Link", f'<{call.root}{path}{query}>; rel="next"'),)
