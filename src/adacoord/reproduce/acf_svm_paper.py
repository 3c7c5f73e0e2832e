"""What ACF's Appendix B prints for the data sets at hand: seconds and iterations by C.

(Its "2.140" seconds of ACF on cover type at C = 100 are taken for 2,140.)
"""

from __future__ import annotations

COSTS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
#: The rows of its data sets (Table 2).
ROWS = {"covtype": 581_012, "news20": 19_996, "rcv1": 20_242}


def _pairs(seconds: tuple[float, ...], visits: tuple[float, ...]):
    return tuple(zip(seconds, visits, strict=True))


#: (data set, method, eps) to the (seconds, iterations) of each C of COSTS.
PAPER = {
    ("covtype", "liblinear", 0.01): _pairs(
        (1.29, 2.73, 12.5, 69.5, 533, 4450), (3.31e6, 7.41e6, 3.38e7, 1.80e8, 1.37e9, 1.14e10)
    ),
    ("covtype", "ACF", 0.01): _pairs(
        (4.50, 6.43, 16.3, 121, 676, 8280), (8.92e6, 1.29e7, 3.31e7, 1.92e8, 1.49e9, 1.41e10)
    ),
    ("news20", "liblinear", 0.01): _pairs(
        (0.56, 0.60, 2.30, 3.56, 7.39, 100), (8.03e4, 1.22e5, 4.04e5, 6.38e5, 1.38e6, 2.47e7)
    ),
    ("news20", "ACF", 0.01): _pairs(
        (0.63, 1.05, 1.71, 2.33, 2.62, 3.78), (1.20e5, 2.03e5, 3.37e5, 3.82e5, 4.82e5, 7.37e5)
    ),
    ("rcv1", "liblinear", 0.01): _pairs(
        (0.09, 0.13, 0.46, 1.76, 4.27, 14.1), (9.36e4, 1.46e5, 4.77e5, 1.70e6, 4.19e6, 1.43e7)
    ),
    ("rcv1", "ACF", 0.01): _pairs(
        (0.15, 0.24, 0.38, 0.70, 0.94, 1.32), (1.62e5, 2.78e5, 4.62e5, 7.98e5, 1.05e6, 1.51e6)
    ),
    ("covtype", "liblinear", 0.001): _pairs(
        (1.28, 2.75, 12.5, 69.5, 597, 4750), (3.31e6, 7.41e6, 3.38e7, 1.80e8, 1.78e9, 1.44e10)
    ),
    ("covtype", "ACF", 0.001): _pairs(
        (4.50, 8.74, 32.4, 220, 2140, 17300), (8.92e6, 1.80e7, 6.45e7, 4.62e8, 4.32e9, 3.71e10)
    ),
    ("news20", "liblinear", 0.001): _pairs(
        (0.56, 0.78, 8.54, 9.84, 11.9, 103), (8.03e4, 1.54e5, 1.55e6, 1.87e6, 2.90e6, 2.50e7)
    ),
    ("news20", "ACF", 0.001): _pairs(
        (0.68, 0.97, 1.65, 2.03, 2.59, 4.49), (1.20e5, 2.03e5, 3.37e5, 3.82e5, 4.82e5, 8.80e5)
    ),
    ("rcv1", "liblinear", 0.001): _pairs(
        (0.09, 0.17, 2.74, 2.85, 4.73, 18.4), (9.40e4, 1.93e5, 3.36e6, 3.36e6, 5.63e6, 2.14e7)
    ),
    ("rcv1", "ACF", 0.001): _pairs(
        (0.22, 0.53, 0.60, 0.74, 1.05, 1.32), (2.64e5, 6.09e5, 7.33e5, 9.14e5, 1.30e6, 1.70e6)
    ),
}


def printed_sweeps(name: str, method: str, eps: float) -> list[float]:
    """Iterations over n, for each C of COSTS."""
    return [visits / ROWS[name] for _, visits in PAPER[name, method, eps]]
