"""The constants of ``auto``: each with what it was measured on, and the command that shows it.

``picks``   ``python benchmarks/picks.py`` (seconds and entries of what ``auto`` takes and of every
            other candidate, on w8a, a9a, covtype, rcv1.subset, news20, leukemia, mnist and random
            data; l2 from 1e-3 to 1e-7)
``small``   ``python benchmarks/small.py``
``robust``  ``python benchmarks/robust.py``
``cost``    ``python benchmarks/cost.py``

Work is counted in entries of A touched by dual ascent, never in seconds: same seed, same bits.
"""

# ---- the work of Newton's method, in nanoseconds of one core that is also busy otherwise ---------

#: A multiply-add of BLAS, and of the sparse Gram matrix (picks: fitted to the table of
#: :func:`.rule.newton_is_cheaper`).
BLAS_FLOP, SPARSE_PAIR = 0.15, 2.5
#: An entry and a row in a pass, and the calls of an iteration (the same fit).
ENTRY, ROW, CALLS = 5.0, 300.0, 4e5
#: Newton's iterations for a loss of one number per row that is not squared, and for multinomial
#: (1 to 15 were taken in that table).
ITERATIONS, BLOCK_ITERATIONS = 8.0, 12.0
#: Passes of the coordinate methods: at kappa = 1, and per root of kappa where rows meet and where
#: they are fewer than the columns (apdc at 1e-6 took 12, 21, 36, 48, 116, 306 passes at kappa = 3,
#: 25, 100, 750, 750, 3000).
EASY_PASSES, PASSES_PER_ROOT, WIDE_PASSES_PER_ROOT = 10.0, 3.0, 1.0

# ---- the rule -----------------------------------------------------------------------------------

#: n l2 gamma/R^2 above which dual ascent takes few passes: smooth losses, losses with kinks
#: (picks: a9a and mnist, C = 1 to 100; see the table of :func:`.rule.choose`).
EASY, EASY_WITH_KINKS = 0.3, 0.03
#: ... above which an elastic net is left to dual ascent, if l2 outweighs l1 (picks: rcv1.subset,
#: a9a and leukemia; behind working sets nowhere by more than a tenth but on a9a).
WELL_CONDITIONED = 1.0
#: ... below which Newton steps of ACF must be cheap for all rows, not only for those at kinks
#: (picks: w8a hinge, l2 = 1e-7).
BADLY_CONDITIONED = 1e-3
#: Rows per column from which on rows meet: classification, regression (picks: rcv1.subset and
#: news20, where dual ascent needs few passes).
MEET_CLASSIFICATION, MEET_REGRESSION = 2.0, 0.5

# ---- the fallback -------------------------------------------------------------------------------

#: Work before a first method is judged; where it may yet turn to Newton steps (24 runs of picks
#: that touched 100 to 650 times the entries of A had forecasts of up to 1.7e6 times on the way).
JUDGED_AFTER, NEWTON_JUDGED_AFTER = 50.0, 500.0
#: What is left over what the second method takes, for a switch.
FACTOR = 2.0
#: Work of a pass of APDC: a quarter more entries than A has, at twice the cost (cost).
APDC_PASS = 2.6
#: Work of an entry touched by APDC, and by ACF on columns, which streams through them (cost).
APDC_ENTRY, COLUMN_ENTRY = 2.0, 0.4
#: Expected passes of APDC: the constant, and per root of kappa (picks).
APDC_FIRST, APDC_PER_ROOT = 10.0, 4.0
#: Expected passes of dual ascent: where rows do not meet; else the constant, and per kappa for
#: smooth losses and for losses with kinks (picks).
APART, ASCENT_FIRST, ASCENT_PER_KAPPA, ASCENT_PER_KAPPA_WITH_KINKS = 50.0, 30.0, 5.0, 20.0
#: The relative gap that expectations are for.
USUAL = 1e-6
