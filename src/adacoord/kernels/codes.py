"""The integers that stand for losses in the kernels: functions as arguments are never cached."""

QUADRATIC, MARGIN, LOGISTIC, POISSON, MULTINOMIAL = range(5)
