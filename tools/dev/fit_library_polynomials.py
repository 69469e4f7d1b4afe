#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fit the polynomials of `libdevice` on CPUs and print them as a Python module.

The fits are those of fit_math_polynomials.py: weighted minimax polynomials in 80-digit
arithmetic, each coefficient rounded to float64. Each is made twice: for results that are
float64 and, shorter, for those that are rounded to float32.

    fit_library_polynomials.py > python/tessera/language/extra/functions/coefficients.py
"""

from __future__ import annotations

import dataclasses
import functools
import multiprocessing
import os
import sys

import mpmath  # type: ignore[import-untyped]
from fit_math_polynomials import Fit, Function, remez, removable

mpf = mpmath.mpf
PREAMBLE = '''# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Made by tools/dev/fit_library_polynomials.py; what each one approximates is told there.

The constant term comes first. Of each pair the first is for results in float64, the second
for those that are rounded to float32; the comment has the largest errors of the fits.
"""

# fmt: off
'''


@dataclasses.dataclass(frozen=True)
class Pair:
    """A function on an interval, and the degrees of its two polynomials.

    The error is weighed by `weight`, or is relative. `variable` maps what the polynomial is
    in to the argument of the function; `low` and `high` bound the polynomial's variable.
    """

    name: str
    function: Function
    low: mpmath.mpf
    high: mpmath.mpf
    degrees: tuple[int, int]
    weight: Function | None = None

    def fit(self, degree: int) -> Fit:
        """The fit of one degree."""
        remembered = functools.lru_cache(maxsize=None)(self.function)
        weight = self.weight or (lambda x: 1 / abs(remembered(x)))
        return Fit(self.name, remembered, mpf(self.low), mpf(self.high), degree, weight, False)


def of_square(function: Function, limit: mpmath.mpf) -> Function:
    """(f(x) - x) / x^3 as a function of x^2, for an odd f with f'(0) = 1."""

    def rest(z: mpmath.mpf) -> mpmath.mpf:
        x = mpmath.sqrt(z)
        return (function(x) - x) / (x * z) if z > mpf(10) ** -20 else mpf(limit)

    return rest


def inverse_erfc(z: mpmath.mpf) -> mpmath.mpf:
    """The x > 0 of which erfc(x) = z, for a small z."""
    t = -mpmath.log(z)
    x = mpmath.sqrt(max(t - mpmath.log(mpmath.sqrt(mpmath.pi * t) + 1), mpf("0.3")))
    for _ in range(60):
        value = mpmath.erfc(x)
        # Newton's steps for log(erfc), which is nearly a parabola.
        step = (mpmath.log(value) - mpmath.log(z)) * value * mpmath.exp(x * x)
        step *= mpmath.sqrt(mpmath.pi) / 2
        x += step
        if abs(step) < mpf(10) ** -60:
            break
    return x


def stirling_gamma(w: mpmath.mpf) -> mpmath.mpf:
    """gamma(x) / (sqrt(2 pi) x^(x - 1/2) e^-x) for x = 1 / w."""
    if w < mpf(10) ** -9:
        return 1 + w / 12
    x = 1 / w
    log = mpmath.loggamma(x) - (x - 0.5) * mpmath.log(x) + x - mpmath.log(2 * mpmath.pi) / 2
    return mpmath.exp(log)


def stirling_log(z: mpmath.mpf) -> mpmath.mpf:
    """x times what Stirling's formula leaves out of log gamma(x), for z = 1 / x^2."""
    if z < mpf(10) ** -12:
        return mpf(1) / 12 - z / 360
    x = 1 / mpmath.sqrt(z)
    log = mpmath.loggamma(x) - (x - 0.5) * mpmath.log(x) + x - mpmath.log(2 * mpmath.pi) / 2
    return log * x


def zero_of(function: Function, near: str) -> mpmath.mpf:
    """The zero of a function near a number."""
    return mpmath.findroot(function, mpf(near))


def divided(function: Function, zero: mpmath.mpf, middle: int | str) -> Function:
    """f(x) / (x - zero) as a function of x - middle."""

    def quotient(d: mpmath.mpf) -> mpmath.mpf:
        x = d + mpf(middle)
        if abs(x - zero) < mpf(10) ** -18:
            return mpmath.diff(function, zero)
        return function(x) / (x - zero)

    return quotient


def hankel(order: int, kind: str) -> Function:
    """The amplitudes P and Q (times x) of Bessel functions of large x, for z = 64 / x^2:
    J + iY = sqrt(2 / (pi x)) (P + iQ) exp(i (x - order pi / 2 - pi / 4))."""

    def amplitude(z: mpmath.mpf) -> mpmath.mpf:
        if z < mpf("1e-4"):
            # The asymptotic series, of which these terms are enough here.
            mu, terms, term = 4 * order * order, [mpf(1)], mpf(1)
            x = 8 / mpmath.sqrt(z) if z else mpf(10) ** 30
            for k in range(1, 30):
                term *= (mu - (2 * k - 1) ** 2) / (k * 8 * x)
                terms.append(term)
            if kind == "P":
                return sum((-1) ** k * t for k, t in enumerate(terms[::2]))
            return sum((-1) ** k * t for k, t in enumerate(terms[1::2])) * x
        x = 8 / mpmath.sqrt(z)
        value = mpmath.hankel1(order, x) / mpmath.sqrt(2 / (mpmath.pi * x))
        value *= mpmath.expj(-(x - order * mpmath.pi / 2 - mpmath.pi / 4))
        return value.real if kind == "P" else value.imag * x

    return amplitude


def fits() -> list[Pair]:
    """Everything that the functions evaluate."""
    pi, half_ln2 = mpmath.pi, mpmath.log(2) / 2 * mpf("1.0002")
    by_square: Function = lambda z: z
    exp_rest = removable(lambda r: (mpmath.expm1(r) - r) / r**2, mpf(1) / 2)
    s_max = ((mpmath.sqrt(2) - 1) / (1 + mpmath.sqrt(2))) ** 2 * mpf("1.0001")

    def atanh_rest(z: mpmath.mpf) -> mpmath.mpf:
        s = mpmath.sqrt(z)
        return (2 * mpmath.atanh(s) - 2 * s) / (s * z) if z > mpf(10) ** -30 else mpf(2) / 3

    def sinpi_rest(z: mpmath.mpf) -> mpmath.mpf:
        r = mpmath.sqrt(z)
        return (mpmath.sin(pi * r) - pi * r) / (r * z) if z > mpf(10) ** -20 else -(pi**3) / 6

    def cospi_rest(z: mpmath.mpf) -> mpmath.mpf:
        return (mpmath.cos(pi * mpmath.sqrt(z)) - 1) / z if z > mpf(10) ** -20 else -(pi**2) / 2

    def erfcx(u: mpmath.mpf) -> mpmath.mpf:
        """(1 + 2x) exp(x^2) erfc(x) for x = 3 (1 + u) / (1 - u)."""
        if u > 1 - mpf(10) ** -12:
            return 2 / mpmath.sqrt(pi)
        x = 3 * (1 + u) / (1 - u)
        if x > 40:
            series = [mpf(1)]
            for k in range(1, 25):
                series.append(-series[-1] * (2 * k - 1) / (2 * x * x))
            return (1 + 2 * x) * sum(series) / (x * mpmath.sqrt(pi))
        return (1 + 2 * x) * mpmath.exp(x * x) * mpmath.erfc(x)

    def erfinv_ratio(z: mpmath.mpf) -> mpmath.mpf:
        x = mpmath.sqrt(z)
        return mpmath.erfinv(x) / x if z > mpf(10) ** -30 else mpmath.sqrt(pi) / 2

    def erfcinv_ratio(middle: str) -> Function:
        def ratio(u: mpmath.mpf) -> mpmath.mpf:
            t = mpf(middle) * (1 + u) / (1 - u)
            return inverse_erfc(mpmath.exp(-t * t)) / t

        return ratio

    def tail(name: str, middle: str, low: str, high: str, degrees: tuple[int, int]) -> Pair:
        """erfcinv(z) / t with t^2 = -log(z), t from `low` to `high`, by u = (t - k) / (t + k)."""
        k = mpf(middle)
        ends = [(mpf(end) - k) / (mpf(end) + k) for end in (low, high)]
        return Pair(name, erfcinv_ratio(middle), ends[0], ends[1], degrees)

    def log_gamma_at(zero: int) -> Function:
        def ratio(d: mpmath.mpf) -> mpmath.mpf:
            if abs(d) < mpf(10) ** -25:
                return mpmath.digamma(zero)
            return mpmath.loggamma(zero + d) / d

        return ratio

    def j0_of_square(z: mpmath.mpf) -> mpmath.mpf:
        return mpmath.besselj(0, mpmath.sqrt(z))

    def j1_of_square(z: mpmath.mpf) -> mpmath.mpf:
        x = mpmath.sqrt(z)
        return mpmath.besselj(1, x) / x if z > mpf(10) ** -40 else mpf(1) / 2

    def y0_rest(z: mpmath.mpf) -> mpmath.mpf:
        """y0(x) - 2/pi log(x) j0(x), for z = x^2."""
        if z < mpf(10) ** -40:
            return 2 / pi * (mpmath.euler - mpmath.log(2))
        x = mpmath.sqrt(z)
        return mpmath.bessely(0, x) - 2 / pi * mpmath.log(x) * mpmath.besselj(0, x)

    def y1_rest(z: mpmath.mpf) -> mpmath.mpf:
        """(y1(x) - 2/pi (log(x) j1(x) - 1/x)) / x, for z = x^2."""
        z = max(z, mpf(10) ** -25)
        x = mpmath.sqrt(z)
        rest = mpmath.log(x) * mpmath.besselj(1, x) - 1 / x
        return (mpmath.bessely(1, x) - 2 / pi * rest) / x

    def i0_of_square(z: mpmath.mpf) -> mpmath.mpf:
        return mpmath.besseli(0, mpmath.sqrt(z))

    def i1_of_square(z: mpmath.mpf) -> mpmath.mpf:
        x = mpmath.sqrt(z)
        return mpmath.besseli(1, x) / x if z > mpf(10) ** -40 else mpf(1) / 2

    def i_large(order: int) -> Function:
        def scaled(v: mpmath.mpf) -> mpmath.mpf:
            """sqrt(x) exp(-x) I(x), for v = 16 / x - 1."""
            w = (v + 1) / 16
            x = 1 / w if w > mpf("1e-3") else None
            if x is None:
                mu, total, term = 4 * order * order, mpf(1), mpf(1)
                for k in range(1, 25):
                    term *= -(mu - (2 * k - 1) ** 2) * w / (k * 8)
                    total += term
                return total / mpmath.sqrt(2 * pi)
            return mpmath.besseli(order, x) * mpmath.exp(-x) * mpmath.sqrt(x)

        return scaled

    bessel = {
        "j0": lambda x: mpmath.besselj(0, x), "j1": lambda x: mpmath.besselj(1, x),
        "y0": lambda x: mpmath.bessely(0, x), "y1": lambda x: mpmath.bessely(1, x),
    }  # fmt: skip
    # For each zero: its position, the middle of its interval, half its length, the degrees.
    zeros = {
        "j0": [("5.52", "6.7", "2.7001", (22, 13))],
        "j1": [("3.8317", "4", "1.501", (16, 10)), ("7.0156", "6.75", "1.2501", (15, 9))],
        "y0": [
            ("0.8936", "0.85", "0.3501", (24, 12)),
            ("3.9577", "3.8", "1.7001", (25, 12)),
            ("7.0861", "6.75", "1.2501", (15, 8)),
        ],
        "y1": [
            ("2.1971", "2.2", "0.7001", (21, 10)),
            ("5.4297", "5.45", "2.5501", (27, 13)),
        ],
    }
    result = [
        Pair("EXP", exp_rest, -half_ln2, half_ln2, (9, 5), lambda r: r * r),
        Pair("LOG", atanh_rest, mpf(0), s_max, (6, 3), by_square),
        Pair("SINH", of_square(mpmath.sinh, mpf(1) / 6), mpf(0), mpf(1), (6, 3), by_square),
        Pair(
            "ATAN", of_square(mpmath.atan, -mpf(1) / 3), mpf(0), mpf("0.17158"), (11, 5), by_square
        ),
        Pair("ASIN", of_square(mpmath.asin, mpf(1) / 6), mpf(0), mpf("0.25"), (12, 5), by_square),
        Pair("SINPI", sinpi_rest, mpf(0), mpf(1) / 16, (6, 3), by_square),
        Pair("COSPI", cospi_rest, mpf(0), mpf(1) / 16, (7, 4), by_square),
        Pair("INVERSE_CBRT", lambda m: 1 / mpmath.cbrt(m), mpf(1), mpf(2), (6, 6)),
        Pair("ERFCX", erfcx, mpf("-0.7143"), mpf(1), (24, 12)),
        Pair("ERFINV", erfinv_ratio, mpf(0), mpf("0.36"), (17, 8)),
        tail("ERFCINV_NEAR", "1.5", "0.949", "2.251", (18, 9)),
        tail("ERFCINV_MIDDLE", "3.5", "2.249", "5.751", (19, 10)),
        tail("ERFCINV_FAR", "12", "5.749", "27.4", (23, 12)),
        Pair("LOG_GAMMA_1", log_gamma_at(1), mpf("-0.3001"), mpf("0.7001"), (25, 13)),
        Pair("LOG_GAMMA_2", log_gamma_at(2), mpf("-0.4001"), mpf("0.6001"), (17, 8)),
        Pair("LOG_GAMMA_FAR", stirling_log, mpf(0), mpf(1) / 64, (8, 3)),
        Pair("GAMMA", lambda d: mpmath.gamma(2 + d), mpf(0), mpf(1), (17, 9)),
        Pair("GAMMA_FAR", stirling_gamma, mpf(0), mpf("0.1251"), (13, 6)),
        Pair("I0", i0_of_square, mpf(0), mpf(64), (17, 10)),
        Pair("I1", i1_of_square, mpf(0), mpf(64), (17, 10)),
        Pair("I0_FAR", i_large(0), mpf(-1), mpf("1.0001"), (24, 10)),
        Pair("I1_FAR", i_large(1), mpf(-1), mpf("1.0001"), (24, 10)),
        Pair("Y0_REST", y0_rest, mpf(0), mpf("4.4101"), (12, 7), lambda z: mpf(1)),
        Pair("Y1_REST", y1_rest, mpf(0), mpf("2.2501"), (9, 5), lambda z: mpf(1)),
    ]
    square = zero_of(bessel["j0"], "2.40") ** 2
    result.append(
        Pair(
            "J0_NEAR",
            lambda d: (
                j0_of_square(d + 8) / (d + 8 - square)
                if abs(d + 8 - square) > mpf(10) ** -18
                else mpmath.diff(j0_of_square, square)
            ),
            mpf("-8"),
            mpf("8.001"),
            (12, 7),
        )
    )
    result.append(Pair("J1_NEAR", j1_of_square, mpf(0), mpf("6.2501"), (9, 5)))
    for name, places in zeros.items():
        for index, (near, middle, radius, degrees) in enumerate(places):
            ratio = divided(bessel[name], zero_of(bessel[name], near), middle)
            radius_ = mpf(radius)
            result.append(
                Pair(f"{name.upper()}_ZERO{index}_TERMS", ratio, -radius_, radius_, degrees)
            )
    for order in (0, 1):
        for kind in "PQ":
            pair = Pair(f"HANKEL_{kind}{order}", hankel(order, kind), mpf(0), mpf(1), (14, 6))
            result.append(pair)
    return result


def constants() -> list[tuple[str, mpmath.mpf]]:
    """Numbers that are needed as the sum of two."""
    j0, j1 = (functools.partial(mpmath.besselj, order) for order in (0, 1))
    y0, y1 = (functools.partial(mpmath.bessely, order) for order in (0, 1))
    return [
        ("PI", mpmath.pi),
        ("HALF_PI", mpmath.pi / 2),
        ("LN10", mpmath.log(10)),
        ("INVERSE_LN10", 1 / mpmath.log(10)),
        ("HALF_SQRT2", mpmath.sqrt(2) / 2),
        ("J0_FIRST_ZERO", zero_of(j0, "2.40")),
        ("J0_ZERO0", zero_of(j0, "5.52")),
        ("J1_ZERO0", zero_of(j1, "3.8317")),
        ("J1_ZERO1", zero_of(j1, "7.0156")),
        ("Y0_ZERO0", zero_of(y0, "0.8936")),
        ("Y0_ZERO1", zero_of(y0, "3.9577")),
        ("Y0_ZERO2", zero_of(y0, "7.0861")),
        ("Y1_ZERO0", zero_of(y1, "2.1971")),
        ("Y1_ZERO1", zero_of(y1, "5.4297")),
    ]


def render(index: int) -> str:
    """The text of one pair."""
    pair = fits()[index]
    lines, errors = [], []
    for degree in pair.degrees:
        coefficients, worst = remez(pair.fit(degree))
        errors.append(f"2^{float(mpmath.log(worst, 2)):.1f}")
        numbers = [repr(float(mpmath.nstr(c, 40))) for c in coefficients]
        rows = [", ".join(numbers[i : i + 3]) for i in range(0, len(numbers), 3)]
        lines.append("    (" + ",\n     ".join(rows) + "),")
    text = "\n".join(lines)
    return f"# Errors {errors[0]} and {errors[1]}.\n{pair.name} = (\n{text}\n)"


def main() -> None:
    """Prints the module."""
    only = sys.argv[1:]
    indices = [i for i, pair in enumerate(fits()) if not only or pair.name in only]
    print(PREAMBLE)
    for name, value in constants():
        high = float(mpmath.nstr(value, 40))
        low = float(mpmath.nstr(value - mpf(high), 40))
        print(f"{name} = ({high!r}, {low!r})")
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for text in pool.imap(render, indices, chunksize=1):
            print("\n" + text, flush=True)


if __name__ == "__main__":
    main()
