"""A build writes a Markdown twin of each page, and the list of all for programs that read them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONF = """
project = "small"
extensions = ["myst_parser", "sphinx_design", "docs.extensions.commands", "docs.extensions.sample_files"]
extensions += ["docs.extensions.twins"]
myst_enable_extensions = ["colon_fence"]
"""
PAGES = {
    "index": """# Small

::::{grid} 1 2
:gutter: 3

:::{grid-item-card} Read
:link: group
:link-type: doc
What lies in files.
:::
::::

```{toctree}
:hidden:
:caption: How to

group
```
""",
    "group": "# Group\n\nPages.\n\n```{toctree}\nsub/page\ntutorial\nsub/command\n```\n",
    "tutorial": "# Tutorial\n\n## The files\n",
    "sub/page": '# Page\n\nText, and [another](../group.md).\n\n```python\nopen("corpus/a.jsonl")\n```\n',
    "sub/command": "# A command\n\n```{command} state diff\n```\n",
}


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """The folder of the HTML pages of a small project."""
    source = tmp_path / "docs"
    (source / "sub").mkdir(parents=True)
    (tmp_path / "AGENTS.md").write_text("# For assistants\n", encoding="utf-8")
    (source / "conf.py").write_text(CONF, encoding="utf-8")
    for name, page in PAGES.items():
        (source / f"{name}.md").write_text(page, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(source), str(tmp_path / "html")]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return tmp_path / "html"


@pytest.mark.exhaustive
def test_a_build_writes_twins_and_their_list(built: Path) -> None:
    def twin(name: str) -> str:
        return (built / f"{name}.md").read_text(encoding="utf-8")

    assert twin("index") == "# Small\n\n- [Read](group.md): What lies in files.\n"
    assert twin("group").endswith(
        "- [Page](sub/page.md)\n- [Tutorial](tutorial.md)\n- [A command](sub/command.md)\n"
    )
    note = "*The examples read [the files of the tutorial](../tutorial.md#the-files).*"
    assert twin("sub/page") == PAGES["sub/page"].replace("# Page\n", f"# Page\n\n{note}\n")
    assert "seekable state diff [OPTIONS] A B" in twin("sub/command")
    assert twin("AGENTS") == "# For assistants\n"
    listed = (built / "llms.txt").read_text(encoding="utf-8")
    assert listed.startswith("# small\n\n> ")
    assert listed.endswith(
        "## How to\n\n- [Group](group.md)\n  - [Page](sub/page.md)\n  - [Tutorial](tutorial.md)\n"
        "  - [A command](sub/command.md)"
    )
