"""The byte parser of svmlight text, with correctly rounded numbers.

A mantissa below 2**53 times or over a power of ten up to 10**22 is one exact floating-point
operation.  A mantissa of up to 18 digits, or another power, is scaled in twice the precision, and
the result kept if no error within the bound could change its rounding.  Of a longer mantissa the
first 18 digits do, if with the last of them one higher the result is the same.  Any other number
is left to the caller, with its place in the text.

The helpers take the address of a byte, not the array and a position: Numba counts references to
an array at each call, which cost more than all the rest.  Digits are read eight at a time.
"""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..kernels.jit import jit

# How a parse ends; what is wrong with a feature comes in the order in which it is looked for.
DONE, BAD_LABEL, BAD_INDEX, TOO_WIDE, INDEX_ZERO, REPEATED, BAD_VALUE = range(7)
# How a number ends.
_READ, _INEXACT, _MALFORMED = range(3)

_EXACT = 1 << 53
_LARGEST = 64  # exponents up to so many are scaled here
# The powers of ten from -64 to 64, each the sum of two doubles; from 0 to 22 the first is exact.
_EXACT_POWERS = [Fraction(10) ** k for k in range(-_LARGEST, _LARGEST + 1)]
_POWERS = np.array([float(power) for power in _EXACT_POWERS])
_POWERS_REST = np.array([float(power - Fraction(float(power))) for power in _EXACT_POWERS])
_WHOLE_POWERS = np.array([10**k for k in range(9)], np.int64)
_DIGITS = 18  # as many as an int64 holds

_NEWLINE, _SPACE, _HASH, _PLUS, _MINUS, _DOT, _COLON = (ord(c) for c in "\n #+-.:")
_ZERO, _E, _LOWER_E, _Q, _I, _D = (ord(c) for c in "0Eeqid")

# Arithmetic on eight bytes at once, the first of them lowest.
_LITTLE_ENDIAN = sys.byteorder == "little"
_ZEROS, _OVER_NINE, _TOPS = (np.uint64(0x0101010101010101 * c) for c in (_ZERO, 0x7F - 9, 0x80))
_PAIRS = np.uint64(0x000000FF000000FF)
_OUTER = np.uint64((1_000_000 << 32) + 100)
_INNER = np.uint64((10_000 << 32) + 1)
_TEN, _U8, _U16, _U32, _U64 = (np.uint64(c) for c in (10, 8, 16, 32, 64))


def _loading(bits: int):
    """Return an intrinsic that loads so many bits from an address, aligned or not."""

    def load(typingctx, address):
        def codegen(context, builder, signature, args):
            integer = ir.IntType(bits)
            word = builder.load(builder.inttoptr(args[0], integer.as_pointer()), align=1)
            return builder.zext(word, ir.IntType(64)) if bits < 64 else word

        return (types.int64 if bits < 64 else types.uint64)(types.int64), codegen

    return intrinsic(load)


_byte, _word = _loading(8), _loading(64)


