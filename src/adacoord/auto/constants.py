"""The constants of ``auto``: each with what it was measured on, and the command that shows it.

``picks``   ``python benchmarks/picks.py`` (seconds and entries of what ``auto`` takes and of every
            other candidate, on w8a, a9a, covtype, rcv1.subset, news20, leukemia, mnist and random
            data; l2 from 1e-3 to 1e-7)
``small``   ``python benchmarks/small.py``
``robust``  ``python benchmarks/robust.py``
``cost``    ``python benchmarks/cost.py``
``users``   ``python benchmarks/users.py``

Work is counted in entries of A touched by dual ascent, never in seconds: same seed, same bits.
"""

# ---- expected work, in nanoseconds of one core ---------------------------------------------------

#: A multiply-add of BLAS, and of the sparse Gram matrix (picks: newton on the dense tables and on
#: a9a, w8a, covtype).
BLAS_FLOP, SPARSE_PAIR = 0.07, 2.5
#: Columns that rows seem to have more, as short ones leave BLAS little to do (100,000 x 10).
SHORT_ROWS = 60
#: An entry in a product with A and one with A' together, dense and sparse; a row's loss with its
#: slope and curvature; the calls of an iteration, and of a pass of conjugate gradients (picks:
#: newton and newton-cg on the same).
PAIR, SPARSE_PRODUCTS, ROW_LOSS, CALLS, CG_CALLS = 0.9, 2.5, 20.0, 4e5, 1e5
#: A row's loss and the calls of an iteration on small data; entries of A up to which these are
#: solved to the last digit whatever it takes (66 random tables of 2^14 to 2^18 entries, logistic,
#: Poisson and gamma: what was taken was behind newton or newton-cg by 1.15 at most).
SMALL_ROW, SMALL_CALLS, LITTLE = 10.0, 1e5, 2**14
#: Passes of descent on columns of small data, and the calls of one (drawn tables of 100 x 10 to
#: 8,000 x 30 numbers, logistic, squared_hinge, huber and poisson, to 1e-4: 7 to 60 passes).
COLUMN_PASSES, COLUMN_CALLS = 30.0, 4e4
#: The same with K classes: an entry times a class, dense and sparse; a row's class (picks: the
#: tables with classes).
BLOCK_PAIR, SPARSE_BLOCK_PAIR, CLASS_LOSS = 0.25, 2.0, 15.0
#: Newton's iterations for a loss of one number per row that is not squared, for multinomial (1 to
#: 15 were taken), and for kinks, with the share of the rows that have a curvature then (picks).
ITERATIONS, BLOCK_ITERATIONS, KINK_STEPS, KINK_SHARE = 6.0, 8.0, 50.0, 0.15
#: Passes of conjugate gradients on dense data: the first, and per root of kappa.
CG_FIRST, CG_PER_ROOT = 8.0, 4.0
#: ... on dense least squares: an entry; passes for correlated columns over those for independent
#: ones, without a factor (2,000 x 200, 6,000 x 350, 3,000 x 800, 1,500 x 3,000 and 900 x 9,000,
#: neighbours of correlation .9: 65/10, 75/8, 138/16, 205/41, 47/14; five factors: 36, 46, 65, 88,
#: 30); and where columns are more than rows (of independent ones 28 and 10 are expected, 41 and 14
#: it took, with l2 = 1e-5 52 and 18).
SQUARED_PAIR, HARD, WIDE_EASY = 0.75, 5.0, 1.6
#: ... on sparse data (rcv1.subset, logistic, kappa = .1 and .25: 18 and 27).
SPARSE_CG_FIRST, SPARSE_CG_PER_ROOT = 15.0, 20.0
#: ... on sparse data with classes (mnist, 10 classes, l2 = 1e-4: far from done after 100), and on
#: rows that hardly meet (amazon's ids: 76 and 365 at kappa = 2.2 and 18).
SPARSE_BLOCK_CG_PER_ROOT, SPARSE_APART_CG_PER_ROOT = 40.0, 40.0
#: ... at most: dense, where rows are twice the columns and where not (the preconditioner sees to
#: it; 8 to 24 and 49 to 86 were taken to 1e-6), and sparse.
CG_MOST, CG_MOST_WIDE, SPARSE_CG_MOST = 16.0, 60.0, 400.0
#: L-BFGS on dense data with classes: an entry times a class, and a row's class, in a pass; its
#: calls; passes, the first, per root of kappa and at most (users: rows of 3 to 300 classes; to 1e-4
#: 5 to 54 passes were taken, 166 of 300 noisy classes).
QUASI_PAIR, QUASI_CLASS, QUASI_CALLS = 0.12, 4.0, 3e5
QUASI_FIRST, QUASI_PER_ROOT, QUASI_MOST = 8.0, 1.5, 60.0
#: An entry and a row in a pass of apdc, dense and sparse, and of acf (cost; 20,000 x 100 and 2,000
#: x 2,000, logistic: 290 ns and 1.8 us per row of acf).
APDC_DENSE, APDC_SPARSE, APDC_ROW = 2.0, 5.0, 300.0
ACF_DENSE, ACF_SPARSE, ACF_ROW = 0.9, 2.5, 200.0
#: A row of acf whose dual step has a closed form (amazon's ids: squared_hinge 75, logistic 175 ns).
ACF_QUADRATIC_ROW = 75.0
#: Passes of acf on sparse rows that meet, where it is easy: the first, and per kappa (text of 9,000
#: x 2,000: 7 and 17 at kappa = .25 and 2; ids of 4 to 5 columns: 12 and 60 at 1 and 9).
ACF_FIRST, ACF_PER_KAPPA = 7.0, 6.0
#: Several classes with an l1 on dense data: an entry times a class in a pass of working sets, and
#: passes of these; steps of Newton's method on all coefficients, their calls, iterations of
#: L-BFGS-B before them and steps after (drawn tables of 150 x 4 to 5,000 x 150, 3 to 12 classes,
#: l1_max/3 to /200: 9 to 359 passes, 1.5 to 4.5 ns; 3 to 7 steps).
CLASS_ENTRY, CLASS_PASSES = 4.0, 40.0
CLASS_STEPS, CLASS_CALLS, QUASI_ITERATIONS, CLASS_STEPS_AFTER = 5.0, 1.5e6, 100.0, 1.5
#: Entries over n x d up to which data stored as sparse are so (20,000 x 40, nine of ten entries,
#: logistic: acf .031, newton-cg .019 s).
THIN = 0.3
#: Passes of the coordinate methods: at kappa = 1, and per root of kappa where rows meet and where
#: they are fewer than the columns (apdc at 1e-6 took 12, 21, 36, 48, 116, 306 passes at kappa = 3,
#: 25, 100, 750, 750, 3000).
EASY_PASSES, PASSES_PER_ROOT, WIDE_PASSES_PER_ROOT = 10.0, 3.0, 0.5
#: ... at most, for classes and for quantities, where columns are twice the rows or more (700 x
#: 2,500, l2 = 1e-4 and 1e-6, acf to 1e-6: 18 to 43 of logistic and squared_hinge, 76 to 98 with
#: kinks).
WIDE_MOST_CLASSES, WIDE_MOST = 40.0, 90.0

