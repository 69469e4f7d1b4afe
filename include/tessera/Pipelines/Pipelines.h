// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The compiler's pipelines: what runs, in which order. tessera-opt runs them by name,
// Python runs the same ones through lib/Compiler.

#ifndef TESSERA_PIPELINES_PIPELINES_H
#define TESSERA_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace tessera {

/// Options of the CPU pipeline: the CPU, and how to compile.
struct HostPipelineOptions : mlir::PassPipelineOptions<HostPipelineOptions> {
  Option<std::string> machine{
      *this, "machine", llvm::cl::init("avx2+f16"),
      llvm::cl::desc("A row of the table of machines, and which of its instructions there are")};
  Option<bool> deterministic{*this, "deterministic", llvm::cl::init(false),
                             llvm::cl::desc("Reduce in an order that no vector width changes")};
  Option<bool> limitLaunches{*this, "limit-launches", llvm::cl::init(true),
                             llvm::cl::desc("Launches have limits")};
  Option<bool> fpFusion{*this, "fp-fusion", llvm::cl::init(true),
                        llvm::cl::desc("Let a product and a sum be rounded once")};
  Option<bool> lineInfo{*this, "line-info", llvm::cl::init(false),
                        llvm::cl::desc("Have machine code tell the source lines it is from")};
  Option<bool> remarks{*this, "remarks", llvm::cl::init(false),
                       llvm::cl::desc("Say what was chosen for the machine, and why")};
};

/// Options of the GPU pipeline: the GPU, and how to compile.
struct GPUPipelineOptions : mlir::PassPipelineOptions<GPUPipelineOptions> {
  Option<std::string> arch{*this, "arch", llvm::cl::init("sm_90a"),
                           llvm::cl::desc("The architecture: sm_80, sm_90a")};
  Option<int> numWarps{*this, "num-warps", llvm::cl::init(4),
                       llvm::cl::desc("Warps of a program, a power of two up to 32")};
  Option<int> numCTAs{*this, "num-ctas", llvm::cl::init(1),
                      llvm::cl::desc("Blocks that do a program together, a power of two up to 8")};
  Option<bool> divideTiles{*this, "divide-tiles", llvm::cl::init(true),
                           llvm::cl::desc("Blocks may do parts of a program's tiles")};
  Option<bool> divideSums{*this, "divide-sums", llvm::cl::init(true),
                          llvm::cl::desc("Blocks may do parts of a program's sums")};
  Option<bool> limitLaunches{*this, "limit-launches", llvm::cl::init(true),
                             llvm::cl::desc("Launches have limits")};
  Option<bool> tensorMaps{*this, "tensor-maps", llvm::cl::init(false),
                          llvm::cl::desc("Launches make tensor maps")};
  Option<int> numStages{*this, "num-stages", llvm::cl::init(3),
                        llvm::cl::desc("Stages of a pipelined loop that does not say")};
  Option<bool> specialize{*this, "specialize", llvm::cl::init(true),
                          llvm::cl::desc("Warps may be specialised")};
  Option<bool> skew{*this, "skew", llvm::cl::init(true),
                    llvm::cl::desc("Dots may be done in another iteration")};
  Option<int64_t> mostPrograms{*this, "most-programs", llvm::cl::init(3),
                               llvm::cl::desc("Specialised programs that may share an SM")};
  Option<bool> hold{*this, "hold", llvm::cl::init(true),
                    llvm::cl::desc("Operands may be held in registers over a loop")};
  Option<bool> deterministic{*this, "deterministic", llvm::cl::init(false),
                             llvm::cl::desc("Reduce in an order that no layout changes")};
  Option<bool> fpFusion{*this, "fp-fusion", llvm::cl::init(true),
                        llvm::cl::desc("Let a product and a sum be rounded once")};
  Option<bool> flushResults{*this, "flush-results", llvm::cl::init(false),
                            llvm::cl::desc("Let exponentials below 2^-126 be zero")};
  Option<bool> strictSchedules{
      *this, "strict-schedules", llvm::cl::init(false),
      llvm::cl::desc("A planned schedule that the verifier refuses is an error")};
  Option<int> refusedPlans{*this, "refused-plans", llvm::cl::init(0),
                           llvm::cl::desc("For tests: plans of a loop taken for refused")};
};

/// tile to tile: every access is checked against the memory behind the kernel's arguments. For
/// the interpreter, or, with `expand`, for code.
void buildCheckPipeline(mlir::OpPassManager &manager, bool expand);

/// tile to tile: clean-up for any target.
void buildTilePipeline(mlir::OpPassManager &manager);

/// tile to loops of hardware vectors, in functions that the launcher calls.
void buildStripsPipeline(mlir::OpPassManager &manager, const HostPipelineOptions &options);

/// Loops of hardware vectors to the LLVM dialect.
void buildLLVMPipeline(mlir::OpPassManager &manager, const HostPipelineOptions &options);

/// The three one after the other: all that happens to a kernel for the CPU before LLVM.
void buildHostPipeline(mlir::OpPassManager &manager, const HostPipelineOptions &options);

/// tile to tilegpu: every tile has a layout, shared memory is allocated.
void buildTileGPUPipeline(mlir::OpPassManager &manager, const GPUPipelineOptions &options);

/// The part of that which starts with tiles that have no layout yet.
void buildLayoutPipeline(mlir::OpPassManager &manager, const GPUPipelineOptions &options);

/// The last part of that, in which every tile has its layout.
void buildSharedMemoryPipeline(mlir::OpPassManager &manager);

/// The last step of tiles: what one thread does, with control flow in scf.
void buildThreadPipeline(mlir::OpPassManager &manager);

/// tilegpu to the LLVM dialect.
void buildNVVMPipeline(mlir::OpPassManager &manager, const GPUPipelineOptions &options);

/// All that happens to a kernel for a GPU before LLVM.
void buildGPUPipeline(mlir::OpPassManager &manager, const GPUPipelineOptions &options);

/// Registers the conversions that the last pass for CPUs needs of dialects.
void registerLLVMConversions(mlir::DialectRegistry &registry);

/// Registers the layout rules that passes for GPUs, and the choice of clusters, ask ops for.
void registerLayoutRules(mlir::DialectRegistry &registry);

/// --tessera-check-pipeline, --tessera-tile-pipeline, and the CPU's: --tessera-host-pipeline and
/// its second and third part, --tessera-strips-pipeline and --tessera-llvm-pipeline.
void registerTilePipeline();
void registerHostPipeline();
/// --tessera-gpu-pipeline and its middle part, --tessera-tilegpu-pipeline.
void registerGPUPipeline();

} // namespace tessera

#endif // TESSERA_PIPELINES_PIPELINES_H
