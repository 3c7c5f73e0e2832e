"""ACF (Glasmachers and Dogan, 2013): its entries, each idea in a module of its own.

======================  ========================================================================
``acf_markov.py``       Table 1: progress rates of coordinate descent on three coordinates
``acf_svm.py``          linear SVMs by liblinear and by ACF: the runs of ...
``acf_svm_figures.py``  ... Figures 1-2 ...
``acf_appendix.py``     ... and Appendix B
``acf_lasso.py``        Table 3: the lasso against coordinates in turn
======================  ========================================================================
"""

from __future__ import annotations

from . import acf_appendix, acf_lasso, acf_markov, acf_svm_figures
from .entry import Entry

ENTRIES: tuple[Entry, ...] = (
    acf_markov.TABLE1,
    acf_svm_figures.FIGURE1,
    acf_svm_figures.FIGURE2,
    acf_lasso.TABLE3,
    acf_appendix.APPENDIX_B,
)