#: Iterations of an interior point, and passes of APDC, on kinks with l1 alone (to 1e-6 13 to 28
#: were taken, and 45 to more than 3,000, where it stood at 1e-3 to 6e-5: hinge on text of 1,000 x
#: 5,000 at l1_max/5 and /50, .19 and .21 s against .15 and more than 2.2; at 6,000 x 50 dense 835
#: to more than 1,500; :mod:`adacoord.solvers.newton.interior`); with an l2 besides, for each root
#: of kappa where rows are as many as columns (tables from 500 x 20 to 20,000 x 2,000, l2/l1 from
#: .01 to 100: 9 to more than 1,000).  A multiply-add of a factor of 1,500 rows and more.
INTERIOR_STEPS, PROGRAM_PASSES, PROGRAM_PER_ROOT = 20.0, 2000.0, 25.0
LARGE_FLOP = 0.035

#: The time of conjugate gradients on sparse blocks by two threads over that by the serial method
#: (``python benchmarks/scale.py newton-cg``: .67 to .70, column ``alike``).
SHARED = 0.67

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
#: Rows per column from which on rows meet: classification, sparse and dense, and regression (picks:
#: rcv1.subset and news20, where dual ascent needs few passes; amazon's ids, 2.1 rows per column,
#: squared_hinge and logistic to 1e-6: acf .08 and .07 s, newton-cg .87 and .19, apdc .19 and .17).
MEET_SPARSE_CLASSIFICATION, MEET_CLASSIFICATION, MEET_REGRESSION = 3.0, 2.0, 0.5

# ---- the fallback -------------------------------------------------------------------------------

#: Work before a first method is judged; where it may yet turn to Newton steps (24 runs of picks
#: that touched 100 to 650 times the entries of A had forecasts of up to 1.7e6 times on the way).
JUDGED_AFTER, NEWTON_JUDGED_AFTER = 50.0, 500.0
#: The same for Newton's method with kinks, in units of what it is expected to take.
KINKED_PATIENCE = 4.0
#: Passes of working sets of columns with all their classes before these are judged.  (248 random
#: multinomial problems with an l1, up to 200 x 60 and 7 classes: half of those that get to tol by
#: themselves take 22 passes, nine in ten 250; with the fallback 5 miss tol in place of 58, in 2.3 s
#: in place of 5.4.  2,000 x 100 of 10 classes, l1 = l1_max/10^4: 6.2 s in place of 13.4.)
CLASS_PATIENCE = 100
#: Iterations of Newton's method on a lasso of few numbers, with the changes of its active sets, and
#: their calls.  (30 drawn tables of 2^13 to 2^17 numbers on which descent crawls: 24 ms for
#: 60 x 400, 17 to 475 for 230 x 230 to 310 x 310; expected are 22, and 100 to 210.)
ACTIVE_STEPS, ACTIVE_CALLS = 100.0, 2e5
#: What is left over what the second method takes, for a switch.
FACTOR = 2.0
#: Work of a pass of APDC: a quarter more entries than A has, at twice the cost (cost).
APDC_PASS = 2.6
#: Work of an entry touched by APDC, by ACF on columns, which streams through them, and by
#: conjugate gradients, which do so, too (cost).
APDC_ENTRY, COLUMN_ENTRY, CG_ENTRY = 2.0, 0.4, 0.4
#: Expected passes of APDC: the constant, and per root of kappa (picks).
APDC_FIRST, APDC_PER_ROOT = 10.0, 4.0
#: Expected passes of dual ascent: where rows do not meet; else the constant, and per kappa for
#: smooth losses and for losses with kinks (picks).
APART, ASCENT_FIRST, ASCENT_PER_KAPPA, ASCENT_PER_KAPPA_WITH_KINKS = 50.0, 30.0, 5.0, 20.0
#: The relative gap that expectations are for.
USUAL = 1e-6
