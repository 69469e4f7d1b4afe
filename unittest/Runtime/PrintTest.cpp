// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Runtime/Host/Launcher.h"
#include "gtest/gtest.h"

#include <cmath>
#include <limits>
#include <string>

using namespace tessera::host;

namespace {

void appendTo(void *context, const char *text, size_t length) {
  static_cast<std::string *>(context)->append(text, length);
}

TEST(PrintTest, FormatsALine) {
  std::string text;
  Printer printer(appendTo, &text);
  __tessera_rt_print_begin(&printer, 1, 2, 3, " x = ");
  __tessera_rt_print_index(&printer, 4, /*width=*/1);
  __tessera_rt_print_index(&printer, 5, /*width=*/3);
  __tessera_rt_print_int(&printer, -7, 32, /*isSigned=*/1, /*hex=*/0);
  __tessera_rt_print_int(&printer, -1, 8, /*isSigned=*/0, /*hex=*/0);
  __tessera_rt_print_int(&printer, -1, 16, /*isSigned=*/1, /*hex=*/1);
  __tessera_rt_print_float(&printer, 2.5, /*hex=*/0);
  __tessera_rt_print_float(&printer, -std::nan(""), /*hex=*/0);
  __tessera_rt_print_end(&printer);
  flushPrintedLines(printer);
  EXPECT_EQ(text, "pid (1, 2, 3) idx (4,   5) x = -7, 255, 0xffff, 2.500000, nan\n");
}

TEST(PrintTest, LongestValue) {
  std::string text;
  Printer printer(appendTo, &text);
  __tessera_rt_print_begin(&printer, 0, 0, 0, ": ");
  __tessera_rt_print_float(&printer, std::numeric_limits<double>::lowest(), /*hex=*/0);
  __tessera_rt_print_end(&printer);
  flushPrintedLines(printer);
  EXPECT_EQ(text, "pid (0, 0, 0) idx (): " + std::to_string(std::numeric_limits<double>::lowest()) +
                      "\n");
}

TEST(PrintTest, ScalarAndBarePrefix) {
  std::string text;
  Printer printer(appendTo, &text);
  __tessera_rt_print_begin(&printer, 0, 0, 0, " here");
  __tessera_rt_print_end(&printer);
  __tessera_rt_print_begin(&printer, 0, 0, 0, " p ");
  __tessera_rt_print_pointer(&printer, reinterpret_cast<void *>(0x1234));
  __tessera_rt_print_end(&printer);
  EXPECT_EQ(text, "") << "lines of one program are kept together";
  flushPrintedLines(printer);
  EXPECT_EQ(text, "pid (0, 0, 0) here\npid (0, 0, 0) idx () p 0x1234\n");
}

int32_t printTwice(const Launch *launch, int64_t begin, int64_t end, char *) {
  for (int64_t i = begin; i < end; ++i)
    for (int line = 0; line < 2; ++line) {
      __tessera_rt_print_begin(launch->printer, static_cast<int32_t>(i), 0, 0, " line ");
      __tessera_rt_print_int(launch->printer, line, 32, 1, 0);
      __tessera_rt_print_end(launch->printer);
    }
  return 0;
}

TEST(PrintTest, LinesOfAProgramStayTogether) {
  std::string text;
  Printer printer(appendTo, &text);
  LaunchableKernel kernel;
  kernel.function = printTwice;
  LaunchOptions options;
  options.numThreads = 4;
  options.printer = &printer;
  int32_t grid[] = {200, 1, 1};
  Fault fault;
  EXPECT_TRUE(launch(kernel, grid, nullptr, fault, options));
  for (int i = 0; i < 200; ++i) {
    std::string head = "pid (" + std::to_string(i) + ", 0, 0) idx () line ";
    EXPECT_NE(text.find(head + "0\n" + head + "1\n"), std::string::npos) << i;
  }
}

} // namespace
