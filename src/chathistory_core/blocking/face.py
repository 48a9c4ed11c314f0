"""What stands in front of an asynchronous object: its methods, of which each returns when it is done."""

from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Concatenate, Generic, ParamSpec, TypeVar, cast

from chathistory_core.blocking.call import run

A = TypeVar("A")
P = ParamSpec("P")
T = TypeVar("T")


class Face(Generic[A]):
    """The blocking form of an asynchronous object."""

    def __init__(self, target: A, *, save_timeout: float) -> None:
        if not save_timeout >= 0:
            raise ValueError(f"`save_timeout` is a number of seconds, not {save_timeout!r}")
        self.target = target
        """The asynchronous object; its coroutines run on the loop of its face alone."""
        self.save_timeout = save_timeout
        """How many seconds Ctrl-C waits for a write."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.target!r}>"


def same(method: Callable[Concatenate[A, P], T]) -> Callable[Concatenate[Face[A], P], T]:
    """The target's method, which needs no waiting."""

    @wraps(method)
    def call(self: Face[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return _of(self.target, method)(*args, **kwargs)

    return call


def waited(
    method: Callable[Concatenate[A, P], Coroutine[object, object, T]],
) -> Callable[Concatenate[Face[A], P], T]:
    """The target's coroutine method, waited for."""

    @wraps(method)
    def call(self: Face[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run(partial(_of(self.target, method), *args, **kwargs))

    return call


def saved(
    method: Callable[Concatenate[A, P], Coroutine[object, object, T]],
) -> Callable[Concatenate[Face[A], P], T]:
    """The target's coroutine method, waited for; and when it is interrupted, for the time that a save has."""

    @wraps(method)
    def call(self: Face[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run(partial(_of(self.target, method), *args, **kwargs), save_timeout=self.save_timeout)

    return call


def _of(target: A, method: Callable[Concatenate[A, P], T]) -> Callable[P, T]:
    """The target's own method: that of a protocol has no body."""
    return cast("Callable[P, T]", getattr(target, method.__name__))
