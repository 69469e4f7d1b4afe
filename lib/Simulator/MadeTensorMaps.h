// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps that programs make. The hardware's format of the 128 bytes is opaque. Here they are
// the fields one after another. So setting a field is a store, which is checked for races and
// bounds like any other.

#ifndef TESSERA_LIB_SIMULATOR_MADETENSORMAPS_H
#define TESSERA_LIB_SIMULATOR_MADETENSORMAPS_H

#include "Machine.h"

namespace tessera::simulator {

class Decoder;
struct PTXInstr;

/// The map that programs have made at an address; null if there is none. Reports a finding if this
/// program may read the previous bytes, or if the memory was written since.
const TensorMap *findMadeMap(Warp &warp, const Instr &instr, unsigned lane, uint64_t address);

/// `tensormap.replace`, the copy of a map to global memory, and the fence that copies by it need.
bool decodeMaking(Decoder &decoder, const PTXInstr &instr);

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_MADETENSORMAPS_H
