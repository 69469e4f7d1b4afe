// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls: of the module's own functions, and of the two that the driver provides for printing and
// for assertions. Calls without an effect here are dropped.

#include "Decoder.h"
#include "Machine.h"
#include "MemoryOps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "tessera/Support/AssertionFault.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

using namespace mlir;
using namespace tessera;
using namespace tessera::simulator;

namespace {

/// A text that ends with a zero byte, of the module's constant data.
StringRef readText(uint64_t address) { return reinterpret_cast<const char *>(address); }

/// Operands: message, file, line, function, size of a character.
void failAssertion(Warp &warp, const Instr &instr, Lanes lanes) {
  auto lane = static_cast<unsigned>(__builtin_ctz(lanes));
  throw describeAssertion(warp.machine.kernel.name, warp.cta.id.data(),
                          readText(warp.in(instr, 0)[lane]), describeLocation(instr.op));
}

/// Writes a line of a lane: the arguments lie one after another, each aligned to its size.
void formatLine(Warp &warp, const Instr &instr, unsigned lane, StringRef format, uint64_t at,
                std::string &line) {
  auto read = [&](unsigned bytes) -> uint64_t {
    at = llvm::alignTo(at, bytes);
    const uint8_t *from =
        resolve(warp, instr, lane, at, bytes, bytes, Space::Generic, AccessKind::Read, nullptr);
    at += bytes;
    uint64_t value = 0;
    if (from)
      std::memcpy(&value, from, bytes);
    return value;
  };
  while (!format.empty()) {
    size_t length = format.find('%');
    line += format.take_front(length);
    format = format.drop_front(std::min(length, format.size()));
    if (format.empty())
      return;
    size_t end = format.find_first_of("%diuxXcaAeEfFgGsp", 1);
    std::string conversion = format.take_front(end + 1).str();
    format = format.drop_front(std::min(end + 1, format.size()));
    std::array<char, 384> text; // the largest double has 309 digits before its point
    char kind = conversion.back();
    if (kind == '%')
      line += '%';
    else if (StringRef("aAeEfFgG").contains(kind)) {
      snprintf(text.data(), text.size(), conversion.c_str(), llvm::bit_cast<double>(read(8)));
      line += text.data();
    } else if (StringRef(conversion).contains("ll") || kind == 'p') {
      snprintf(text.data(), text.size(), conversion.c_str(), static_cast<long long>(read(8)));
      line += text.data();
    } else {
      snprintf(text.data(), text.size(), conversion.c_str(), static_cast<int>(read(4)));
      line += text.data();
    }
  }
}

/// Operands: format, buffer of arguments.
void print(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *formats = warp.in(instr, 0), *buffers = warp.in(instr, 1);
  uint64_t *result = warp.out(instr);
  std::string &line = warp.machine.printed;
  forEachLane(lanes, [&](unsigned lane) {
    result[lane] = 0;
    formatLine(warp, instr, lane, readText(formats[lane]), buffers[lane], line);
    while (true) {
      auto [first, rest] = StringRef(line).split('\n');
      if (first.size() == line.size())
        return;
      if (warp.machine.options.print)
        warp.machine.options.print(first);
      else
        llvm::outs() << first << '\n';
      line = rest.str();
    }
  });
}

void decodeCall(Decoder &decoder, LLVM::CallOp call) {
  std::optional<StringRef> callee = call.getCallee();
  if (!callee)
    decoder.refuse("calls by pointer");
  Registers operands, results;
  for (Value operand : call.getCalleeOperands())
    llvm::append_range(operands, decoder.get(operand));
  if (call->getNumResults())
    results = decoder.define(call.getResult());
  if (*callee == "__assertfail" && operands.size() == 5) {
    decoder.emit(failAssertion, {}, operands);
    return;
  }
  if (*callee == "vprintf" && operands.size() == 2) {
    decoder.emit(print, results, operands);
    return;
  }
  const Code *code = decoder.findFunction(*callee);
  if (!code)
    decoder.refuse("the function '" + *callee + "'");
  decoder.emit(nullptr, results, operands, Flow::Call).callee = code;
}

} // namespace

bool simulator::decodeCalls(Decoder &decoder, Operation &op) {
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case([&](LLVM::CallOp call) {
        decodeCall(decoder, call);
        return true;
      })
      .Case([&](LLVM::FenceOp fence) {
        decoder.emit(runFence, {}, {}, Flow::Memory).immediate =
            static_cast<int64_t>(getReach(fence.getSyncscope()));
        return true;
      })
      // Promises are not looked at.
      .Case<LLVM::AssumeOp, LLVM::DbgValueOp, LLVM::DbgDeclareOp, LLVM::LifetimeStartOp,
            LLVM::LifetimeEndOp, LLVM::NoAliasScopeDeclOp>([](auto) { return true; })
      .Default([](Operation *) { return false; });
}
