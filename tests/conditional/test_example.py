"""The example plugin, as its own distribution, passes its own tests."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "plugin-lmdb"


SLOW = "process or as_the_model_says or newest_turns"
"""What only a run of the example's tests by themselves does too."""


def test_the_example_plugin_is_found_by_its_entry_point_and_passes_the_kit(tmp_path: Path) -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))["project"]
    name, version = project["name"], project["version"]
    information = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
    [(group, entries)] = project["entry-points"].items()
    lines = [f"[{group}]", *(f"{entry} = {module}" for entry, module in entries.items())]
    (information / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", f"not ({SLOW})"),
            *("-c", EXAMPLE / "pyproject.toml", EXAMPLE),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(EXAMPLE / "src")])},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout
