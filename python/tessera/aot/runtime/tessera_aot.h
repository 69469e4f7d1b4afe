/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The calling convention of kernels that `python -m tessera build` compiles, and the small runtime
 * that launches them: C11 and POSIX threads, no LLVM, no Python. docs/HowTo/AheadOfTime.md
 * explains it.
 *
 * A kernel is a C function. It gets a description of the launch, then a value for each parameter of
 * the kernel that is no constant, and returns a status:
 *
 *     tessera_launch launch = tessera_grid(numBlocks, 1, 1);
 *     if (add(&launch, x, 2.0f, out, n) != TESSERA_OK)
 *       fprintf(stderr, "%s\n", tessera_error_text());
 *
 * On the CPU the call returns when the grid is done, on a GPU when it is on the stream. Any thread
 * may call, several at once.
 */
#ifndef TESSERA_AOT_H
#define TESSERA_AOT_H

#include "tessera_limits.h"

#include <stdint.h>

/* Changes when a program that was built with another version of this header would not work. What
 * is generated for one version refuses to compile with another's header, and to link with another
 * version's runtime. */
#define TESSERA_AOT_CONVENTION 4

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tessera_status {
  TESSERA_OK = 0,
  TESSERA_BAD_LAUNCH = 1,    /* a grid that is negative or too large, or no description */
  TESSERA_NO_VARIANT = 2,    /* no specialisation takes these arguments */
  TESSERA_WRONG_MACHINE = 3, /* this CPU or GPU lacks what the code needs */
  TESSERA_ASSERTION = 4,     /* a device_assert did not hold */
  TESSERA_OUT_OF_MEMORY = 5,
  TESSERA_DRIVER = 6 /* the GPU's driver is missing, or refused something */
} tessera_status;

/* What a launch is besides its arguments. */
typedef struct tessera_launch {
  int32_t grid[3];
  int32_t num_threads; /* on a CPU; 0: TESSERA_NUM_THREADS, or one for each CPU */
  void *stream;        /* on a GPU: a CUstream; NULL: the legacy default stream */
} tessera_launch;

static inline tessera_launch tessera_grid(int32_t x, int32_t y, int32_t z) {
  tessera_launch launch = {{0, 0, 0}, 0, 0};
  launch.grid[0] = x;
  launch.grid[1] = y;
  launch.grid[2] = z;
  return launch;
}

/* What is wrong with the last call of this thread that returned something else than TESSERA_OK. */
const char *tessera_error_text(void);

/* --- For generated code -------------------------------------------------------------------- */

/* Runs programs `begin` to `end - 1`. */
typedef int32_t tessera_chunk(const void *launch, int64_t begin, int64_t end, char *scratch);

typedef struct tessera_cpu_kernel {
  const char *name;
  tessera_chunk *run;
  int64_t scratch_bytes;         /* that each thread needs */
  const char *const *assertions; /* the text of each place that can fail */
  int32_t num_assertions;
  int64_t picoseconds;          /* that a program took lately; -1: unknown */
  const tessera_limits *limits; /* NULL: none */
  const char *machine;          /* the row of the table of CPUs that its code was chosen by */
} tessera_cpu_kernel;

typedef struct tessera_gpu_kernel {
  const char *name;
  const char *symbol;
  const void *image;   /* a cubin */
  int32_t capability;  /* 90 */
  int32_t is_specific; /* runs on GPUs of just that capability */
  int32_t num_warps;
  int32_t num_ctas;
  int32_t shared_bytes;
  int32_t num_arguments;
  /* If not 0: so many programs an SM do those of the grid, one after the other. */
  int32_t persistent_programs;
  int32_t num_tables;                 /* at most 16 */
  const int32_t *tables;              /* the first argument of each table of arguments */
  const tessera_limits *limits;       /* NULL: none */
  struct tessera_gpu_module *modules; /* the contexts that have it; belongs to the runtime */
} tessera_gpu_kernel;

/* The name says the convention, so that code and runtime of two versions do not link. */
#define tessera_run_cpu tessera_run_cpu_v4
#define tessera_run_gpu tessera_run_gpu_v4
#define tessera_gpu_fits tessera_gpu_fits_v4
#define tessera_fail tessera_fail_v4
int tessera_run_cpu(tessera_cpu_kernel *kernel, const tessera_launch *launch,
                    const uint64_t *slots);
int tessera_run_gpu(tessera_gpu_kernel *kernel, const tessera_launch *launch, uint64_t *slots);
/* 1, 0, or -1: the driver failed. */
int tessera_gpu_fits(const tessera_gpu_kernel *kernel);
int tessera_fail(int status, const char *format, ...);
/* 1 if the CPU has AMX and Linux lets this process use it, which it asks for in the first call. */
int tessera_may_use_amx(void);
#if defined(__aarch64__)
unsigned long getauxval(unsigned long type);
#define tessera_hardware(type) getauxval(type)
#endif

static inline uint64_t tessera_slot_f32(float value) {
  union {
    float value;
    uint32_t bits;
  } both;
  both.value = value;
  return both.bits;
}

static inline uint64_t tessera_slot_f64(double value) {
  union {
    double value;
    uint64_t bits;
  } both;
  both.value = value;
  return both.bits;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_AOT_H */
