// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the options of a compilation. They come from a user's call or environment, so an error
// names the option.

#include "tessera/Compiler/Compiler.h"
#include "tessera/Machine/GPUMachine.h"
#include "tessera/Support/UserError.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace tessera;

namespace {

[[noreturn]] void fail(StringRef key, const json::Value &value, StringRef wanted) {
  std::string text;
  raw_string_ostream(text) << value;
  throw UserError("E062", "option '" + key.str() + "' is " + text + ", not " + wanted.str());
}

void read(StringRef key, const json::Value &value, bool &option) {
  std::optional<bool> boolean = value.getAsBoolean();
  if (!boolean)
    fail(key, value, "true or false");
  option = *boolean;
}

void read(StringRef key, const json::Value &value, int &option) {
  std::optional<int64_t> integer = value.getAsInteger();
  if (!integer || *integer < 0 || *integer > (1 << 14))
    fail(key, value, "an integer from 0 to 16384");
  option = static_cast<int>(*integer);
}

void read(StringRef key, const json::Value &value, std::string &option) {
  std::optional<StringRef> string = value.getAsString();
  if (!string)
    fail(key, value, "a string");
  option = string->str();
}

/// Reads a string that must be one of a few.
std::string readChoice(StringRef key, const json::Value &value, ArrayRef<StringRef> choices) {
  std::optional<StringRef> string = value.getAsString();
  if (!string || !is_contained(choices, *string))
    fail(key, value, "one of " + join(choices, ", "));
  return string->str();
}

} // namespace

CompileOptions CompileOptions::parse(StringRef text) {
  Expected<json::Value> parsed = json::parse(text);
  if (!parsed)
    throw UserError("E062", "options are not JSON: " + toString(parsed.takeError()));
  const json::Object *object = parsed->getAsObject();
  if (!object)
    throw UserError("E062", "options are no JSON object");

  CompileOptions options;
  for (const auto &[jsonKey, value] : *object) {
    StringRef key = jsonKey;
    if (value.kind() == json::Value::Null)
      continue;
    if (key == "target") {
      options.target = readChoice(key, value, {"cpu", "cuda"});
    } else if (key == "cpu") {
      read(key, value, options.cpu);
    } else if (key == "features") {
      read(key, value, options.features);
    } else if (key == "cpu_row") {
      read(key, value, options.cpuRow);
    } else if (key == "deterministic") {
      read(key, value, options.deterministic);
    } else if (key == "debug") {
      read(key, value, options.debug);
    } else if (key == "line_info") {
      read(key, value, options.lineInfo);
    } else if (key == "fp_fusion") {
      read(key, value, options.fpFusion);
    } else if (key == "num_threads") {
      read(key, value, options.numThreads);
    } else if (key == "tune") {
      options.tuneMax = readChoice(key, value, {"lite", "max"}) == "max";
    } else if (key == "arch") {
      read(key, value, options.arch);
    } else if (key == "num_warps") {
      read(key, value, options.numWarps);
      if (!isPowerOf2_32(options.numWarps) || options.numWarps > int(GPUMachine::kMaxWarps))
        fail(key, value, "a power of two from 1 to 32");
    } else if (key == "num_ctas") {
      read(key, value, options.numCTAs);
      if (!isPowerOf2_32(options.numCTAs) || options.numCTAs > 8)
        fail(key, value, "1, 2, 4 or 8");
    } else if (key == "split_k") {
      bool divides = true;
      read(key, value, divides);
      (divides ? options.divideTiles : options.divideSums) = false;
    } else if (key == "num_stages") {
      read(key, value, options.numStages);
    } else if (key == "short_loops") {
      read(key, value, options.shortLoops);
    } else if (key == "tensor_maps") {
      read(key, value, options.tensorMaps);
    } else if (key == "flush_results") {
      read(key, value, options.flushResults);
    } else if (key == "strict_schedules") {
      read(key, value, options.strictSchedules);
    } else if (key == "refused_plans") {
      read(key, value, options.refusedPlans);
    } else if (key == "ptxas") {
      read(key, value, options.ptxas);
    } else if (key == "libdevice") {
      read(key, value, options.libdevice);
    } else if (key == "ptxas_timeout") {
      read(key, value, options.ptxasTimeout);
    } else if (key == "max_registers") {
      read(key, value, options.maxRegisters);
    } else if (key == "entry") {
      read(key, value, options.entry);
    } else if (key == "start_stage") {
      read(key, value, options.startStage);
    } else if (key == "last_stage") {
      options.lastStage = readChoice(key, value, {"tilegpu", "llvm"});
    } else if (key == "dump_dir") {
      read(key, value, options.dumpDir);
    } else if (key == "override_dir") {
      read(key, value, options.overrideDir);
    } else if (key == "reproducer_dir") {
      read(key, value, options.reproducerDir);
    } else if (key == "keep_stages") {
      read(key, value, options.keepStages);
    } else {
      throw UserError("E062", "unknown option '" + key.str() + "'");
    }
  }
  // Stages after LLVM IR cannot be parsed.
  ArrayRef<StringLiteral> stages = (options.target == "cuda" ? kCUDAStages : kStages).drop_back(2);
  if (!is_contained(stages, options.startStage))
    fail("start_stage", options.startStage, "one of " + join(stages.begin(), stages.end(), ", "));
  return options;
}
