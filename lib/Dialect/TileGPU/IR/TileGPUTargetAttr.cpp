// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

Attribute TargetAttr::parse(AsmParser &parser, Type) {
  std::string name;
  llvm::SMLoc loc;
  if (parser.parseLess() || parser.getCurrentLocation(&loc) || parser.parseString(&name) ||
      parser.parseGreater())
    return {};
  if (const GPUMachine *machine = GPUMachine::find(name))
    return TargetAttr::get(parser.getContext(), machine);
  parser.emitError(loc, "there is no GPU architecture '")
      << name << "'; wanted is " << GPUMachine::listNames();
  return {};
}

void TargetAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printString(getArch());
  printer << '>';
}
