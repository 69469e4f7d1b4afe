/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The C API of the core: all that libtessera exports.
 *
 * The core holds MLIR and LLVM behind hidden symbols, so that a process may hold
 * other copies of LLVM beside it. Nothing crosses this boundary but the types
 * below: no exception (each function is noexcept), no C++ object, no MLIR handle.
 *
 * Conventions
 *  - A function that can fail returns a TsrStatus. After anything but TSR_OK,
 *    tsr_last_error() describes the failure of the calling thread's last call.
 *  - Handles are opaque and made and destroyed in pairs. A handle may be used by
 *    one thread at a time; different handles by different threads at once.
 *  - A returned string belongs to the handle it came from (to the thread, for
 *    tsr_last_error) and lives until the next call with that handle.
 *  - Values are numbers that belong to their builder. They are never reused.
 */

#ifndef TESSERA_CAPI_TESSERA_H
#define TESSERA_CAPI_TESSERA_H

#include <stddef.h>
#include <stdint.h>

#define TSR_API_VERSION 6

#if defined(TSR_BUILDING_CORE)
#define TSR_EXPORT __attribute__((visibility("default")))
#else
#define TSR_EXPORT
#endif

#ifdef __cplusplus
#define TSR_NOEXCEPT noexcept
extern "C" {
#else
#define TSR_NOEXCEPT
#endif

typedef enum TsrStatus {
  TSR_OK = 0,
  TSR_USER_ERROR = 1,     /* a mistake in the user's program or call */
  TSR_INTERNAL_ERROR = 2, /* our bug */
  TSR_OUT_OF_MEMORY = 3,
  TSR_CANCELLED = 4, /* a cancellation ended the call; tsr_last_error has no details */
  /* A variant of a kernel refuses a launch and has run nothing; another variant can run it. For a
   * user without one it is a mistake, which tsr_last_error describes. */
  TSR_OUTSIDE_LIMITS = -1,  /* E070: compile with "tensor_maps" false */
  TSR_NO_CLUSTER_ROOM = -2, /* E066: compile with fewer "num_ctas" */
} TsrStatus;

/* {"kind": "user"|"internal"|"memory", "id": "E018", "message": ..., "fix": ...,
 *  "file": ..., "line": n, "column": n, "notes": [{"message", "file", "line", "column"}],
 *  "reproducer": path}. Keys without a value are left out. */
TSR_EXPORT const char *tsr_last_error(void) TSR_NOEXCEPT;
/* Fails with TSR_OUT_OF_MEMORY, as if memory had run out in the library. */
TSR_EXPORT TsrStatus tsr_fail_without_memory(void) TSR_NOEXCEPT;

/* TSR_API_VERSION of the library, to be compared with the header's. */
TSR_EXPORT int tsr_api_version(void) TSR_NOEXCEPT;
/* Changes whenever generated code may change; part of every cache key. */
TSR_EXPORT const char *tsr_build_id(void) TSR_NOEXCEPT;

/* Cancels compilations of the calling thread once `*flag` is not 0. They end with TSR_CANCELLED,
 * between passes or while an assembler runs. Null removes the flag, which must live until then. */
TSR_EXPORT void tsr_set_cancellation(const int32_t *flag) TSR_NOEXCEPT;
/* Records the times of the calling thread's compilations in a clock; null stops that. Another
 * thread may print the clock meanwhile, as JSON: {"parts": [[name, seconds], ...], "schedules":
 * number of schedules that a kernel was compiled with}. The front end is not measured. */
typedef struct TsrCompileClock TsrCompileClock;
TSR_EXPORT TsrStatus tsr_compile_clock_create(TsrCompileClock **clock) TSR_NOEXCEPT;
TSR_EXPORT void tsr_compile_clock_destroy(TsrCompileClock *clock) TSR_NOEXCEPT;
TSR_EXPORT void tsr_set_compile_clock(TsrCompileClock *clock) TSR_NOEXCEPT;
TSR_EXPORT TsrStatus tsr_compile_clock_print(TsrCompileClock *clock,
                                             const char **json) TSR_NOEXCEPT;
/* Sets the function by which launches on the CPU check for interrupts. A launch calls it about
 * every 50 ms, between programs, on its own thread. If it does not return 0, the launch ends with
 * TSR_CANCELLED. Null (the default): no checks. */
TSR_EXPORT void tsr_set_interrupt_check(int (*check)(void)) TSR_NOEXCEPT;
/* Prepares the end of the process, before static objects are destroyed. Cancels the compilations of
 * all threads and waits for them, at most so many milliseconds; new ones fail. */
TSR_EXPORT void tsr_finish(int32_t milliseconds) TSR_NOEXCEPT;

/* --- Types and arguments ---------------------------------------------------- */

typedef enum TsrDType {
  TSR_VOID = 0,
  TSR_INT1,
  TSR_INT8,
  TSR_INT16,
  TSR_INT32,
  TSR_INT64,
  TSR_UINT8,
  TSR_UINT16,
  TSR_UINT32,
  TSR_UINT64,
  TSR_FP8E5,
  TSR_FP8E4NV,
  TSR_FP8E4B8,
  TSR_FP8E5B16,
  TSR_FP8E4B15,
  TSR_FP16,
  TSR_BF16,
  TSR_FP32,
  TSR_FP64,
} TsrDType;

typedef enum TsrTypeKind {
  TSR_KIND_NUMBER = 0,          /* dtype, or a tile of dtype */
  TSR_KIND_POINTER = 1,         /* pointer to dtype, or a tile of such */
  TSR_KIND_BLOCK_POINTER = 2,   /* block pointer to blocks `shape` of dtype */
  TSR_KIND_DESCRIPTOR = 3,      /* tensor descriptor of blocks `shape` of dtype */
  TSR_KIND_TF32_DESCRIPTOR = 4, /* one whose loads round float32 to tf32 */
} TsrTypeKind;

enum { TSR_MAX_RANK = 32 };

/* The type of a value. `rank` 0 is a scalar. */
typedef struct TsrType {
  uint8_t kind;     /* TsrTypeKind */
  uint8_t dtype;    /* TsrDType of the element, or of the pointee */
  uint8_t is_const; /* a pointer that may not be stored through */
  uint8_t rank;
  int32_t shape[TSR_MAX_RANK];
} TsrType;

typedef uint32_t TsrValue; /* a value of a builder; 0 is none */

typedef enum TsrArgKind {
  TSR_ARG_NONE = 0,
  TSR_ARG_BOOL,
  TSR_ARG_INT,  /* fits int64_t */
  TSR_ARG_UINT, /* above INT64_MAX, fits uint64_t */
  TSR_ARG_FLOAT,
  TSR_ARG_STRING, /* UTF-8, `length` bytes */
  TSR_ARG_TYPE,
  TSR_ARG_VALUE,
  TSR_ARG_LIST, /* `length` items */
} TsrArgKind;

/* An argument or a result of tsr_builder_call. Literals differ from values, since type promotion
 * treats them differently. */
typedef struct TsrArg {
  int32_t kind; /* TsrArgKind */
  size_t length;
  union {
    int64_t integer; /* also bool */
    uint64_t unsigned_integer;
    double floating;
    const char *string;
    TsrType type;
    TsrValue value;
    const struct TsrArg *items;
  };
} TsrArg;

/* --- Modules of tile IR -------------------------------------------------------- */

typedef struct TsrModule TsrModule;

TSR_EXPORT TsrStatus tsr_module_create(TsrModule **module) TSR_NOEXCEPT;
/* Parses textual IR of any stage that is MLIR. */
TSR_EXPORT TsrStatus tsr_module_parse(const char *text, size_t length, const char *file_name,
                                      TsrModule **module) TSR_NOEXCEPT;
TSR_EXPORT TsrStatus tsr_module_print(TsrModule *module, int with_locations,
                                      const char **text) TSR_NOEXCEPT;
TSR_EXPORT TsrStatus tsr_module_verify(TsrModule *module) TSR_NOEXCEPT;
/* Sets `stored[i]` to 1 for each argument of a kernel of tile IR whose memory it may write, and
 * `*num_args` to the number of arguments. Sets at most `capacity` elements. */
TSR_EXPORT TsrStatus tsr_module_stored_arguments(TsrModule *module, const char *kernel,
                                                 uint8_t *stored, size_t capacity,
                                                 size_t *num_args) TSR_NOEXCEPT;
TSR_EXPORT void tsr_module_destroy(TsrModule *module) TSR_NOEXCEPT;

/* --- The typed builder ------------------------------------------------------------ */

typedef struct TsrBuilder TsrBuilder;

TSR_EXPORT TsrStatus tsr_builder_create(TsrModule *module, TsrBuilder **builder) TSR_NOEXCEPT;
TSR_EXPORT void tsr_builder_destroy(TsrBuilder *builder) TSR_NOEXCEPT;
/* Sets the source location of the values that are built next. It replaces the innermost frame of
 * the chain of calls. */
TSR_EXPORT void tsr_builder_set_location(TsrBuilder *builder, const char *file, int32_t line,
                                         int32_t column) TSR_NOEXCEPT;
/* Enter and leave an inlined call at the present location. */
TSR_EXPORT void tsr_builder_push_frame(TsrBuilder *builder, const char *function_name) TSR_NOEXCEPT;
TSR_EXPORT void tsr_builder_pop_frame(TsrBuilder *builder) TSR_NOEXCEPT;
TSR_EXPORT TsrStatus tsr_builder_type_of(TsrBuilder *builder, TsrValue value,
                                         TsrType *type) TSR_NOEXCEPT;
/* Calls a method of TileBuilder by its name in the table of lib/Frontend/Builtins.cpp
 * ("load", "dot", "begin_for", ...). `results` points to `*num_results` results that
 * live until the next call with this builder. */
TSR_EXPORT TsrStatus tsr_builder_call(TsrBuilder *builder, const char *name, const TsrArg *args,
                                      size_t num_args, const TsrArg **results,
                                      size_t *num_results) TSR_NOEXCEPT;

/* --- Compiling and launching ------------------------------------------------------- */

typedef struct TsrKernel TsrKernel;

/* Compiles the module's kernel. `options` is JSON: {"target": "cpu"|"cuda", "cpu":
 * "host"|name, "features": "+avx2,-avx512f", "deterministic": bool, "debug": bool,
 * "fp_fusion": bool, "num_threads": n, "tune": "lite"|"max", "entry": kernel name,
 * "start_stage": name of the stage that the module is of, "dump_dir": path,
 * "override_dir": path, "reproducer_dir": path, "keep_stages": bool}; for "cuda" also
 * {"arch": "sm_90a", "num_warps": n, "num_ctas": n, "ptxas": path, "libdevice": path,
 * "ptxas_timeout": seconds, "max_registers": n, "tensor_maps": bool, "flush_results": bool}. No GPU
 * is needed to compile for one. The module is consumed in the sense that it is lowered in place. */
TSR_EXPORT TsrStatus tsr_compile(TsrModule *module, const char *options,
                                 TsrKernel **kernel) TSR_NOEXCEPT;
/* The same from the text of a stage, also of one that is not MLIR ("llvmir"). `options` must
 * name the stage as "start_stage". */
TSR_EXPORT TsrStatus tsr_compile_text(const char *text, size_t length, const char *file_name,
                                      const char *options, TsrKernel **kernel) TSR_NOEXCEPT;
/* A compiled kernel as bytes for the disk cache, and back. */
TSR_EXPORT TsrStatus tsr_kernel_serialize(TsrKernel *kernel, const char **bytes,
                                          size_t *length) TSR_NOEXCEPT;
TSR_EXPORT TsrStatus tsr_kernel_deserialize(const char *bytes, size_t length,
                                            TsrKernel **kernel) TSR_NOEXCEPT;
/* The text (or bytes) of a named stage: "tile", "tile-opt", "strips", "llvm", "llvmir", "asm",
 * "object"; for CUDA "tile", "tile-opt", "tilegpu", "llvm", "llvmir", "ptx", "cubin". NULL if the
 * kernel does not have the stage's text. */
TSR_EXPORT TsrStatus tsr_kernel_stage(TsrKernel *kernel, const char *stage, const char **text,
                                      size_t *length) TSR_NOEXCEPT;
/* Shows the functions of a kernel for the CPU to tools by name, during the kernel's lifetime: to
 * perf by the file /tmp/perf-PID.map, to gdb by its JIT interface. If the kernel was compiled with
 * "line_info", gdb also finds lines and can unwind. No effect on a kernel that is not loaded. */
typedef enum TsrTool { TSR_TOOL_PERF = 1, TSR_TOOL_GDB = 2 } TsrTool;
TSR_EXPORT TsrStatus tsr_kernel_show(TsrKernel *kernel, uint32_t tools) TSR_NOEXCEPT;
/* JSON: name, target, arguments, stage times in ms, scratch bytes, remarks, ... */
TSR_EXPORT const char *tsr_kernel_metadata(TsrKernel *kernel) TSR_NOEXCEPT;
/* Runs a grid on the CPU. `args` has one 8-byte slot an argument: a pointer, an integer
 * sign- or zero-extended, or the bits of a float in the low bytes. Blocks until done.
 * `num_threads` 0 means the default. */
TSR_EXPORT TsrStatus tsr_kernel_launch(TsrKernel *kernel, const int32_t grid[3],
                                       const uint64_t *args, size_t num_args,
                                       int32_t num_threads) TSR_NOEXCEPT;
/* The memory behind an argument: addresses `begin` to `end - 1`, and the parameter's name, or NULL.
 * 0 and INT64_MAX if the range is unknown, or if the argument is no pointer. */
typedef struct TsrArgumentMemory {
  int64_t begin;
  int64_t end;
  const char *name;
} TsrArgumentMemory;
/* As tsr_kernel_launch, with the memory behind each argument. A kernel compiled with the option
 * "debug" checks its accesses against it (E080, E081). */
TSR_EXPORT TsrStatus tsr_kernel_launch_checked(TsrKernel *kernel, const int32_t grid[3],
                                               const uint64_t *args, size_t num_args,
                                               const TsrArgumentMemory *memory,
                                               int32_t num_threads) TSR_NOEXCEPT;
/* The kernel's assumptions about a launch, as JSON with the fields of tessera_limits
 * (tessera/Runtime/CUDA/tessera_limits.h) and formulas as lists of [operation, bits, number]; null
 * if there are none. */
TSR_EXPORT TsrStatus tsr_kernel_limits(TsrKernel *kernel, const char **json) TSR_NOEXCEPT;
/* Fails with E088, and names the access, if a launch will certainly access elements outside of an
 * argument's memory. Only accesses count that every program makes, at addresses that follow from
 * the grid and the arguments. Runs nothing, and takes microseconds. */
TSR_EXPORT TsrStatus tsr_kernel_check_accesses(TsrKernel *kernel, const int32_t grid[3],
                                               const uint64_t *args, size_t num_args,
                                               const TsrArgumentMemory *memory) TSR_NOEXCEPT;
/* 1 if a launch with these arguments is within the limits that the kernel was compiled for, or is
 * wrong in another way. If 0, launching it fails with TSR_OUTSIDE_LIMITS. Cheap. */
TSR_EXPORT int tsr_kernel_accepts(TsrKernel *kernel, const int32_t grid[3], const uint64_t *args,
                                  size_t num_args) TSR_NOEXCEPT;
TSR_EXPORT void tsr_kernel_destroy(TsrKernel *kernel) TSR_NOEXCEPT;

/* --- Families of kernels -----------------------------------------------------------
 *
 * The variants of one kernel, compiled with different options, and the choice of one for each
 * launch (include/tessera/Compiler/KernelFamily.h). tsr_family_choose names the variant that a
 * launch tries first; if it is missing, compile it and set it. If its launch is refused,
 * tsr_family_retry names the next one. */

typedef enum TsrVariant {
  TSR_VARIANT_USUAL = 0,
  TSR_VARIANT_UNLIMITED = 1, /* {"tensor_maps": false} */
  TSR_VARIANT_SPLIT_2 = 2,   /* {"num_ctas": 2, "split_k": true} */
  TSR_VARIANT_SPLIT_4 = 3,
  TSR_VARIANT_SPLIT_8 = 4,
  TSR_VARIANT_PAIR_OF_TILES = 5, /* {"num_ctas": 2, "split_k": false} */
  TSR_VARIANT_SHORT_LOOPS = 6,   /* {"short_loops": true} */
  TSR_NUM_VARIANTS = 7,          /* none */
} TsrVariant;

/* The variant with which a launch of the module's kernel on a GPU would be fastest: a division if
 * the kernel sums up dots in a loop and its programs are too few for the SMs, that for short loops
 * if loops that load have few iterations, else TSR_VARIANT_USUAL. Takes a module of the stage
 * "llvm", and a GPU with clusters that has so many multiprocessors. Decides as tsr_family_choose
 * does if the driver does not report how many clusters fit. */
TSR_EXPORT TsrStatus tsr_module_choose_variant(TsrModule *module, int32_t multiprocessors,
                                               const int32_t grid[3], const uint64_t *args,
                                               size_t num_args, TsrVariant *variant) TSR_NOEXCEPT;

typedef struct TsrFamily TsrFamily;

/* `may_divide`: launches may choose the number of blocks of a program, since the options do not.
 * TSR_VARIANT_USUAL must be set before any other call. */
TSR_EXPORT TsrStatus tsr_family_create(int may_divide, TsrFamily **family) TSR_NOEXCEPT;
TSR_EXPORT void tsr_family_destroy(TsrFamily *family) TSR_NOEXCEPT;
/* Adds, replaces or removes (NULL) a variant, which lives as long as it is set. */
TSR_EXPORT void tsr_family_set(TsrFamily *family, TsrVariant variant,
                               TsrKernel *kernel) TSR_NOEXCEPT;
/* 0 if tsr_family_choose would be TSR_VARIANT_USUAL for any launch; until the next tsr_family_set,
 * _retry or _give_up. */
TSR_EXPORT int tsr_family_has_choice(const TsrFamily *family) TSR_NOEXCEPT;
/* The variant that a launch tries first. `device` is a GPU, or -1 for the CPU. Cheap. */
TSR_EXPORT TsrVariant tsr_family_choose(const TsrFamily *family, int32_t device,
                                        const int32_t grid[3], const uint64_t *args,
                                        size_t num_args) TSR_NOEXCEPT;
/* The next variant after one whose launch ended with `status`; TSR_NUM_VARIANTS: the launch has
 * failed. */
TSR_EXPORT TsrVariant tsr_family_retry(TsrFamily *family, TsrVariant refused,
                                       TsrStatus status) TSR_NOEXCEPT;
/* The variant to use instead of one that cannot be compiled; TSR_NUM_VARIANTS: the launch has
 * failed. */
TSR_EXPORT TsrVariant tsr_family_give_up(TsrFamily *family, TsrVariant variant) TSR_NOEXCEPT;

/* --- NVIDIA GPUs --------------------------------------------------------------------
 *
 * The CUDA driver is opened by the first of these calls, never by loading the library.
 * A failure of the driver is a user error with the id E066. */

/* 1 if there are a driver and a GPU. */
TSR_EXPORT int tsr_cuda_is_available(void) TSR_NOEXCEPT;
TSR_EXPORT TsrStatus tsr_cuda_device_count(int32_t *count) TSR_NOEXCEPT;
/* JSON: {"name", "capability": [9, 0], "multiprocessors", "max_shared_bytes",
 * "max_threads_per_block", "max_grid": [x, y, z], "l2_bytes", "memory_clock_khz",
 * "memory_bus_bits", "driver_version": 13000}. The string belongs to the thread. */
TSR_EXPORT TsrStatus tsr_cuda_device_info(int32_t device, const char **json) TSR_NOEXCEPT;
/* JSON: the architectures that there is code for, the oldest first, as {"name": "sm_90a",
 * "capability": 90, "is_specific", "has_run", "warp_size", "registers" of an SM,
 * "max_registers" of a thread, "shared_bytes" of a block, "shared_bytes_of_sm",
 * "max_threads_of_sm", "max_blocks_of_sm", "max_cluster_size", "instructions": [names], and of an
 * SM and a cycle, in multiply-adds, "mma_rate" of 16-bit operands, "f32_rate", "f16_rate"}. The
 * string lives as long as the library. No driver is needed. */
TSR_EXPORT const char *tsr_gpu_machines(void) TSR_NOEXCEPT;
/* The architecture whose code a GPU of a compute capability runs best; "" if there is none. */
TSR_EXPORT const char *tsr_gpu_machine_for_capability(int32_t major, int32_t minor) TSR_NOEXCEPT;
/* The device that owns the memory; -1 for memory of the host and for unknown memory. */
TSR_EXPORT TsrStatus tsr_cuda_pointer_device(uint64_t address, int32_t *device) TSR_NOEXCEPT;
/* 1 if a device reaches host memory at the same address, as pinned or registered memory. */
TSR_EXPORT int tsr_cuda_reaches(int32_t device, uint64_t address) TSR_NOEXCEPT;
/* Waits until a stream has finished its work (0: the legacy default stream of the device). */
TSR_EXPORT TsrStatus tsr_cuda_synchronize(int32_t device, uint64_t stream) TSR_NOEXCEPT;
/* Makes later work of `stream` wait for what is on `other` now, by an event. The host does not
 * wait. */
TSR_EXPORT TsrStatus tsr_cuda_wait_for_stream(int32_t device, uint64_t stream,
                                              uint64_t other) TSR_NOEXCEPT;
/* Puts a grid on a stream and returns. `args` is as for tsr_kernel_launch, and is read
 * before the call returns. */
TSR_EXPORT TsrStatus tsr_kernel_launch_cuda(TsrKernel *kernel, int32_t device, uint64_t stream,
                                            const int32_t grid[3], const uint64_t *args,
                                            size_t num_args) TSR_NOEXCEPT;

/* The driver's facts about a kernel on a GPU, as JSON: {"num_registers", "local_bytes"} of a
 * thread, "log" of its assembler. Loads the kernel there. Valid until this thread's next call. */
TSR_EXPORT TsrStatus tsr_kernel_device_facts(TsrKernel *kernel, int32_t device,
                                             const char **json) TSR_NOEXCEPT;

/* The expected time of a launch as JSON (Compiler/LaunchEstimate.h). `bytes` has the size of the
 * array behind each argument, -1 where it is unknown. Device -1 is the GPU of the compiler's table.
 * Nothing runs. Valid until this thread's next call. */
TSR_EXPORT TsrStatus tsr_kernel_estimate(TsrKernel *kernel, int32_t device, const int32_t grid[3],
                                         const uint64_t *args, const int64_t *bytes,
                                         size_t num_args, const char **json) TSR_NOEXCEPT;

/* --- Programs that XLA compiles ----------------------------------------------------- */

/* The handler of XLA's foreign function interface that launches kernels, on the CPU or on a stream
 * of a GPU: `XLA_FFI_Error *(XLA_FFI_CallFrame *)`. lib/CAPI/XLA.cpp describes the calls. The
 * version is that of the interface of the process's XLA. Returns null if it is too old or
 * incompatible; XLA itself decides about newer minor versions. */
TSR_EXPORT void *tsr_xla_handler(int32_t on_gpu, int32_t major_version,
                                 int32_t minor_version) TSR_NOEXCEPT;

/* --- The reference interpreter ---------------------------------------------------- */

/* Inserts a check before each access of a module of tile IR, for the interpreter. Changes the
 * module in place. */
TSR_EXPORT TsrStatus tsr_module_check_accesses(TsrModule *module) TSR_NOEXCEPT;
/* Runs a kernel of a module of tile IR with the reference interpreter. `memory` is the memory
 * behind each argument, for the checks; NULL if it is unknown. With `report_wraps`, an offset that
 * wraps during its computation is an error, too (E081). */
TSR_EXPORT TsrStatus tsr_interpret(TsrModule *module, const char *kernel, const int32_t grid[3],
                                   const uint64_t *args, size_t num_args,
                                   const TsrArgumentMemory *memory,
                                   int32_t report_wraps) TSR_NOEXCEPT;

/* --- The simulator of GPU code ----------------------------------------------------- */

/* Lowers a kernel for "cuda" to the stage "llvm", in place. `options` are those of tsr_compile. */
TSR_EXPORT TsrStatus tsr_module_lower_cuda(TsrModule *module, const char *options) TSR_NOEXCEPT;

typedef struct TsrMemory {
  uint64_t begin, end;
  int32_t is_read_only;
  int32_t is_unwritten;   /* it has no values until the kernel writes them */
  uint64_t element_bytes; /* and the argument's name, for the report */
  const char *name;
} TsrMemory;

typedef struct TsrSimulation {
  uint64_t seed;           /* for the order of warps and the arrival of copies */
  int32_t copies;          /* arrive: 0 by the seed, 1 early, 2 late */
  int32_t watch_global;    /* report races in global memory, and reads of unwritten values */
  int32_t multiprocessors; /* of the GPU, for the blocks of a persistent kernel; 0 for two */
} TsrSimulation;

/* Runs a kernel of a module of that stage on the CPU, a warp at a time in an order that
 * `simulation->seed` decides. `memory` is all that it may touch besides its own; with none,
 * nothing is checked. `*report` is JSON, and belongs to the module: {"findings": [{"kind",
 * "kernel", "location", "program", "thread", "address", "message", "count", "array", "element",
 * "text"}], "shared": [{"location", "instruction", "executions", "wavefronts", "ideal"}],
 * "instructions", "lane_operations"}. */
TSR_EXPORT TsrStatus tsr_simulate(TsrModule *module, const char *kernel, const int32_t grid[3],
                                  const uint64_t *args, size_t num_args, const TsrMemory *memory,
                                  size_t num_memory, const TsrSimulation *simulation,
                                  const char **report) TSR_NOEXCEPT;

/* JSON about the host: cpu, features, vector bits, threads, and who provides them. */
TSR_EXPORT const char *tsr_host_info(void) TSR_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_CAPI_TESSERA_H */
