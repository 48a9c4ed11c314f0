import asyncio
import os
import sys
from collections.abc import Callable

import pytest

from chathistory_core import BackendStateError, Opened


async def _do(*steps: Callable[[], None]) -> None:
    for step in steps:
        step()


def test_the_loop_that_opened_it_may_use_it_until_it_is_closed() -> None:
    opened = Opened("the store")
    for _ in range(2):
        asyncio.run(_do(opened.open, opened.check, opened.check, opened.close))
    with pytest.raises(BackendStateError, match=r"^the store is closed: use it inside `async with`$"):
        asyncio.run(_do(opened.check))


def test_it_is_closed_at_first() -> None:
    with pytest.raises(BackendStateError, match=r"^the store is closed: use it inside `async with`$"):
        asyncio.run(_do(Opened("the store").check))


def test_a_second_opening_is_refused_and_the_first_goes_on() -> None:
    opened = Opened("the store")

    async def scenario() -> None:
        opened.open()
        with pytest.raises(BackendStateError, match=r"^the store is open already: use the one"):
            opened.open()
        opened.check()

    asyncio.run(scenario())


def test_another_loop_is_refused() -> None:
    opened = Opened("the store")
    asyncio.run(_do(opened.open))
    with pytest.raises(BackendStateError, match=r"^the store was opened in another event loop: open"):
        asyncio.run(_do(opened.check))
    with pytest.raises(BackendStateError, match="open already"):
        asyncio.run(_do(opened.open))


def test_another_thread_is_refused() -> None:
    opened = Opened("the store")

    async def scenario() -> None:
        opened.open()
        with pytest.raises(BackendStateError, match="another event loop"):
            await asyncio.to_thread(lambda: asyncio.run(_do(opened.check)))

    asyncio.run(scenario())


def test_a_thread_without_a_loop_is_refused() -> None:
    opened = Opened("the store")
    asyncio.run(_do(opened.open))
    with pytest.raises(BackendStateError, match="another event loop"):
        opened.check()


@pytest.mark.skipif(sys.platform == "win32", reason="this system cannot fork")
def test_a_forked_child_is_refused_and_opens_its_own() -> None:
    opened = Opened("the store")
    asyncio.run(_do(opened.open))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with pytest.raises(BackendStateError, match="was opened by a parent process: open another one in this"):
                asyncio.run(_do(opened.check))
            asyncio.run(_do(opened.open, opened.check))
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
