// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Support/AssertionFault.h"

#include "llvm/Support/FormatVariadic.h"

using namespace tessera;

UserError tessera::describeAssertion(llvm::StringRef kernel, const int32_t *program,
                                     llvm::StringRef text, std::string location) {
  bool isPromise = text.consume_front(kBrokenPromise);
  std::string message = llvm::formatv("{0} in program ({1}, {2}, {3}) of kernel '{4}'",
                                      isPromise ? "a promise does not hold" : "assertion failed",
                                      program[0], program[1], program[2], kernel);
  if (!text.empty())
    message += (": " + text).str();
  UserError error(isPromise ? "E082" : "E065", message,
                  isPromise ? "promise less, or leave the hint out: a promise must hold for all "
                              "elements, masked ones too"
                            : "");
  error.location = std::move(location);
  return error;
}
