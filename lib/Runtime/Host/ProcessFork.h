// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_LIB_RUNTIME_HOST_PROCESSFORK_H
#define TESSERA_LIB_RUNTIME_HOST_PROCESSFORK_H

namespace tessera::host {

/// True if this process was forked off one in which the runtime had been used:
/// threads of that time are gone, and whatever they held is lost.
bool isForkedChild();

/// How many forks lie between this process and the one that first used the runtime.
unsigned getForkGeneration();

} // namespace tessera::host

#endif // TESSERA_LIB_RUNTIME_HOST_PROCESSFORK_H
