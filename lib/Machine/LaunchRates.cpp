// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Machine/LaunchRates.h"

#include "llvm/ADT/StringSwitch.h"

using namespace tessera;

LaunchRates LaunchRates::get(const GPUMachine &machine) {
  // Megahertz, and bytes in a nanosecond: A100, A10, Orin, L40S, H100 and H200, B200, RTX PRO 6000.
  auto [megahertz, bandwidth] = llvm::StringSwitch<std::pair<double, double>>(machine.name)
                                    .Case("sm_80", {1410, 1935})
                                    .Case("sm_86", {1695, 600})
                                    .Case("sm_87", {1300, 204})
                                    .Case("sm_89", {2520, 864})
                                    .Case("sm_90", {1830, 3350})
                                    .Case("sm_90a", {1900, 4813})
                                    .Cases({"sm_100", "sm_100a", "sm_103a"}, {1965, 8000})
                                    .Default({2430, 1792});
  LaunchRates rates;
  rates.megahertz = megahertz;
  rates.memoryBandwidth = bandwidth;
  return rates;
}
