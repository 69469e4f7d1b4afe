/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Launches on the CPU: programs are dealt out in chunks to a pool of threads. The structs that
 * compiled code sees are those of include/tessera/Runtime/Host/KernelABI.h, version 3.
 */
#define _GNU_SOURCE
#include "tessera_aot.h"

#include <fenv.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* --- Errors ----------------------------------------------------------------------------------- */

static _Thread_local char error_text[512];

const char *tessera_error_text(void) { return error_text; }

int tessera_fail(int status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error_text, sizeof(error_text), format, arguments);
  va_end(arguments);
  return status;
}

/* --- Permissions ------------------------------------------------------------------------------ */

static pthread_once_t amx_once = PTHREAD_ONCE_INIT;
static int may_use_amx;

static void request_amx(void) {
#if defined(__linux__) && defined(__x86_64__)
  const long request_permission = 0x1023, tile_data = 18; /* <asm/prctl.h> */
  may_use_amx = syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#endif
}

int tessera_may_use_amx(void) {
  pthread_once(&amx_once, request_amx);
  return may_use_amx;
}

/* --- What compiled code sees -------------------------------------------------------------------
 */

typedef struct fault {
  int32_t raised;
  int32_t site;
  int32_t program[3];
  int64_t offset;
} fault;

typedef struct shared_launch {
  const uint64_t *args;
  int32_t grid[3];
  int32_t reserved;
  fault *fault;
  void *printer;
  uint64_t cached_bytes;
  const void *memory;
} shared_launch;
_Static_assert(offsetof(shared_launch, fault) == 24 && offsetof(shared_launch, cached_bytes) == 40,
               "compiled code relies on these offsets");

/* --- The threads --------------------------------------------------------------------------------
 */

typedef struct job {
  tessera_cpu_kernel *kernel;
  shared_launch launch;
  int64_t num_programs, grain;
  int64_t next;    /* the first program that nobody has taken */
  int32_t stopped; /* after a fault, or without memory */
  int32_t out_of_memory;
} job;

static struct {
  pthread_mutex_t lock;
  pthread_cond_t wake, done;
  job *current;
  uint64_t number; /* of the job */
  int num_wanted;  /* threads that may still join it */
  int num_running; /* that have joined it */
  int num_threads; /* that exist */
} pool = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0, 0, 0};

/* Of the launch that has the pool. One that comes meanwhile runs in its own thread alone. */
static pthread_mutex_t pool_use = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local char *scratch;
static _Thread_local int64_t scratch_size;

static char *reserve_scratch(int64_t bytes) {
  if (bytes <= scratch_size)
    return scratch;
  free(scratch);
  scratch_size = 0;
  size_t rounded = ((size_t)bytes + 63) / 64 * 64;
  scratch = aligned_alloc(64, rounded);
  if (scratch)
    scratch_size = (int64_t)rounded;
  return scratch;
}

static int64_t now_nanoseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void flush_lines(void);

static void run_chunks(job *job) {
  char *memory = NULL;
  if (job->kernel->scratch_bytes > 0 && !(memory = reserve_scratch(job->kernel->scratch_bytes))) {
    __atomic_store_n(&job->out_of_memory, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&job->stopped, 1, __ATOMIC_RELAXED);
    return;
  }
  /* Rounding to nearest, denormals kept, no traps, whatever the program has set. */
#if defined(__x86_64__)
  unsigned before = _mm_getcsr();
  _mm_setcsr(0x1f80);
#else
  fenv_t before;
  fegetenv(&before);
  fesetenv(FE_DFL_ENV);
#endif
  int64_t start = now_nanoseconds(), num_done = 0;
  while (!__atomic_load_n(&job->stopped, __ATOMIC_RELAXED)) {
    int64_t begin = __atomic_fetch_add(&job->next, job->grain, __ATOMIC_RELAXED);
    if (begin >= job->num_programs)
      break;
    int64_t end = begin + job->grain < job->num_programs ? begin + job->grain : job->num_programs;
    if (job->kernel->run(&job->launch, begin, end, memory) != 0)
      __atomic_store_n(&job->stopped, 1, __ATOMIC_RELAXED);
    flush_lines();
    num_done += end - begin;
  }
#if defined(__x86_64__)
  _mm_sfence(); /* non-temporal stores come before what this thread does next */
  _mm_setcsr(before);
#else
  fesetenv(&before);
#endif
  if (num_done > 0)
    __atomic_store_n(&job->kernel->picoseconds, (now_nanoseconds() - start) * 1000 / num_done,
                     __ATOMIC_RELAXED);
}

