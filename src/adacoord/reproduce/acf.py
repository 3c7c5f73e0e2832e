"""ACF (Glasmachers and Dogan, 2013): its entries, each idea in a module of its own.

=================  ==============================================================================
``acf_markov.py``  Table 1: progress rates of coordinate descent on three coordinates
``acf_svm.py``     Figures 1-2 and Appendix B: linear SVMs against liblinear
``acf_lasso.py``   Table 3: the lasso against coordinates in turn
=================  ==============================================================================
"""

from __future__ import annotations

from . import acf_lasso, acf_markov, acf_svm
from .entry import Entry

ENTRIES: tuple[Entry, ...] = (
    acf_markov.TABLE1,
    acf_svm.FIGURE1,
    acf_svm.FIGURE2,
    acf_lasso.TABLE3,
    acf_svm.APPENDIX_B,
)
