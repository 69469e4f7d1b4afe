// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_LIB_RUNTIME_HOST_PROCESSFORK_H
#define TESSERA_LIB_RUNTIME_HOST_PROCESSFORK_H

namespace tessera::host {

/// True if this process was forked from one that had used the runtime. The parent's threads and
/// everything they owned do not exist here.
bool isForkedChild();

/// The number of forks since the process that first used the runtime.
unsigned getForkGeneration();

} // namespace tessera::host

#endif // TESSERA_LIB_RUNTIME_HOST_PROCESSFORK_H
