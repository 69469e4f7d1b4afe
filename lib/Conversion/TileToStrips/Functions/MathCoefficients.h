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

/// The part of erf's steepest slope that its float lacks. All intervals add it.
inline constexpr double erfSlope32 = -0x1.f7ac920000000p-25;

/// Centres, values and four coefficients, error 2^-25.3.
inline constexpr float erfTables32[][32] = {
    {0x1.d7ae140000000p+0f, 0x1.0bfc960000000p+1f,
     0x1.2c06d40000000p+1f, 0x1.4ccccc0000000p+1f,
     0x1.6ba3d80000000p+1f, 0x1.8c258c0000000p+1f,
     0x1.abf2580000000p+1f, 0x1.ccae140000000p+1f,
     0x1.ea51e80000000p+1f, 0x0.0p+0f,
     0x1.7e66660000000p-5f, 0x1.3e3d700000000p-4f,
     0x1.bff2580000000p-4f, 0x1.20369e0000000p-3f,
     0x1.5ff92c0000000p-3f, 0x1.a0cccc0000000p-3f,
     0x1.fefc960000000p-3f, 0x1.3f7e4c0000000p-2f,
     0x1.7fddde0000000p-2f, 0x1.c01b4e0000000p-2f,
     0x1.00147a0000000p-1f, 0x1.204e820000000p-1f,
     0x1.4011120000000p-1f, 0x1.6066660000000p-1f,
     0x1.90b17e0000000p-1f, 0x1.d07ae20000000p-1f,
     0x1.07eeee0000000p+0f, 0x1.27da740000000p+0f,
     0x1.47d3a00000000p+0f, 0x1.677e4c0000000p+0f,
     0x1.8806d40000000p+0f, 0x1.a800000000000p+0f},
    {0x1.fb4e340000000p-1f, 0x1.fe6de60000000p-1f,
     0x1.ff87d20000000p-1f, 0x1.ffe1100000000p-1f,
     0x1.fff84c0000000p-1f, 0x1.fffe6c0000000p-1f,
     0x1.ffffb40000000p-1f, 0x1.fffff40000000p-1f,
     0x1.fffffe0000000p-1f, 0x0.0p+0f,
     0x1.af2dd20000000p-5f, 0x1.665fc60000000p-4f,
     0x1.f772200000000p-4f, 0x1.4314680000000p-3f,
     0x1.8948960000000p-3f, 0x1.cfe5280000000p-3f,
     0x1.1a6bcc0000000p-2f, 0x1.5d25320000000p-2f,
     0x1.9daf5c0000000p-2f, 0x1.db218e0000000p-2f,
     0x1.0a90f40000000p-1f, 0x1.25f9320000000p-1f,
     0x1.3f26760000000p-1f, 0x1.56da400000000p-1f,
     0x1.76951c0000000p-1f, 0x1.99da320000000p-1f,
     0x1.b5d8e20000000p-1f, 0x1.cbaf060000000p-1f,
     0x1.dc16920000000p-1f, 0x1.e7ea5c0000000p-1f,
     0x1.f077aa0000000p-1f, 0x1.f62fe80000000p-1f},
    {0x1.3617a00000000p-5f,  0x1.cd8aa80000000p-7f,  0x1.2ff3180000000p-8f,  0x1.56d2900000000p-10f,
     0x1.71a5180000000p-12f, 0x1.4794ae0000000p-14f, 0x1.0963ee0000000p-16f, 0x1.6e187a0000000p-19f,
     0x1.2011260000000p-21f, 0x1.20dd760000000p+0f,  0x1.203c800000000p+0f,  0x1.1f20680000000p+0f,
     0x1.1d6e4a0000000p+0f,  0x1.1b33520000000p+0f,  0x1.1875320000000p+0f,  0x1.1525240000000p+0f,
     0x1.0f6e420000000p+0f,  0x1.0611fa0000000p+0f,  0x1.f5fd5c0000000p-1f,  0x1.dd0b5c0000000p-1f,
     0x1.c1ddce0000000p-1f,  0x1.a4beac0000000p-1f,  0x1.86d9200000000p-1f,  0x1.67bcec0000000p-1f,
     0x1.3922dc0000000p-1f,  0x1.fb61fa0000000p-2f,  0x1.8f24300000000p-2f,  0x1.2fe3d40000000p-2f,
     0x1.c0552a0000000p-3f,  0x1.41a33e0000000p-3f,  0x1.baf8840000000p-4f,  0x1.297dc80000000p-4f},
    {-0x1.1daeb00000000p-4f,  -0x1.e32e9a0000000p-6f,  -0x1.6441d20000000p-7f,
     -0x1.bd95dc0000000p-9f,  -0x1.069f700000000p-10f, -0x1.fab0060000000p-13f,
     -0x1.ba4ad20000000p-15f, -0x1.4240240000000p-17f, -0x1.eb2c500000000p-20f,
     0x1.cde3aa0000000p-21f,  -0x1.ae8d840000000p-5f,  -0x1.64ef2a0000000p-4f,
     -0x1.f371c20000000p-4f,  -0x1.3ed6240000000p-3f,  -0x1.8199a60000000p-3f,
     -0x1.c33a0c0000000p-3f,  -0x1.0ee4bc0000000p-2f,  -0x1.4711b00000000p-2f,
     -0x1.785c8a0000000p-2f,  -0x1.a1835e0000000p-2f,  -0x1.c201c60000000p-2f,
     -0x1.d9d7860000000p-2f,  -0x1.e8a9760000000p-2f,  -0x1.ef33aa0000000p-2f,
     -0x1.ea1fb80000000p-2f,  -0x1.cc4aac0000000p-2f,  -0x1.9b82980000000p-2f,
     -0x1.5f32b80000000p-2f,  -0x1.1f0f960000000p-2f,  -0x1.c3aa480000000p-3f,
     -0x1.532c2a0000000p-3f,  -0x1.ecb8520000000p-4f},
    {0x1.2c0ff40000000p-4f,  0x1.2cc85a0000000p-5f,  0x1.ffc72c0000000p-7f,  0x1.6b8c740000000p-8f,
     0x1.dc91a80000000p-10f, 0x1.fd4f2a0000000p-12f, 0x1.e706680000000p-14f, 0x1.83886e0000000p-16f,
     0x1.3997840000000p-18f, -0x1.814b5e0000000p-2f, -0x1.7e9afe0000000p-2f, -0x1.7a2de00000000p-2f,
     -0x1.73701a0000000p-2f, -0x1.6a9cbe0000000p-2f, -0x1.5fd2ce0000000p-2f, -0x1.52e3580000000p-2f,
     -0x1.3cbf740000000p-2f, -0x1.1950d40000000p-2f, -0x1.e117220000000p-3f, -0x1.8862ca0000000p-3f,
     -0x1.2bb48c0000000p-3f, -0x1.9a85680000000p-4f, -0x1.c795ba0000000p-5f, -0x1.94dc780000000p-7f,
     0x1.7559f80000000p-5f,  0x1.b3a37c0000000p-4f,  0x1.2ae8e60000000p-3f,  0x1.51fcae0000000p-3f,
     0x1.5442d00000000p-3f,  0x1.3b5cea0000000p-3f,  0x1.1051e60000000p-3f,  0x1.bce3a20000000p-4f},
    {-0x1.6782ec0000000p-5f,  -0x1.d0ce780000000p-6f,  -0x1.dcd01a0000000p-7f,
     -0x1.91cca00000000p-8f,  -0x1.2055a20000000p-9f,  -0x1.5cbb9a0000000p-11f,
     -0x1.6bfea20000000p-13f, -0x1.4519b60000000p-15f, -0x1.1dec560000000p-17f,
     0x1.ce02440000000p-8f,   0x1.ac4f4c0000000p-6f,   0x1.6426e20000000p-5f,
     0x1.eede080000000p-5f,   0x1.3a335e0000000p-4f,   0x1.79d1ca0000000p-4f,
     0x1.b6014a0000000p-4f,   0x1.03ad520000000p-3f,   0x1.31db320000000p-3f,
     0x1.54f1a60000000p-3f,   0x1.6c036c0000000p-3f,   0x1.76cd4e0000000p-3f,
     0x1.759c4e0000000p-3f,   0x1.6949700000000p-3f,   0x1.53011a0000000p-3f,
     0x1.2281b60000000p-3f,   0x1.a09e040000000p-4f,   0x1.dfada20000000p-5f,
     0x1.33b2160000000p-6f,   -0x1.abc8ac0000000p-7f,  -0x1.1cf2d60000000p-5f,
     -0x1.7d49960000000p-5f,  -0x1.97c51a0000000p-5f},
};

} // namespace tessera::coefficients

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_FUNCTIONS_MATHCOEFFICIENTS_H
