// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Target/NVPTX/AssemblerWarnings.h"

#include "tessera/Target/NVPTX/PTXText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace tessera;

std::vector<std::string> tessera::getPlacesOfGroupDots(llvm::ArrayRef<Remark> remarks) {
  std::vector<std::string> places;
  for (const Remark &remark : remarks)
    if (remark.kind == RemarkKind::Dot && remark.get("instruction") == "wgmma")
      places.push_back(remark.place.print());
  places.erase(llvm::unique(places), places.end());
  return places;
}

Remark tessera::locateWarning(const std::string &warning, llvm::StringRef ptx,
                              llvm::ArrayRef<Remark> remarks) {
  Remark result{RemarkKind::Assembler, {}, warning, {}};
  llvm::StringRef text = warning;
  if (!text.contains("wgmma") && !text.contains("GMMA"))
    return result;
  unsigned line = 0;
  llvm::StringRef behind = text.split(" line ").second;
  if (!behind.consumeInteger(10, line))
    result.place = SourcePlace::parse(findSourcePlace(ptx, line));
  std::vector<std::string> places = getPlacesOfGroupDots(remarks);
  if (!result.place.file.empty() || places.empty())
    return result;
  if (places.size() == 1)
    result.place = SourcePlace::parse(places.front());
  else
    result.message = llvm::join(places, " or ") + ": " + warning;
  return result;
}
