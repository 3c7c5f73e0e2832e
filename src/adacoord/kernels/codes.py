"""The integers that stand for losses in the kernels: functions as arguments are never cached."""

#: Every code that :mod:`.loss` (or, for multinomial, :mod:`.classes`) has a row for.
CODES = range(8)
QUADRATIC, MARGIN, LOGISTIC, POISSON, MULTINOMIAL, LOG_COSH, GAMMA, TWEEDIE = CODES
