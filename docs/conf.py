"""How Sphinx builds these pages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from pathlib import Path

from seekable._version import __version__
from seekable.formats import contract, look
from seekable.storage.listing import FoundFiles

# A struct evaluates its annotations for its signature, and these names are imported for types alone.
vars(contract)["FoundFiles"] = FoundFiles
vars(look).update(Callable=Callable, Collection=Collection)

sys.path.insert(0, str(Path(__file__).parents[1]))

project = "seekable"
release = version = __version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "docs.extensions.commands",
    "docs.extensions.sample_files",
    "docs.extensions.twins",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"seekable {release}"
html_static_path = ["static"]
html_css_files = ["seekable.css"]
pygments_dark_style = "github-dark"
html_show_copyright = False
html_search_scorer = str(Path(__file__).parent / "scorer.js")
text_sectionchars = "=-~+'"  # of the Markdown twins

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

# A pasted block has neither prompts nor output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Frameworks that modules of `seekable.integrations` import: the pages are built without them.
autodoc_mock_imports = ["dask", "distributed", "lhotse", "megatron", "ray", "torch", "transformers"]
suppress_warnings = ["ref.python"]  # an attribute `bytes` or `index` is no answer to a type of that name
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
