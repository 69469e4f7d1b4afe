// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Formats and writes the lines that kernels print.

#include "tessera/Runtime/Host/Print.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <string>

using namespace tessera::host;

namespace {
/// The lines that a thread has printed but not written. A thread runs one launch at a time, and the
/// launcher flushes after each chunk, so one per thread suffices.
struct Gathered {
  std::string lines;
  std::string prefix;
  int32_t program[3] = {0, 0, 0};
  int numIndices = 0;
  int numValues = 0;
};
thread_local Gathered gathered;

template <typename... Args> void append(const char *format, Args... args) {
  // The largest double has 309 digits before its point.
  char text[384];
  int length = std::snprintf(text, sizeof(text), format, args...);
  if (length > 0)
    gathered.lines.append(text,
                          static_cast<size_t>(length) < sizeof(text) ? length : sizeof(text) - 1);
}

/// Ends the head of a line before the first value; writes a separator before other values.
void beginValue() {
  if (gathered.numValues++ > 0) {
    gathered.lines += ", ";
    return;
  }
  gathered.lines += gathered.numIndices > 0 ? ")" : " idx ()";
  gathered.lines += gathered.prefix;
}
} // namespace

void tessera::host::flushPrintedLines(Printer &printer) {
  if (gathered.lines.empty())
    return;
  {
    std::lock_guard<std::mutex> lock(printer.mutex);
    if (printer.write) {
      printer.write(printer.context, gathered.lines.data(), gathered.lines.size());
    } else {
      std::fwrite(gathered.lines.data(), 1, gathered.lines.size(), stdout);
      std::fflush(stdout);
    }
  }
  gathered.lines.clear();
}

void __tessera_rt_print_begin(void *printer, int32_t pid0, int32_t pid1, int32_t pid2,
                              const char *prefix) {
  Gathered &g = gathered;
  if (pid0 != g.program[0] || pid1 != g.program[1] || pid2 != g.program[2])
    flushPrintedLines(*static_cast<Printer *>(printer));
  g.program[0] = pid0;
  g.program[1] = pid1;
  g.program[2] = pid2;
  g.prefix = prefix;
  g.numIndices = 0;
  g.numValues = 0;
  append("pid (%" PRId32 ", %" PRId32 ", %" PRId32 ")", pid0, pid1, pid2);
}

void __tessera_rt_print_index(void *, int32_t index, int32_t width) {
  append(gathered.numIndices++ == 0 ? " idx (%*" PRId32 : ", %*" PRId32, static_cast<int>(width),
         index);
}

void __tessera_rt_print_int(void *, int64_t value, int32_t bits, int32_t isSigned, int32_t hex) {
  beginValue();
  uint64_t mask = bits >= 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  if (hex)
    append("0x%0*" PRIx64, (bits + 3) / 4, static_cast<uint64_t>(value) & mask);
  else if (isSigned)
    append("%" PRId64, value);
  else
    append("%" PRIu64, static_cast<uint64_t>(value) & mask);
}

void __tessera_rt_print_float(void *, double value, int32_t hex) {
  beginValue();
  // A NaN's sign depends on the CPU, and "-nan" on the C library.
  if (std::isnan(value))
    gathered.lines += "nan";
  else
    append(hex ? "%a" : "%f", value);
}

void __tessera_rt_print_pointer(void *, const void *value) {
  beginValue();
  append("%p", value);
}

void __tessera_rt_print_end(void *) {
  if (gathered.numValues == 0)
    gathered.lines += gathered.prefix;
  gathered.lines += '\n';
}
