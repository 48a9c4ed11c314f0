"""The blocking forms are called like the asynchronous ones."""

import inspect
from collections.abc import Callable

import pytest

import chathistory_core
from chathistory_core import ChatHistoryBackend, StoredChatHistoryProvider, blocking
from chathistory_memory import MemoryBackend

HISTORY = StoredChatHistoryProvider(MemoryBackend())

FACES: list[tuple[object, object]] = [
    (blocking.BlockingBackend(MemoryBackend()), ChatHistoryBackend),
    (blocking.BlockingProvider(HISTORY), HISTORY),
    (blocking.BlockingProvider(HISTORY).turn(None, []), HISTORY.turn(None, [])),
]
FOR_FRAMEWORKS = {
    "get_service",
    "invoked",
    "invoked_core",
    "invoking",
    "invoking_core",
    "provide_chat_history",
    "state_keys",
    "store_chat_history",
}


def members(value: object) -> set[str]:
    annotated = vars(value).get("__annotations__", {}) if isinstance(value, type) else {}
    return {name for name in {*dir(value), *annotated} if not name.startswith("_")}


def parameters(function: Callable[..., object]) -> list[tuple[str, object, object]]:
    return [(each.name, each.kind, each.default) for each in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize(("face", "asynchronous"), FACES)
def test_a_face_has_the_members_of_what_it_stands_for(face: object, asynchronous: object) -> None:
    assert members(face) - {"save_timeout", "target"} == members(asynchronous) - FOR_FRAMEWORKS


@pytest.mark.parametrize(("face", "asynchronous"), FACES)
def test_each_method_has_the_same_parameters_and_a_docstring(face: object, asynchronous: object) -> None:
    for name, member in inspect.getmembers(type(face)):
        if not name.startswith("_"):
            assert inspect.getdoc(member), name
            assert not inspect.iscoroutinefunction(member), name
            if inspect.isfunction(member):
                owner = asynchronous if isinstance(asynchronous, type) else type(asynchronous)
                assert parameters(member) == parameters(getattr(owner, name)), name


@pytest.mark.parametrize("name", ["open_backend", "open_history", "iter_records", "read_on", "erase"])
def test_each_function_has_the_same_parameters(name: str) -> None:
    assert parameters(getattr(blocking, name)) == parameters(getattr(chathistory_core, name))


def test_all_is_what_is_public() -> None:
    public = {name for name, value in vars(blocking).items() if not (name.startswith("_") or inspect.ismodule(value))}
    assert public == set(blocking.__all__)
