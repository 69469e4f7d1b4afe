#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fit the polynomials of strips-expand-math and print them as a C++ header.

Each polynomial is the weighted minimax fit of a smooth function on an interval. The Remez exchange
finds it in 80-digit arithmetic, and each coefficient is then rounded to its format. The comment
behind each one gives the largest weighted error of the fit, as a power of two.

The last table has a polynomial for each of 32 intervals, by least squares.

    fit_math_polynomials.py > lib/Conversion/TileToStrips/Functions/MathCoefficients.h
"""

from __future__ import annotations

import dataclasses
import typing

import mpmath  # type: ignore[import-untyped]
import numpy

mpmath.mp.dps = 80

Function = typing.Callable[[mpmath.mpf], mpmath.mpf]


@dataclasses.dataclass(frozen=True)
class Fit:
    """One polynomial: what it approximates, where, and how errors are weighed."""

    name: str
    function: Function
    low: mpmath.mpf
    high: mpmath.mpf
    degree: int
    weight: Function
    single: bool


def solve(matrix: list[list[mpmath.mpf]], right: list[mpmath.mpf]) -> list[mpmath.mpf]:
    """The solution of a small linear system."""
    solution = mpmath.lu_solve(mpmath.matrix(matrix), mpmath.matrix(right))
    return [solution[i] for i in range(len(right))]


def evaluate(coefficients: list[mpmath.mpf], x: mpmath.mpf) -> mpmath.mpf:
    """Horner's rule; the constant term comes first."""
    result = mpmath.mpf(0)
    for coefficient in reversed(coefficients):
        result = result * x + coefficient
    return result


def remez(fit: Fit) -> tuple[list[mpmath.mpf], mpmath.mpf]:
    """The weighted minimax polynomial and its largest weighted error."""
    count = fit.degree + 2
    middle, radius = (fit.high + fit.low) / 2, (fit.high - fit.low) / 2
    points = [middle - radius * mpmath.cos(mpmath.pi * i / (count - 1)) for i in range(count)]
    grid = [
        middle - radius * mpmath.cos(mpmath.pi * i / (40 * count)) for i in range(40 * count + 1)
    ]
    values = [fit.function(x) for x in grid]
    weights = [fit.weight(x) for x in grid]
    coefficients: list[mpmath.mpf] = []
    worst = mpmath.mpf(0)
    for _ in range(12):
        matrix, right = [], []
        for index, x in enumerate(points):
            weight = fit.weight(x)
            row = [x**power for power in range(fit.degree + 1)]
            # A weight of zero says nothing about the error there; keep it tiny instead.
            row.append((-1) ** index / (weight if weight > 1e-40 else mpmath.mpf(10) ** -40))
            matrix.append(row)
            right.append(fit.function(x))
        coefficients = solve(matrix, right)[:-1]
        errors = [
            (evaluate(coefficients, x) - value) * weight
            for x, value, weight in zip(grid, values, weights)
        ]
        # One extremum for each run of errors of one sign.
        points, best = [], 0
        extrema: list[int] = []
        for index in range(1, len(grid)):
            if errors[index] * errors[best] < 0:
                extrema.append(best)
                best = index
            elif abs(errors[index]) > abs(errors[best]):
                best = index
        extrema.append(best)
        while len(extrema) > count:
            extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
        worst = max(abs(error) for error in errors)
        if len(extrema) < count:
            break
        points = [grid[index] for index in extrema]
        least = min(abs(errors[index]) for index in extrema)
        if worst - least < worst * mpmath.mpf("1e-3"):
            break
    return coefficients, worst


def removable(value: Function, limit: mpmath.mpf | int) -> Function:
    """`value` with its removable singularity at 0 filled in."""
    return lambda x: mpmath.mpf(limit) if abs(x) < mpmath.mpf(10) ** -30 else value(x)


def erfc_scaled(u: mpmath.mpf) -> mpmath.mpf:
    """erfc(x) * exp(x^2) at x = k (1 + u) / (1 - u), the map of the f64 tail of erf."""
    x = 2 * (1 + u) / (1 - u)
    return mpmath.erfc(x) * mpmath.exp(x * x)


