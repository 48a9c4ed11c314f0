"""The pages hold what they promise to hold."""

import asyncio
import importlib
import re
from pathlib import Path

import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from chathistory_core import ChatMessage, open_history
from chathistory_core.demo import serve
from chathistory_core.formats import openai_chat

ROOT = Path(__file__).resolve().parents[2]
PAGES = [path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts]
README = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    "module",
    [
        "chathistory_core",
        "chathistory_core.messages",
        "chathistory_core.reducers",
        "chathistory_core.testing",
        "chathistory_core.blocking",
        "chathistory_core.conditional",
        "chathistory_memory",
        "chathistory_sqlite",
        "chathistory_redis",
        "chathistory_http",
    ],
)
def test_every_public_name_has_a_place_in_the_reference(module: str) -> None:
    reference = "".join(page.read_text("utf-8") for page in PAGES if page.parent.name == "reference")
    documented = set(re.findall(r"^\.\. (?:auto|py:)\w+:: (?:\w+\.)*(\w+)", reference, re.MULTILINE))
    assert set(importlib.import_module(module).__all__) - documented == set()


def test_every_example_is_shown_by_a_page() -> None:
    pages = "".join(page.read_text("utf-8") for page in PAGES)
    assert [path.name for path in (ROOT / "examples").glob("*.py") if f"examples/{path.name}" not in pages] == []


def test_the_links_of_the_readme_lead_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)", README) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_readme_s_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [example] = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {"ChatMessage": ChatMessage, "open_history": open_history, "openai_chat": openai_chat}
    body = "".join(f"    {line}\n" for line in example.splitlines())
    exec(f"async def example(client, M, T):\n{body}    return turn.messages", names)

    async def main(url: str) -> list[str]:
        transport = DefaultAsyncHttpxClient(trust_env=False)
        async with AsyncOpenAI(base_url=url, api_key="none", http_client=transport) as client:
            tools = [{"type": "function", "function": {"name": "get_time"}}]
            example = names["example"]
            assert callable(example)
            return [message.role for message in await example(client, "scripted", tools)]

    with serve() as url:
        assert asyncio.run(main(url)) == ["user", "assistant"]