static void *work(void *unused) {
  (void)unused;
  uint64_t seen = 0;
  pthread_mutex_lock(&pool.lock);
  for (;;) {
    while (pool.num_wanted == 0 || pool.number == seen)
      pthread_cond_wait(&pool.wake, &pool.lock);
    seen = pool.number;
    --pool.num_wanted;
    ++pool.num_running;
    job *job = pool.current;
    pthread_mutex_unlock(&pool.lock);
    run_chunks(job);
    pthread_mutex_lock(&pool.lock);
    if (--pool.num_running == 0)
      pthread_cond_signal(&pool.done);
  }
  return NULL;
}

/* The child of a fork has none of the threads. */
static void forget_threads(void) {
  pthread_mutex_init(&pool.lock, NULL);
  pthread_mutex_init(&pool_use, NULL);
  pthread_cond_init(&pool.wake, NULL);
  pthread_cond_init(&pool.done, NULL);
  pool.num_wanted = pool.num_running = pool.num_threads = 0;
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, forget_threads); }

static void run_on_threads(job *job, int num_threads) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (num_threads <= 1 || pthread_mutex_trylock(&pool_use) != 0) {
    run_chunks(job);
    return;
  }
  pthread_once(&once, watch_forks);
  pthread_mutex_lock(&pool.lock);
  while (pool.num_threads < num_threads - 1) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int failed = pthread_create(&thread, &attributes, work, NULL);
    pthread_attr_destroy(&attributes);
    if (failed)
      break; /* fewer will do */
    ++pool.num_threads;
  }
  pool.current = job;
  ++pool.number;
  pool.num_wanted = num_threads - 1;
  pthread_cond_broadcast(&pool.wake);
  pthread_mutex_unlock(&pool.lock);
  run_chunks(job);
  pthread_mutex_lock(&pool.lock);
  pool.num_wanted = 0; /* who has not joined finds nothing to do */
  while (pool.num_running > 0)
    pthread_cond_wait(&pool.done, &pool.lock);
  pthread_mutex_unlock(&pool.lock);
  pthread_mutex_unlock(&pool_use);
}

static int default_threads(void) {
  const char *given = getenv("TESSERA_NUM_THREADS");
  if (given && atoi(given) > 0)
    return atoi(given);
#if defined(__linux__)
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof(usable), &usable) == 0)
    return CPU_COUNT(&usable);
#endif
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (int)online : 1;
}

/* A launch that writes more than this finds nothing of it in the caches later, and may write past
 * them. Half of the last cache is for what it reads. */
static uint64_t written_bytes_in_cache(void) {
  static uint64_t known;
  uint64_t bytes = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (bytes == 0) {
    long size = -1;
#if defined(_SC_LEVEL3_CACHE_SIZE)
    size = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    bytes = (size > 0 ? (uint64_t)size : (uint64_t)64 << 20) / 2;
    __atomic_store_n(&known, bytes, __ATOMIC_RELAXED);
  }
  return bytes;
}

/* What lies behind the arguments, for kernels that check their accesses: anything. */
static struct {
  int64_t begin, end;
} any_memory[256];

static void describe_memory(void) {
  for (int i = 0; i < 256; ++i)
    any_memory[i].end = INT64_MAX;
}

