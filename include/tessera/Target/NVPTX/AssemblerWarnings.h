// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The source locations that warnings of ptxas concern.

#ifndef TESSERA_TARGET_NVPTX_ASSEMBLERWARNINGS_H
#define TESSERA_TARGET_NVPTX_ASSEMBLERWARNINGS_H

#include "tessera/Support/Remark.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace tessera {

/// The source locations of dots by wgmma, in order.
std::vector<std::string> getPlacesOfGroupDots(llvm::ArrayRef<Remark> remarks);

/// A warning of ptxas, with a source location if it is about wgmma. If the warning names a line of
/// the PTX, the line has a location. ptxas 13.0 names none: then any of the dots may be meant.
Remark locateWarning(const std::string &warning, llvm::StringRef ptx,
                     llvm::ArrayRef<Remark> remarks);

} // namespace tessera

#endif // TESSERA_TARGET_NVPTX_ASSEMBLERWARNINGS_H
