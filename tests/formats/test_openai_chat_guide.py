import re
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[2] / "docs/how-to/openai-chat.md"


def test_the_guide_is_true() -> None:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 5
    exec("\n".join(blocks), {})