@intrinsic
def _trailing_zeros(typingctx, word):
    """Return the number of zero bits below the lowest bit that is set, 64 if none is."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.IntType(1)(0))

    return types.uint64(types.uint64), codegen


@jit
def _scaled(mantissa, exponent):
    """Return ``mantissa * 10**exponent``, and whether it is certain to be correctly rounded."""
    size = abs(exponent)
    if size > _LARGEST:
        return 0.0, mantissa == 0
    high = float(mantissa)
    if mantissa <= _EXACT and size <= 22:
        power = _POWERS[np.uint64(size + _LARGEST)]
        return (high * power if exponent >= 0 else high / power), True
    # In twice the precision, the number is value + rest with a relative error below 2**-102.
    power = _POWERS[np.uint64(exponent + _LARGEST)]
    low = float(mantissa - np.int64(high))
    value = high * power
    # Dekker's product: high * power = value + error, exactly.
    x1, y1 = 134217729.0 * high, 134217729.0 * power
    x1, y1 = x1 - (x1 - high), y1 - (y1 - power)
    x2, y2 = high - x1, power - y1
    error = x2 * y2 - (((value - x1 * y1) - x2 * y1) - x1 * y2)
    rest = error + (high * _POWERS_REST[np.uint64(exponent + _LARGEST)] + low * power)
    doubt = value * 2.0**-100
    return value + rest, value + (rest - doubt) == value + (rest + doubt)


@jit(inline=True)
def _append_digits(p, end, number):
    """Append the digits at ``p`` to ``number``; the caller counts them, for this overflows."""
    while _LITTLE_ENDIAN and p + 8 <= end:
        word = _word(p) ^ _ZEROS
        # The top bit of each byte up to the first that is no digit says whether it is one.
        others = (word | (word + _OVER_NINE)) & _TOPS
        found = _trailing_zeros(others) >> np.uint64(3)
        if found == 0:
            return number, p
        # Zeros in front make them eight digits; then pairs, and from those the whole.
        word <<= _U64 - (found << np.uint64(3))
        word = word * _TEN + (word >> _U8)
        word = ((word & _PAIRS) * _OUTER + ((word >> _U16) & _PAIRS) * _INNER) >> _U32
        number = number * _WHOLE_POWERS[found] + np.int64(word)
        p += np.int64(found)
        if found < 8:
            return number, p
    digit = _byte(p) - _ZERO
    while 0 <= digit <= 9:
        number = 10 * number + digit
        p += 1
        digit = _byte(p) - _ZERO
    return number, p


@jit
def _leading_digits(p):
    """Return the first digits at ``p``, as many as a mantissa holds; there are more than that."""
    number, digits = 0, 0
    while digits < _DIGITS:
        c = _byte(p)
        if c != _DOT:
            number = 10 * number + c - _ZERO
            digits += 1
        p += 1
    return number


@jit(inline=True)
def _number(p, end):
    """Read the number at ``p``: its value, where it ends, and how sure the value is."""
    c = _byte(p)
    negative = c == _MINUS
    p += negative or c == _PLUS
    first = p
    mantissa, p = _append_digits(p, end, 0)
    digits, exponent = p - first, 0
    if _byte(p) == _DOT:
        point = p + 1
        mantissa, p = _append_digits(point, end, mantissa)
        exponent = point - p
        digits -= exponent
    if digits == 0:
        return 0.0, p, _MALFORMED
    while digits > _DIGITS and (_byte(first) == _ZERO or _byte(first) == _DOT):
        digits -= _byte(first) == _ZERO  # leading zeros take no room
        first += 1
    dropped = max(digits - _DIGITS, 0)
    if dropped > 0:
        mantissa = _leading_digits(first)
    exact = True
    c = _byte(p)
    if c == _E or c == _LOWER_E:
        p += 1
        c = _byte(p)
        down = c == _MINUS
        p += down or c == _PLUS
        first = p
        power, p = _append_digits(p, end, 0)
        if p == first:
            return 0.0, p, _MALFORMED
        exact = p - first <= _DIGITS
        exponent += -power if down else power
    if not exact:
        return 0.0, p, _INEXACT
    value, certain = _scaled(mantissa, exponent + dropped)
    if dropped > 0:  # the number lies between this mantissa's and the next one's
        above, sure = _scaled(mantissa + 1, exponent + dropped)
        certain &= sure & (above == value)
    return (-value if negative else value), p, (_READ if certain else _INEXACT)


@jit
def _is_blank(c):
    return c == _SPACE or 9 <= c <= 13


@jit
def _ends_token(c):
    return _is_blank(c) or c == _HASH


@jit
def _skip_blanks(p):
    """Return the first byte that is no blank, or the line end."""
    c = _byte(p)
    while _is_blank(c) and c != _NEWLINE:
        p += 1
        c = _byte(p)
    return p


@jit
def after_last_line(text):
    """Return where the last whole line of ``text`` ends; 0 if there is none."""
    p = text.size
    while p > 0 and text[p - 1] != _NEWLINE:
        p -= 1
    return p


@jit
def count(text):
    """Return the numbers of colons and of line ends, at most as many entries and rows."""
    colons, lines = 0, 0
    for c in text:
        colons += c == _COLON
        lines += c == _NEWLINE
    return colons, lines


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
    start = np.int64(text.ctypes.data)
    end = start + text.size
    p, rows, entries, n_inexact, largest, ordered = start, 0, 0, 0, -1, True
    code = DONE
    indptr[0] = 0
    while True:
        while p < end and _is_blank(_byte(p)):
            p += 1
        if p == end:
            break
        if _byte(p) == _HASH:
            while _byte(p) != _NEWLINE:
                p += 1
            continue
        value, stop, verdict = _number(p, end)
        if verdict == _MALFORMED or not _ends_token(_byte(stop)):
            code = BAD_LABEL
            break
        if verdict == _INEXACT:
            inexact[n_inexact] = p - start, stop - start, -1 - rows
            n_inexact += 1
        b[rows] = value
        p = _skip_blanks(stop)
        if _byte(p) == _Q and _byte(p + 1) == _I and _byte(p + 2) == _D and _byte(p + 3) == _COLON:
            while not _ends_token(_byte(p)):
                p += 1
            p = _skip_blanks(p)
        previous = -1
        c = _byte(p)
        while c != _NEWLINE and c != _HASH:
            index, colon = _append_digits(p, end, 0)
            column = index - first
            if colon == p or _byte(colon) != _COLON:
                code = BAD_INDEX
            elif colon - p > _DIGITS or column >= widest:
                code = TOO_WIDE
            elif column < 0:
                code = INDEX_ZERO
            elif column == previous:
                code = REPEATED
            if code != DONE:
                break
            ordered &= column > previous
            previous = column
            largest = max(largest, column)
            value, stop, verdict = _number(colon + 1, end)
            if verdict == _MALFORMED or not _ends_token(_byte(stop)):
                code = BAD_VALUE
                break
            if verdict == _INEXACT:
                inexact[n_inexact] = colon + 1 - start, stop - start, entries
                n_inexact += 1
            indices[entries] = column
            values[entries] = value
            entries += 1
            p = _skip_blanks(stop)
            c = _byte(p)
        if code != DONE:
            break
        rows += 1
        indptr[rows] = entries
    return code, p - start, rows, entries, n_inexact, largest, ordered
