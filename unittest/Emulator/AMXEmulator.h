// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An emulator of AMX for tests on CPUs that have none. A CPU raises SIGILL for an instruction it
// does not know. The handler decodes the instruction, executes it on tiles in memory, and continues
// behind it. Each thread has tiles of its own.
//
// It knows AMX-TILE, AMX-BF16 and AMX-INT8. If the shapes of a dot's tiles do not fit, it ends the
// process with a message, as a CPU would. So it does for any other unknown instruction.
//
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, which defines
// each instruction, and the order and rounding of TDPBF16PS.

#ifndef TESSERA_UNITTEST_EMULATOR_AMXEMULATOR_H
#define TESSERA_UNITTEST_EMULATOR_AMXEMULATOR_H

#pragma GCC visibility push(default)
extern "C" {

/// Installs the handler for all threads of this process. A second call does nothing.
void tessera_install_amx_emulator();

/// The features that this process emulates, in LLVM's words. The compiler looks this symbol up
/// before it refuses code for which the CPU lacks a feature (HostTarget.h).
const char *tessera_emulated_cpu_features();

/// The number of dots of tiles that have been emulated, so that tests can tell that there were any.
long tessera_emulated_tile_dots();

} // extern "C"
#pragma GCC visibility pop

#endif // TESSERA_UNITTEST_EMULATOR_AMXEMULATOR_H
