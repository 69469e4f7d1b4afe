// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs GPU code with the simulator.

#include "Errors.h"
#include "Handles.h"

#include "tessera/Compiler/Compiler.h"
#include "tessera/Compiler/KernelFamily.h"
#include "tessera/Simulator/Simulator.h"
#include "tessera/Support/LaunchRefused.h"
#include "llvm/Support/MathExtras.h"

using namespace tessera;
using namespace tessera::capi;

extern "C" {

TsrStatus tsr_module_lower_cuda(TsrModule *module, const char *options) TSR_NOEXCEPT {
  return guardedActivity([&] {
    CompileOptions parsed = CompileOptions::parse(options);
    DiagnosticCollector collector(module->context.get());
    lowerForCUDA(*module->module, parsed);
  });
}

TsrStatus tsr_simulate(TsrModule *module, const char *kernel, const int32_t grid[3],
                       const uint64_t *args, size_t num_args, const TsrMemory *memory,
                       size_t num_memory, const TsrSimulation *simulation,
                       const char **report) TSR_NOEXCEPT {
  return guardedActivity([&] {
    DiagnosticCollector collector(module->context.get());
    SimulatorOptions options;
    options.seed = simulation->seed;
    options.isInterrupted = getInterruptCheck();
    options.copies = static_cast<CopyTimes>(simulation->copies);
    options.watchesGlobal = simulation->watch_global != 0;
    LaunchRecipes recipes = readLaunchRecipes(*module->module);
    options.tensorMaps = std::move(recipes.tensorMaps);
    options.launchConditions = std::move(recipes.conditions);
    options.arraysApart = std::move(recipes.arraysApart);
    options.persistentPrograms = recipes.persistentPrograms;
    options.argumentTables = std::move(recipes.argumentTables);
    // The simulator counts these for each of two SMs.
    if (options.persistentPrograms && simulation->multiprocessors > 0)
      options.persistentPrograms = static_cast<int>(llvm::divideCeil(
          int64_t(options.persistentPrograms) * simulation->multiprocessors, int64_t(2)));
    for (int axis = 0; recipes.mostPrograms && axis < 3; ++axis)
      if (grid[axis] > recipes.mostPrograms)
        throw LaunchRefused(Refusal::OutsideLimits, "E070",
                            "grid extent " + std::to_string(axis) + " is " +
                                std::to_string(grid[axis]) + ", more than " +
                                std::to_string(recipes.mostPrograms),
                            "compile the kernel with tensor_maps=False");
    for (const std::string &text : recipes.programBounds)
      if (auto bound = cuda::ProgramBound::parse(text, num_args);
          bound && !bound->holds(args, grid))
        throw LaunchRefused(Refusal::OutsideLimits, "E070",
                            cuda::describeBrokenBound(text) + ": " + text,
                            "compile the kernel with tensor_maps=False");
    for (const TsrMemory &piece : llvm::ArrayRef(memory, num_memory)) {
      MemoryRegion &region = options.memory.emplace_back();
      region.begin = piece.begin;
      region.end = piece.end;
      region.isReadOnly = piece.is_read_only != 0;
      region.isUnwritten = piece.is_unwritten != 0;
      region.elementBytes = static_cast<unsigned>(std::max<uint64_t>(1, piece.element_bytes));
      region.name = piece.name ? piece.name : "";
    }
    module->text = simulate(*module->module, kernel, {grid[0], grid[1], grid[2]},
                            llvm::ArrayRef<uint64_t>(args, num_args), options)
                       .toJSON();
    *report = module->text.c_str();
  });
}

TsrStatus tsr_module_choose_variant(TsrModule *module, int32_t multiprocessors,
                                    const int32_t grid[3], const uint64_t *args, size_t num_args,
                                    TsrVariant *variant) TSR_NOEXCEPT {
  return guarded([&] {
    cuda::Division division;
    LaunchRecipes recipes = readLaunchRecipes(*module->module);
    std::optional<int64_t> programs = cuda::countFewPrograms(grid, multiprocessors);
    if (recipes.divisibleSum && programs) {
      auto bound = cuda::ProgramBound::parse(recipes.divisibleSum->upper, num_args);
      std::optional<int64_t> end = bound ? bound->evaluate(args, grid) : std::nullopt;
      if (end)
        division = recipes.divisibleSum->choose(*end, *programs,
                                                cuda::ClusterRoom::guess(multiprocessors));
    }
    division.hasShortLoops = !recipes.shortLoops.empty() &&
                             llvm::all_of(recipes.shortLoops, [&](const std::string &text) {
                               auto bound = cuda::ProgramBound::parse(text, num_args);
                               return bound && bound->holds(args, grid);
                             });
    *variant = static_cast<TsrVariant>(getVariant(division));
  });
}

} // extern "C"
