"""Sphinx; ``sphinx-build -W --keep-going -b html docs docs/_build``, with the extra ``docs``."""

import re
import shutil
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx_gallery.scrapers import figure_rst

import adacoord

project = "adacoord"
author = "The adacoord developers"
copyright = author
version = release = adacoord.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "auto_examples/*.ipynb", "auto_examples/*.py.md5"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
autodoc_typehints = "none"  # numpydoc's sections say more
autosummary_generate = True
templates_path: list[str] = []
suppress_warnings = [
    "config.cache",  # the scraper below is a function
    "ref.ref",  # docstrings inherited from scikit-learn point to its own pages
]

html_theme = "pydata_sphinx_theme"
html_title = "adacoord"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
}
html_show_sourcelink = False
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["style.css"]
#: Pages without pages below them have no use for a list of those.
html_sidebars = {page.stem: [] for page in Path(__file__).parent.glob("*.md")}

#: Where the examples draw: beside themselves, so that what they print names no folder.
PICTURE = Path(__file__).parents[1] / "examples" / "picture.png"


class _Arguments:
    """Every example is run as ``python example.py picture.png``."""

    def __repr__(self):
        return "_Arguments"

    def __call__(self, gallery_conf, script_vars):
        return [PICTURE.name]


def _drawn(block, block_vars, gallery_conf):
    """The picture that an example has drawn, put where the gallery wants it."""
    if not PICTURE.exists():
        return ""
    image = next(block_vars["image_path_iterator"])
    shutil.move(PICTURE, image)
    return figure_rst([image], gallery_conf["src_dir"])


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/[a-z_]+\.py$",
    "image_scrapers": (_drawn,),
    "reset_argv": _Arguments(),
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "plot_gallery": True,
    "abort_on_example_error": True,
}


def _keep_bars(app, what, name, obj, options, lines):
    """Docstrings write |x| as people do; reStructuredText would take that for a substitution."""
    formulas: dict[int, str] = {}
    math = None  # the indentation of the formula that the line is in
    for k, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if math is not None and line.strip() and indent <= math:
            math = None
        if ".. math::" in line:
            math = indent
        if math is not None:
            formulas[k] = line
    parts = re.split(r"(``.*?``|:math:`.*?`)", "\n".join(lines), flags=re.DOTALL)
    parts[::2] = [re.sub(r"(?<!\\)\|", r"\\|", part) for part in parts[::2]]
    escaped = "".join(parts).split("\n")
    lines[:] = [formulas.get(k, line) for k, line in enumerate(escaped)]


_BAR = '<mo stretchy="false" lspace="0" rspace="0">|</mo>'


def _formula(translator, node):
    """MathML, which browsers draw themselves: the pages ask no other host for a script."""
    # TeX takes one digit as an argument, docutils the whole number
    tex = re.sub(r"(\\[td]?frac)(\d)(\d)", r"\1{\2}{\3}", node.astext())
    block = isinstance(node, nodes.math_block)
    # bars are fences here, never the sign of a condition with room on both sides
    mathml = re.sub(r"<mo[^>]*>\|</mo>", _BAR, tex2mathml(tex, as_block=block))
    translator.body.append(mathml)
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))
    app.connect("autodoc-process-docstring", _keep_bars, priority=400)  # before numpydoc
