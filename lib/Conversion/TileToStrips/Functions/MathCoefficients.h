// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Made by tools/dev/fit_math_polynomials.py, which names the function that each one approximates.
// The constant term comes first.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_FUNCTIONS_MATHCOEFFICIENTS_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_FUNCTIONS_MATHCOEFFICIENTS_H

namespace tessera::coefficients {

/// Degree 4, error 2^-28.3.
inline constexpr double exp32[] = {
    0x1.0000000000000p-1, 0x1.55548e0000000p-3,  0x1.55545c0000000p-5,
    0x1.123b660000000p-7, 0x1.6db4ea0000000p-10,
};

/// Degree 5, error 2^-29.0.
inline constexpr double exp2_32[] = {
    0x1.62e4300000000p-1, 0x1.ebfbe00000000p-3,  0x1.c6aed00000000p-5,
    0x1.3b29aa0000000p-7, 0x1.5f47e00000000p-10, 0x1.4490020000000p-13,
};

/// Degree 8, error 2^-30.4.
inline constexpr double log32[] = {
    0x1.5555460000000p-2,  -0x1.ffffee0000000p-3, 0x1.99a5460000000p-3,
    -0x1.5562e20000000p-3, 0x1.2332bc0000000p-3,  -0x1.fb43540000000p-4,
    0x1.e650fa0000000p-4,  -0x1.e2e8ec0000000p-4, 0x1.1b41260000000p-4,
};

/// Degree 2, error 2^-28.1.
inline constexpr double sin32[] = {
    -0x1.5555460000000p-3,
    0x1.11075e0000000p-7,
    -0x1.994e020000000p-13,
};

/// Degree 2, error 2^-33.3.
inline constexpr double cos32[] = {
    0x1.55554a0000000p-5,
    -0x1.6c0c8a0000000p-10,
    0x1.9a01c80000000p-16,
};

/// Degree 4, error 2^-27.9.
inline constexpr double tanh32[] = {
    -0x1.5555340000000p-2, 0x1.1107680000000p-3,  -0x1.b8444a0000000p-5,
    0x1.5256dc0000000p-6,  -0x1.76ac260000000p-8,
};

/// Degree 8, error 2^-27.9.
inline constexpr double logErfc32[] = {
    -0x1.06eba80000000p-3, -0x1.45f2fa0000000p-1,  -0x1.a4fa5e0000000p-4,
    0x1.39cdca0000000p-6,  0x1.505aac0000000p-13,  -0x1.b4ff6e0000000p-10,
    0x1.4bc8be0000000p-11, -0x1.ed694a0000000p-14, 0x1.3693a60000000p-17,
};

/// Degree 9, error 2^-58.0.
inline constexpr double exp64[] = {
    0x1.000000000000bp-1,  0x1.5555555555561p-3,  0x1.555555555001fp-5,  0x1.111111110d60ep-7,
    0x1.6c16c185ab3c6p-10, 0x1.a01a01baf1302p-13, 0x1.a0199688afce6p-16, 0x1.71dddfaba1ef1p-19,
    0x1.28b053a995f89p-22, 0x1.af85b875eb69ap-26,
};

/// Degree 10, error 2^-58.0.
inline constexpr double exp2_64[] = {
    0x1.62e42fefa39efp-1,  0x1.ebfbdff82c5a5p-3,  0x1.c6b08d704a0d7p-5,  0x1.3b2ab6fb9ff34p-7,
    0x1.5d87fe78a0dc0p-10, 0x1.4309130f36c2fp-13, 0x1.ffcbfc7c63860p-17, 0x1.62bfc6b95f0b9p-20,
    0x1.b524cdb6518e7p-24, 0x1.e61ccb991f545p-28, 0x1.ea188e793058bp-32,
};

/// Degree 6, error 2^-58.5.
inline constexpr double atanh64[] = {
    0x1.5555555555592p-1, 0x1.999999997fd7bp-2, 0x1.24924941f4d2ep-2, 0x1.c71c52061ea12p-3,
    0x1.74663f9f5e20ap-3, 0x1.39a1a712f1209p-3, 0x1.2f063502597d9p-3,
};

/// Degree 12, error 2^-35.3.
inline constexpr double powLog2_32[] = {
    0x1.715476529fcbdp+0, -0x1.715476554ecfbp-1, 0x1.ec709eceb57aep-2, -0x1.7154723feb3bcp-2,
    0x1.27764bd34685ep-2, -0x1.ec71f498ea539p-3, 0x1.a640656bbc614p-3, -0x1.7153edfe52d95p-3,
    0x1.4526255087e05p-3, -0x1.2463b5592278cp-3, 0x1.27dabd451effap-3, -0x1.27c723a76f18fp-3,
    0x1.45d2e8b8f6bf8p-4,
};

/// Degree 6, error 2^-34.3.
inline constexpr double powExp2_32[] = {
    0x1.62e42fef7b4f6p-1,  0x1.ebfbe07ae1bd0p-3,  0x1.c6b08df473370p-5,  0x1.3b29f0d40668dp-7,
    0x1.5d87239ee882fp-10, 0x1.445e8ebc407b1p-13, 0x1.00f135f3c2504p-16,
};

/// Degree 7, error 2^-72.0.
inline constexpr double powLog2_64[] = {
    0x1.2776c50ef9bfcp-1, 0x1.a61762a7aefa4p-2, 0x1.484b13d696d8ap-2, 0x1.0c9a8543e65efp-2,
    0x1.c68ee53f2facfp-3, 0x1.8a0a43b72c785p-3, 0x1.58f2e2e5d5e9cp-3, 0x1.623b74ae87366p-3,
};

/// Degree 5, error 2^-58.0.
inline constexpr double sin64[] = {
    -0x1.5555555555549p-3, 0x1.111111110f874p-7,   -0x1.a01a019c10c5fp-13,
    0x1.71de3576f601fp-19, -0x1.ae5e659d68d01p-26, 0x1.5d92d1c03a16cp-33,
};

/// Degree 5, error 2^-64.2.
inline constexpr double cos64[] = {
    0x1.555555555554cp-5,   -0x1.6c16c16c15177p-10, 0x1.a01a019cb10cfp-16,
    -0x1.27e4f8096af23p-22, 0x1.1ee9eb8a76701p-29,  -0x1.8fae698948ad0p-37,
};

/// Degree 11, error 2^-57.0.
inline constexpr double erf64[] = {
    0x1.06eba8214db68p-3,  -0x1.812746b0379c2p-2,  0x1.ce2f21a041017p-4,  -0x1.b82ce31206292p-6,
    0x1.565bccfa9a3ccp-8,  -0x1.c02db072ec08bp-11, 0x1.f9a2bf736732ap-14, -0x1.f4ca94938d06cp-17,
    0x1.b9827af9bb2bdp-20, -0x1.5c16e2cee6d65p-23, 0x1.d784948923186p-27, -0x1.ace003e7b5054p-31,
};

/// Degree 12, error 2^-60.4.
inline constexpr double erfcScaled64[] = {
    0x1.058671b52c776p-2,   -0x1.b57034efd3f53p-2, 0x1.eeea7dc8a7883p-3,   -0x1.437f0b68cedc1p-4,
    0x1.e947158a90eaap-9,   0x1.ca95ed9366971p-8,  -0x1.bc258b84fa412p-11, -0x1.016b5782ac793p-10,
    0x1.6d2f9227390d0p-15,  0x1.6d8078752d6cap-13, 0x1.cfcda00e08773p-16,  -0x1.bd25e9b9df621p-16,
    -0x1.a5bcc0873bba6p-17,
};

} // namespace tessera::coefficients

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_FUNCTIONS_MATHCOEFFICIENTS_H
