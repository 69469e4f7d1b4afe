// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_LIB_COMPILER_STAGEFILES_H
#define TESSERA_LIB_COMPILER_STAGEFILES_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace tessera {

/// `folder`/`kernel`.`stage`.`suffix of the stage`
std::string getStagePath(llvm::StringRef folder, llvm::StringRef kernel, llvm::StringRef stage);

/// Writes a stage's text. Creates the folder if necessary. Throws UserError (E062) if it cannot be
/// written.
void writeStageFile(llvm::StringRef path, llvm::StringRef text);

/// The text of a stage that a user has edited, if there is such a file.
std::optional<std::string> readStageFile(llvm::StringRef path);

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_STAGEFILES_H