def fits() -> list[Fit]:
    """Everything that ExpandMath.cpp evaluates."""
    mpf, sqrt, one = mpmath.mpf, mpmath.sqrt, mpmath.mpf(1)
    half_ln2 = mpmath.log(2) / 2 * mpf("1.0002")
    quarter_pi = mpmath.pi / 4 * mpf("1.0002")
    exp_rest = removable(lambda r: (mpmath.expm1(r) - r) / r**2, mpf(1) / 2)
    exp2_rest = removable(lambda r: mpmath.expm1(r * mpmath.log(2)) / r, mpmath.log(2))
    log_rest = removable(lambda f: (mpmath.log1p(f) - f + f * f / 2) / f**3, one / 3)

    def atanh_rest(z: mpmath.mpf) -> mpmath.mpf:
        s = sqrt(z)
        return (2 * mpmath.atanh(s) - 2 * s) / (s * z) if z > mpf(10) ** -30 else mpf(2) / 3

    log2_rest = removable(lambda f: mpmath.log1p(f) / (f * mpmath.log(2)), 1 / mpmath.log(2))

    def log2_third(z: mpmath.mpf) -> mpmath.mpf:
        s = sqrt(z)
        if z < mpf(10) ** -6:
            terms = [2 * z**k / (5 + 2 * k) for k in range(5)]
            return sum(terms, mpf(0)) / mpmath.log(2)
        return (2 * mpmath.atanh(s) - 2 * s - 2 * s**3 / 3) / (s**5 * mpmath.log(2))

    def sin_rest(z: mpmath.mpf) -> mpmath.mpf:
        r = sqrt(z)
        return (mpmath.sin(r) - r) / (r * z) if z > mpf(10) ** -20 else -one / 6 + z / 120

    def cos_rest(z: mpmath.mpf) -> mpmath.mpf:
        r = sqrt(z)
        return (mpmath.cos(r) - 1 + z / 2) / z**2 if z > mpf(10) ** -15 else one / 24 - z / 720

    def tanh_rest(z: mpmath.mpf) -> mpmath.mpf:
        x = sqrt(z)
        return (mpmath.tanh(x) - x) / (x * z) if z > mpf(10) ** -20 else -one / 3 + 2 * z / 15

    def erf_rest(z: mpmath.mpf) -> mpmath.mpf:
        x = sqrt(z)
        return mpmath.erf(x) / x - 1 if z > mpf(10) ** -30 else 2 / sqrt(mpmath.pi) - 1

    # log(erfc(x)) is x * rest - x. Errors of it are erfc(x) times as large in erf.
    log_erfc_rest = removable(lambda x: mpmath.log(mpmath.erfc(x)) / x + 1, 1 - 2 / sqrt(mpmath.pi))
    erf_weight = removable(lambda x: x * mpmath.erfc(x) / mpmath.erf(x), sqrt(mpmath.pi) / 2)

    low, high = sqrt(mpf("0.5")) - 1, sqrt(mpf(2)) - 1
    s_max = (high / (2 + high)) ** 2 * mpf("1.0001")
    one_weight: Function = lambda x: mpf(1)

    def u(x: str) -> mpmath.mpf:
        return (mpf(x) - 2) / (mpf(x) + 2)

    return [
        Fit("exp32", exp_rest, -half_ln2, half_ln2, 4, lambda r: r * r, True),
        Fit("exp2_32", exp2_rest, -mpf("0.5001"), mpf("0.5001"), 5, lambda r: abs(r), True),
        Fit("log32", log_rest, low, high, 8, lambda f: f * f, True),
        Fit("sin32", sin_rest, mpf(0), quarter_pi**2, 2, lambda z: z, True),
        Fit("cos32", cos_rest, mpf(0), quarter_pi**2, 2, lambda z: z * z, True),
        Fit("tanh32", tanh_rest, mpf(0), mpf("0.625") ** 2, 4, lambda z: z, True),
        Fit("logErfc32", log_erfc_rest, mpf(0), mpf("3.93"), 8, erf_weight, True),
        Fit("exp64", exp_rest, -half_ln2, half_ln2, 9, lambda r: r * r, False),
        Fit("exp2_64", exp2_rest, -mpf("0.5001"), mpf("0.5001"), 10, lambda r: abs(r), False),
        Fit("atanh64", atanh_rest, mpf(0), s_max, 6, lambda z: z, False),
        # f32's pow is computed in f64, so these two are not rounded to f32.
        Fit("powLog2_32", log2_rest, low, high, 12, one_weight, False),
        Fit("powExp2_32", exp2_rest, -mpf("0.5001"), mpf("0.5001"), 6, lambda r: abs(r), False),
        Fit("powLog2_64", log2_third, mpf(0), s_max, 7, lambda z: z * z, False),
        Fit("sin64", sin_rest, mpf(0), quarter_pi**2, 5, lambda z: z, False),
        Fit("cos64", cos_rest, mpf(0), quarter_pi**2, 5, lambda z: z * z, False),
        Fit("erf64", erf_rest, mpf(0), mpf(1), 11, one_weight, False),
        Fit(
            "erfcScaled64",
            erfc_scaled,
            u("0.99"),
            u("6.0"),
            12,
            lambda v: mpmath.exp(-((2 * (1 + v) / (1 - v)) ** 2)),
            False,
        ),
    ]


ERF_SHIFT = 0.28125
"""Added to x, it gives intervals of erf by the exponent and three bits of the sum: 1/32 wide next
to 0, 1/4 before 3.7."""
ERF_FIRST = 0x3E9
ERF_LAST = 3.93
ERF_COUNT = 32


