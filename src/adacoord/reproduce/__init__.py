"""The papers' figures and tables, run again: ``adacoord reproduce``.

=================  ==============================================================================
``entry.py``       what an entry is: a claim, rules that judge it, a run; and what a run leaves
``lab.py``         what a run is given: data sets with their stand-ins, problems with their optima
``trace.py``       P(x) after each pass of a solver, and the passes and seconds to a level
``figures.py``     curves in panels, drawn as small SVG files
``page.py``        the page of results, made from what the entries left
``command.py``     the command line's part
``spdc.py`` ...    the entries: a module a paper, which collects those of others of its name
=================  ==============================================================================
"""

from __future__ import annotations

from .entry import Entry

#: The papers, by the name their entries begin with.
PAPERS = {
    "spdc": "Zhang and Xiao, Stochastic primal-dual coordinate method for regularized empirical "
    "risk minimization, JMLR 2017",
    "ais": "Liu, Wang and So, Adaptive coordinate sampling for stochastic primal-dual "
    "optimization, 2021",
    "ada": "Zhu and Storkey, Adaptive stochastic primal-dual coordinate descent for separable "
    "saddle point problems, ECML 2015",
    "acf": "Glasmachers and Dogan, Accelerated coordinate descent with adaptive coordinate "
    "frequencies, ACML 2013",
}


def entries() -> dict[str, Entry]:
    """Every entry by its name, in the order of the papers."""
    from . import acf, adaspdc, ais, spdc

    return {e.name: e for paper in (spdc, ais, adaspdc, acf) for e in paper.ENTRIES}
