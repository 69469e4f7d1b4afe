# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sphinx's configuration for the sources that build_site.py has assembled.

Pages load nothing from other sites: fonts are the reader's, and the site has its scripts and its
search index. So it can be read from a disk.
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import error_ids  # noqa: E402
import highlighting  # noqa: E402

import tessera  # noqa: E402

project = "Tessera"
author = "the authors of Tessera"
html_title = f"Tessera {tessera.__version__.partition('+')[0]}"
extensions = ["myst_parser", "sphinx_design", "sphinx_copybutton"]
exclude_patterns = ["_build"]

# Docstrings and pages are Markdown, as GitHub shows it.
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_links_external_new_tab = False

# A name that two modules have is linked to the first of them.
suppress_warnings = ["ref.python"]
add_module_names = False
python_maximum_signature_line_length = 96
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_static_path = ["static"]
templates_path = ["templates"]
html_additional_pages = {"search": "search.html"}
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
pygments_style = "friendly"
pygments_dark_style = "monokai"
copybutton_prompt_text = "$ "


def setup(app: Any) -> None:
    highlighting.register(app)
    # The search is the project's own: search_index.py.
    app.connect("builder-inited", lambda app: setattr(app.builder, "search", False))
    app.connect("doctree-resolved", error_ids.link_ids)
