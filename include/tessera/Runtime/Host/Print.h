// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints from kernels. For each line, generated code calls the extern "C" functions below in the
// order begin, index*, value*, end. Their first argument is Launch::printer.
//
//     pid (0, 3, 0) idx (1,  5) x: 2.500000
//
// The calling thread buffers its lines, and writes them when it starts another program, so the
// lines of one program stay together.

#ifndef TESSERA_RUNTIME_HOST_PRINT_H
#define TESSERA_RUNTIME_HOST_PRINT_H

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace tessera::host {

/// The receiver of printed lines, which Launch::printer points to.
struct Printer {
  using Write = void (*)(void *context, const char *text, size_t length);
  /// `write` of null is the process's standard output.
  explicit Printer(Write write = nullptr, void *context = nullptr)
      : write(write), context(context) {}

  Write write;
  void *context;
  std::mutex mutex;
};

/// Writes the lines that the calling thread has buffered. The launcher calls it after each chunk.
void flushPrintedLines(Printer &printer);

} // namespace tessera::host

extern "C" {
/// `prefix` is a zero-terminated string, which is printed between the program's id and the values.
void __tessera_rt_print_begin(void *printer, int32_t pid0, int32_t pid1, int32_t pid2,
                              const char *prefix);
/// One call a dimension, none for a scalar. The index is padded to `width` characters.
void __tessera_rt_print_index(void *printer, int32_t index, int32_t width);
/// `value` is sign- or zero-extended to 64 bits by its signedness; `bits` is its true width.
void __tessera_rt_print_int(void *printer, int64_t value, int32_t bits, int32_t isSigned,
                            int32_t hex);
/// Floats of all widths, converted to double.
void __tessera_rt_print_float(void *printer, double value, int32_t hex);
void __tessera_rt_print_pointer(void *printer, const void *value);
void __tessera_rt_print_end(void *printer);
}

#endif // TESSERA_RUNTIME_HOST_PRINT_H