int tessera_run_cpu(tessera_cpu_kernel *kernel, const tessera_launch *launch,
                    const uint64_t *slots) {
  int64_t num_programs = 1;
  if (!launch)
    return tessera_fail(TESSERA_BAD_LAUNCH, "%s: the launch is not described", kernel->name);
  for (int axis = 0; axis < 3; ++axis)
    if (launch->grid[axis] < 0 ||
        __builtin_mul_overflow(num_programs, (int64_t)launch->grid[axis], &num_programs))
      return tessera_fail(TESSERA_BAD_LAUNCH, "%s: the grid is (%d, %d, %d)", kernel->name,
                          launch->grid[0], launch->grid[1], launch->grid[2]);
  if (num_programs == 0)
    return TESSERA_OK;
  if (kernel->limits && !tessera_accepts(kernel->limits, launch->grid, slots, /*shapes=*/NULL))
    return TESSERA_OUTSIDE_LIMITS;
  fault fault = {0, 0, {0, 0, 0}, 0};
  job job = {0};
  job.kernel = kernel;
  job.launch.args = slots;
  memcpy(job.launch.grid, launch->grid, sizeof(launch->grid));
  job.launch.fault = &fault;
  job.launch.cached_bytes = written_bytes_in_cache();
  if (kernel->num_assertions > 0) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, describe_memory);
    job.launch.memory = any_memory;
  }
  job.num_programs = num_programs;
  /* Another thread wakes up in some 5 microseconds. */
  int64_t expected = __atomic_load_n(&kernel->picoseconds, __ATOMIC_RELAXED);
  int is_tiny = expected >= 0 && (double)expected * (double)num_programs < 5e6;
  int num_threads = 1;
  if (num_programs > 1 && !is_tiny) {
    num_threads = launch->num_threads > 0 ? launch->num_threads : default_threads();
    if (num_threads > num_programs)
      num_threads = (int)num_programs;
  }
  job.grain = num_threads == 1 ? num_programs : num_programs / (8 * (int64_t)num_threads);
  if (job.grain < 1)
    job.grain = 1;
  run_on_threads(&job, num_threads);
  if (job.out_of_memory)
    return tessera_fail(TESSERA_OUT_OF_MEMORY, "%s: no memory for %" PRId64 " bytes of scratch",
                        kernel->name, kernel->scratch_bytes);
  if (fault.raised) {
    const char *text = fault.site >= 0 && fault.site < kernel->num_assertions
                           ? kernel->assertions[fault.site]
                           : "an assertion";
    return tessera_fail(TESSERA_ASSERTION, "%s: assertion failed in program (%d, %d, %d): %s",
                        kernel->name, fault.program[0], fault.program[1], fault.program[2], text);
  }
  return TESSERA_OK;
}

/* --- What compiled code calls --------------------------------------------------------------------
 *
 * Printing gathers the lines of a program, so that they stay together. */

static _Thread_local struct {
  char *text;
  size_t length, capacity;
  const char *prefix;
  int32_t program[3];
  int num_indices, num_values;
} lines;

static void append(const char *format, ...) {
  char text[400]; /* the largest double has 309 digits before its point */
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  if (length < 0)
    return;
  if ((size_t)length >= sizeof(text))
    length = (int)sizeof(text) - 1;
  if (lines.length + (size_t)length > lines.capacity) {
    size_t capacity = 2 * (lines.length + (size_t)length) + 256;
    char *larger = realloc(lines.text, capacity);
    if (!larger)
      return;
    lines.text = larger;
    lines.capacity = capacity;
  }
  memcpy(lines.text + lines.length, text, (size_t)length);
  lines.length += (size_t)length;
}

static void flush_lines(void) {
  if (lines.length == 0)
    return;
  fwrite(lines.text, 1, lines.length, stdout);
  fflush(stdout);
  lines.length = 0;
}

static void begin_value(void) {
  if (lines.num_values++ > 0)
    append(", ");
  else
    append("%s%s", lines.num_indices > 0 ? ")" : " idx ()", lines.prefix);
}

void __tessera_rt_print_begin(void *printer, int32_t x, int32_t y, int32_t z, const char *prefix) {
  (void)printer;
  if (x != lines.program[0] || y != lines.program[1] || z != lines.program[2])
    flush_lines();
  lines.program[0] = x;
  lines.program[1] = y;
  lines.program[2] = z;
  lines.prefix = prefix;
  lines.num_indices = lines.num_values = 0;
  append("pid (%" PRId32 ", %" PRId32 ", %" PRId32 ")", x, y, z);
}

void __tessera_rt_print_index(void *printer, int32_t index, int32_t width) {
  (void)printer;
  append(lines.num_indices++ == 0 ? " idx (%*" PRId32 : ", %*" PRId32, (int)width, index);
}

