// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Conversion/TileGPUToLLVM/TargetHooks.h"

#include "NVIDIA/NVIDIAHooks.h"

using namespace tessera;

TargetHooks::~TargetHooks() = default;

std::unique_ptr<TargetHooks> tessera::createTargetHooks(const GPUMachine &machine) {
  switch (machine.vendor) {
  case GPUVendor::NVIDIA:
    return std::make_unique<NVIDIAHooks>(machine);
  }
  llvm_unreachable("every vendor has hooks");
}
