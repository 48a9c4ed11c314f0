"""A path of the service: who is let in, which methods it takes, and how what goes wrong is told."""

import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter

from starlette.types import Receive, Scope, Send

from chathistory_core import ChatHistoryError
from chathistory_http.service.answer import Answer, refusal
from chathistory_http.service.call import Call
from chathistory_http.service.metrics import Metrics
from chathistory_http.wire.problems import ProblemError, problem_of

Handler = Callable[[Call], Awaitable[Answer]]

_log = logging.getLogger("chathistory.service")


class Endpoint:
    """An ASGI application for one path. A handler of GET answers HEAD, too."""

    def __init__(self, path: str, handlers: Mapping[str, Handler], metrics: Metrics) -> None:
        """`path` is what the metrics call it."""
        self._path = path
        self._handlers = {**handlers, "HEAD": handlers["GET"]}
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        start = perf_counter()
        call = Call(scope, receive)
        handler = self._handlers.get(call.method)
        if handler is None:
            answer = refusal(not_allowed(*self._handlers))
        else:
            answer = await _answer(handler, call)
        await answer.send(send, head=call.method == "HEAD")
        method = call.method if handler is not None else "other"
        self._metrics.note(self._path, method, answer.status, perf_counter() - start)


async def _answer(handler: Handler, call: Call) -> Answer:
    try:
        return await handler(call)
    except ProblemError as problem:
        return refusal(problem)
    except ChatHistoryError as error:
        told = problem_of(error)
        if told.name in ("internal", "unavailable"):
            _log.error("%s failed: %s: %s", call.method, type(error).__name__, error)
        return refusal(told)
    except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer and the log the place
        place = "".join(traceback.format_tb(error.__traceback__))  # its text might show content
        _log.error("%s failed: %s at\n%s", call.method, type(error).__name__, place)
        return refusal(ProblemError("internal", "the service has failed: its log says why"))


def not_allowed(*methods: str) -> ProblemError:
    """The refusal of a method that the path does not take; `methods` are those it takes."""
    allowed = ", ".join(sorted(methods))
    return ProblemError("method-not-allowed", f"this path takes {allowed}", headers={"Allow": allowed})