def find_centre(low: mpmath.mpf, high: mpmath.mpf) -> tuple[numpy.float32, numpy.float32]:
    """A float next to the middle of an interval whose erf is almost a float, and that float."""
    best, result = mpmath.mpf(1), (numpy.float32(0), numpy.float32(0))
    middle, tries = float(low + high) / 2, 400
    for step in sorted(range(-tries, tries), key=abs):
        centre = numpy.float32(middle + step * float(high - low) / (6 * tries))
        exact = mpmath.erf(mpmath.mpf(float(centre)))
        value = numpy.float32(float(exact))
        error = abs(float(value) - exact) / float(numpy.spacing(value))
        if error < best:
            best, result = error, (centre, value)
        if error < mpmath.mpf(1) / 64:
            break
    return result


def fit_erf_interval(
    low: mpmath.mpf, high: mpmath.mpf, centre: mpmath.mpf
) -> tuple[list[mpmath.mpf], mpmath.mpf]:
    """(erf(centre + t) - erf(centre)) / t in four coefficients, and the largest error of erf."""
    mpf = mpmath.mpf
    slope = 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-centre * centre)
    function = removable(lambda t: (mpmath.erf(centre + t) - mpmath.erf(centre)) / t, slope)
    weight = removable(
        lambda t: abs(t) / mpmath.erf(centre + t), 0 if centre else mpmath.sqrt(mpmath.pi) / 2
    )
    count = 60
    points = [
        (low + high) / 2 - (high - low) / 2 * mpmath.cos(mpmath.pi * (i + mpf(1) / 2) / count)
        for i in range(count)
    ]
    rows = [[(t - centre) ** k * weight(t - centre) for k in range(4)] for t in points]
    matrix = mpmath.matrix(rows)
    right = mpmath.matrix([function(t - centre) * weight(t - centre) for t in points])
    solution = mpmath.lu_solve(matrix.T * matrix, matrix.T * right)
    found = [solution[i] for i in range(4)]
    errors = [
        abs(evaluate(found, t - centre) - function(t - centre)) * weight(t - centre) for t in points
    ]
    return found, max(errors)


def print_erf_table() -> None:
    """Centres, values there and coefficients of erf, each by the lowest bits of the interval."""
    mpf = mpmath.mpf
    slope = 2 / mpmath.sqrt(mpmath.pi)
    low_slope = slope - float(numpy.float32(float(slope)))
    table = [[0.0] * ERF_COUNT for _ in range(6)]
    worst = mpf(0)
    for number in range(ERF_FIRST, ERF_FIRST + ERF_COUNT):
        bits = numpy.array([number << 20, (number + 1) << 20], numpy.uint32)
        low, high = (mpf(float(x)) - ERF_SHIFT for x in bits.view(numpy.float32))
        high = min(high, mpf(ERF_LAST))
        centre, value = (numpy.float32(0),) * 2 if low == 0 else find_centre(low, high)
        coefficients, error = fit_erf_interval(low, high, mpf(float(centre)))
        coefficients[0] -= low_slope
        worst = max(worst, error)
        column = [float(centre), float(value)] + [
            float(numpy.float32(float(c))) for c in coefficients
        ]
        for row, entry in zip(table, column):
            row[number % ERF_COUNT] = entry
    print()
    print("/// The part of erf's steepest slope that its float lacks. All intervals add it.")
    print(f"inline constexpr double erfSlope32 = {float(numpy.float32(float(low_slope))).hex()};")
    print()
    print(f"/// Centres, values and four coefficients, error 2^{float(mpmath.log(worst, 2)):.1f}.")
    print(f"inline constexpr float erfTables32[][{ERF_COUNT}] = {{")
    for row in table:
        print("    {" + ", ".join(f"{entry.hex()}f" for entry in row) + "},")
    print("};")


def main() -> None:
    """Prints the header."""
    print("// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception")
    print("//")
    print(
        "// Made by tools/dev/fit_math_polynomials.py, which names the function that each one approximates."
    )
    print("// The constant term comes first.")
    print()
    print("#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_FUNCTIONS_MATHCOEFFICIENTS_H")
    print("#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_FUNCTIONS_MATHCOEFFICIENTS_H")
    print()
    print("namespace tessera::coefficients {")
    for fit in fits():
        coefficients, worst = remez(fit)
        kind = numpy.float32 if fit.single else numpy.float64
        exponent = float(mpmath.log(worst, 2))
        print()
        print(f"/// Degree {fit.degree}, error 2^{exponent:.1f}.")
        print(f"inline constexpr double {fit.name}[] = {{")
        for coefficient in coefficients:
            rounded = float(kind(mpmath.nstr(coefficient, 40)))
            print(f"    {rounded.hex()},")
        print("};")
    print_erf_table()
    print()
    print("} // namespace tessera::coefficients")
    print()
    print("#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_FUNCTIONS_MATHCOEFFICIENTS_H")


if __name__ == "__main__":
    main()
