"""The byte parser of svmlight text, with correctly rounded numbers.

A mantissa below 2**53 times or over a power of ten up to 10**22 is one exact floating-point
operation.  A mantissa of up to 18 digits is scaled in twice the precision, and the result kept if
no error within the bound could change its rounding.  Any other number is left to the caller,
with its place in the text.
"""

from __future__ import annotations

import numpy as np

from ..kernels.jit import jit

# How a parse ends.
DONE, BAD_LABEL, BAD_INDEX, BAD_VALUE, INDEX_ZERO, REPEATED, TOO_WIDE = range(7)
# How a number ends.
_READ, _INEXACT, _MALFORMED = range(3)

_EXACT = 1 << 53
_POWERS = np.array([float(10**k) for k in range(23)])  # those that a double holds exactly
_DIGITS = 18  # as many as an int64 holds

_NEWLINE, _SPACE, _HASH, _PLUS, _MINUS, _DOT, _COLON = (ord(c) for c in "\n #+-.:")
_ZERO, _E, _LOWER_E, _Q, _I, _D = (ord(c) for c in "0Eeqid")


@jit
def _scaled(mantissa, exponent):
    """Return ``mantissa * 10**exponent``, and whether it is certain to be correctly rounded."""
    high = float(mantissa)
    if abs(exponent) >= _POWERS.size:
        return high, mantissa == 0
    power = _POWERS[abs(exponent)]
    up = exponent >= 0
    value = high * power if up else high / power
    if mantissa <= _EXACT:
        return value, True
    # In twice the precision, the number is value + rest with a relative error below 2**-103.
    low = float(mantissa - np.int64(high))
    x = high if up else value
    product = x * power
    # Dekker's product: x * power = product + error, exactly.
    x1, y1 = 134217729.0 * x, 134217729.0 * power
    x1, y1 = x1 - (x1 - x), y1 - (y1 - power)
    x2, y2 = x - x1, power - y1
    error = x2 * y2 - (((product - x1 * y1) - x2 * y1) - x1 * y2)
    rest = error + low * power if up else (((high - product) - error) + low) / power
    doubt = value * 2.0**-100
    return value + rest, value + (rest - doubt) == value + (rest + doubt)


@jit
def _append_digits(text, p, number):
    """Append the digits at ``p`` to ``number``; the caller counts them, for this overflows."""
    digit = np.int64(text[p]) - _ZERO
    while 0 <= digit <= 9:
        number = 10 * number + digit
        p += 1
        digit = np.int64(text[p]) - _ZERO
    return number, p


@jit
def _number(text, p):
    """Read the number at ``p``: its value, where it ends, and how sure the value is."""
    negative = text[p] == _MINUS
    if negative or text[p] == _PLUS:
        p += 1
    first = p
    mantissa, p = _append_digits(text, p, 0)
    digits, exponent = p - first, 0
    if text[p] == _DOT:
        point = p + 1
        mantissa, p = _append_digits(text, point, mantissa)
        exponent = point - p
        digits -= exponent
    if digits == 0:
        return 0.0, p, _MALFORMED
    while digits > _DIGITS and (text[first] == _ZERO or text[first] == _DOT):
        digits -= text[first] == _ZERO  # leading zeros take no room
        first += 1
    exact = digits <= _DIGITS
    if text[p] == _E or text[p] == _LOWER_E:
        p += 1
        down = text[p] == _MINUS
        if down or text[p] == _PLUS:
            p += 1
        first = p
        power, p = _append_digits(text, p, 0)
        if p == first:
            return 0.0, p, _MALFORMED
        exact &= p - first <= _DIGITS
        exponent += -power if down else power
    if not exact:
        return 0.0, p, _INEXACT
    value, certain = _scaled(mantissa, exponent)
    return (-value if negative else value), p, (_READ if certain else _INEXACT)


@jit
def _ends_token(c):
    return c == _SPACE or 9 <= c <= 13 or c == _HASH


@jit
def _skip_blanks(text, p):
    while text[p] == _SPACE or (9 <= text[p] <= 13 and text[p] != _NEWLINE):
        p += 1
    return p


@jit
def parse(text, first, widest, b, indptr, indices, values, inexact):
    """Fill the arrays from ``text``, whose last byte must be a newline.

    Parameters
    ----------
    text : uint8 array
    first : int
        The index of the first column: 0 or 1.
    widest : int
        The largest number ``indices`` can hold.
    b, indptr, indices, values : arrays
        Filled: the labels and the matrix in CSR form, in the order of the text.
    inexact : int64 array of shape (most, 3)
        Filled: for each number left to the caller, its start and end in the text and its slot,
        an entry of ``values`` or -1 - row for a label.

    Returns
    -------
    tuple
        The outcome, the position of the offending token, the counts of rows, entries and inexact
        numbers, the largest column, and whether the columns increase within each row.
    """
    p, rows, entries, n_inexact, largest, ordered = 0, 0, 0, 0, -1, True
    indptr[0] = 0
    while True:
        while p < text.size and (text[p] == _SPACE or 9 <= text[p] <= 13):
            p += 1
        if p == text.size:
            return DONE, p, rows, entries, n_inexact, largest, ordered
        if text[p] == _HASH:
            while text[p] != _NEWLINE:
                p += 1
            continue
        value, end, verdict = _number(text, p)
        if verdict == _MALFORMED or not _ends_token(text[end]):
            return BAD_LABEL, p, rows, entries, n_inexact, largest, ordered
        if verdict == _INEXACT:
            inexact[n_inexact] = p, end, -1 - rows
            n_inexact += 1
        b[rows] = value
        p = _skip_blanks(text, end)
        if text[p] == _Q and text[p + 1] == _I and text[p + 2] == _D and text[p + 3] == _COLON:
            while not _ends_token(text[p]):
                p += 1
            p = _skip_blanks(text, p)
        previous = -1
        while text[p] != _NEWLINE and text[p] != _HASH:
            token = p
            index, p = _append_digits(text, p, 0)
            if p == token or text[p] != _COLON:
                return BAD_INDEX, token, rows, entries, n_inexact, largest, ordered
            column = index - first
            if p - token > _DIGITS or column >= widest:
                return TOO_WIDE, token, rows, entries, n_inexact, largest, ordered
            if column < 0:
                return INDEX_ZERO, token, rows, entries, n_inexact, largest, ordered
            if column == previous:
                return REPEATED, token, rows, entries, n_inexact, largest, ordered
            ordered &= column > previous
            previous = column
            largest = max(largest, column)
            value, end, verdict = _number(text, p + 1)
            if verdict == _MALFORMED or not _ends_token(text[end]):
                return BAD_VALUE, token, rows, entries, n_inexact, largest, ordered
            if verdict == _INEXACT:
                inexact[n_inexact] = p + 1, end, entries
                n_inexact += 1
            indices[entries] = column
            values[entries] = value
            entries += 1
            p = _skip_blanks(text, end)
        rows += 1
        indptr[rows] = entries