void __tessera_rt_print_int(void *printer, int64_t value, int32_t bits, int32_t is_signed,
                            int32_t hex) {
  (void)printer;
  begin_value();
  uint64_t mask = bits >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
  if (hex)
    append("0x%0*" PRIx64, (int)(bits + 3) / 4, (uint64_t)value & mask);
  else if (is_signed)
    append("%" PRId64, value);
  else
    append("%" PRIu64, (uint64_t)value & mask);
}

void __tessera_rt_print_float(void *printer, double value, int32_t hex) {
  (void)printer;
  begin_value();
  if (isnan(value))
    append("nan");
  else
    append(hex ? "%a" : "%f", value);
}

void __tessera_rt_print_pointer(void *printer, const void *value) {
  (void)printer;
  begin_value();
  append("%p", value);
}

void __tessera_rt_print_end(void *printer) {
  (void)printer;
  if (lines.num_values == 0)
    append("%s", lines.prefix);
  append("\n");
}

int64_t __tessera_rt_clock_ns(void) { return now_nanoseconds(); }

/* --- Conversions that compilers call
 * ---------------------------------------------------------------
 *
 * Not every compiler's library has them. 16 bits travel in a float's register, in its low half. */

static float low16(uint16_t bits) {
  union {
    uint32_t bits;
    float value;
  } both = {bits};
  return both.value;
}

static uint32_t bits32(float value) {
  union {
    float value;
    uint32_t bits;
  } both = {value};
  return both.bits;
}

/* `value` in a format of 16 bits, rounded to nearest even. */
static uint16_t round_to_16(double value, int exponent_bits, int mantissa_bits) {
  union {
    double value;
    uint64_t bits;
  } both = {value};
  int bias = (1 << (exponent_bits - 1)) - 1;
  uint16_t sign = (uint16_t)(both.bits >> 63 << 15);
  uint64_t infinity = (uint64_t)((1 << exponent_bits) - 1) << mantissa_bits;
  int exponent = (int)(both.bits >> 52 & 0x7ff) - 1023;
  uint64_t fraction = both.bits & (((uint64_t)1 << 52) - 1);
  if (exponent == 1024)
    return (
        uint16_t)(sign | infinity |
                  (fraction ? 1u << (mantissa_bits - 1) | fraction >> (52 - mantissa_bits) : 0));
  if (exponent == -1023)
    return sign;
  uint64_t significand = fraction | (uint64_t)1 << 52;
  int drop = 52 - mantissa_bits, biased = exponent + bias;
  if (biased < 1) {
    drop += 1 - biased;
    biased = 0;
    if (drop > 54)
      return sign;
  }
  uint64_t kept = significand >> drop;
  uint64_t rest = significand & (((uint64_t)1 << drop) - 1), half = (uint64_t)1 << (drop - 1);
  if (rest > half || (rest == half && (kept & 1)))
    ++kept;
  uint64_t magnitude =
      biased == 0 ? kept
                  : ((uint64_t)biased << mantissa_bits) + (kept - ((uint64_t)1 << mantissa_bits));
  return (uint16_t)(sign | (magnitude > infinity ? infinity : magnitude));
}

static float extend_half(float low) {
  uint32_t bits = bits32(low) & 0xffff, sign = bits >> 15 << 31;
  uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  union {
    uint32_t bits;
    float value;
  } both;
  if (exponent == 0)
    return sign ? -((float)fraction * 0x1p-24f) : (float)fraction * 0x1p-24f;
  both.bits = exponent == 0x1f ? sign | 0x7f800000 | fraction << 13 | (fraction ? 1u << 22 : 0)
                               : sign | (exponent + 127 - 15) << 23 | fraction << 13;
  return both.value;
}

#define WEAK __attribute__((weak))
WEAK float __extendhfsf2(float low) { return extend_half(low); }
WEAK double __extendhfdf2(float low) { return extend_half(low); }
WEAK float __truncsfhf2(float value) { return low16(round_to_16(value, 5, 10)); }
WEAK float __truncdfhf2(double value) { return low16(round_to_16(value, 5, 10)); }
WEAK float __truncsfbf2(float value) { return low16(round_to_16(value, 8, 7)); }
WEAK float __truncdfbf2(double value) { return low16(round_to_16(value, 8, 7)); }
