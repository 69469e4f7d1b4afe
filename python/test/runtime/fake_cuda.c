/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A CUDA driver without a GPU: two devices of capability 9.0, on which launches are noted
 * down and nothing runs. Built as libcuda.so.1 by test_fake_gpu.py, which looks at the notes
 * through ctypes.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  unsigned grid[3], block[3], shared;
  void *stream;
  uint64_t arguments[8];
  uint64_t maps[2][16]; /* of tensor maps behind fake_arguments arguments */
  void *context;
  char name[64];
} Launch;

Launch fake_last;
int fake_launches, fake_loads, fake_waits, fake_inits;
int fake_fail; /* what launches return */
int fake_jit;  /* what assembling PTX returns */
int fake_arguments, fake_maps; /* how many, of kernels with tensor maps */
int fake_fills, fake_bytes, fake_copies, fake_copied, fake_buffers, fake_captured, fake_graphs;
int fake_full;         /* whether there is no memory left */
void *fake_capturing;  /* the stream that is recorded */
double fake_program_ms = 0.001;
static double clock_ms, captured_ms;
static int contexts[2];
static void *current;
static char names[16][64];

/* The calls that order work on streams, in a text: "record 44; wait 0 for 44; launch 0; ". */
char fake_calls[4096];
static int note(const char *call, void *stream) {
  size_t size = strlen(fake_calls);
  return snprintf(fake_calls + size, sizeof fake_calls - size, "%s %zx; ", call, (size_t)stream), 0;
}

int cuInit(unsigned flags) { return fake_inits++, (int)flags; }
int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
int cuDeviceGetCount(int *count) { return *count = 2, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char *name, int length, int device) {
  return snprintf(name, length, "fake GPU %d", device), 0;
}
int fake_attributes;
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device;
  ++fake_attributes;
  switch (attribute) {
  case 75: return *value = 9, 0;
  case 76: return *value = 0, 0;
  case 5: return *value = 0x7fffffff, 0;
  case 6: case 7: return *value = 65535, 0;
  case 97: return *value = 227 * 1024, 0;
  case 16: return *value = 132, 0;
  case 36: return *value = 2619000, 0;
  case 37: return *value = 5120, 0;
  default: return *value = 1024, 0;
  }
}
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = &contexts[device], 0; }
int cuCtxGetCurrent(void **context) { return *context = current, 0; }
int cuCtxGetDevice(int *device) { return *device = current == &contexts[1], 0; }
int cuCtxSetCurrent(void *context) { return current = context, 0; }
int cuModuleLoadDataEx(void **module, const void *image, unsigned n, int *options, void **values) {
  const char *text = image;
  if (!memcmp(image, "\177ELF", 4))
    return *module = &contexts[0], fake_loads++, 0;
  /* PTX, for the driver's own assembler: what it says goes into buffers of so many bytes. */
  if (n == 0 || !strstr(text, ".version"))
    return 200;
  for (unsigned i = 0; i < n; ++i) {
    if (options[i] == 3)
      snprintf(values[i], 1000, "ptxas info : Used 32 registers");
    if (options[i] == 5 && fake_jit)
      snprintf(values[i], 1000, "%s", fake_jit == 218 ? "(C7602) too many" : "line 7; words");
  }
  return *module = &contexts[0], fake_loads++, fake_jit;
}
int cuModuleUnload(void *module) { return module == NULL; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
  (void)module;
  char *kept = names[fake_loads % 16];
  snprintf(kept, 64, "%s", name);
  return *function = kept, 0;
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
  return (void)function, (void)attribute, (void)value, 0;
}
int cuFuncGetAttribute(int *value, int attribute, void *function) {
  return (void)attribute, (void)function, *value = 32, 0;
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **parameters, void **extra) {
  (void)extra;
  if (fake_fail)
    return fake_fail;
  if (gy > 65535 || gz > 65535)
    return 1;
  Launch launch = {{gx, gy, gz}, {bx, by, bz}, shared, stream, {0}, {{0}}, current, {0}};
  for (int i = 0; i < fake_maps; ++i)
    memcpy(launch.maps[i], parameters[fake_arguments + i], 128);
  for (int i = 0; i < 4; ++i)
    memcpy(&launch.arguments[i], parameters[i], sizeof(uint64_t));
  snprintf(launch.name, sizeof launch.name, "%s", (const char *)function);
  fake_last = launch;
  note("launch", stream);
  double took = fake_program_ms * gx * gy * gz;
  if (stream && stream == fake_capturing)
    return fake_captured++, captured_ms += took, 0;
  clock_ms += took;
  return fake_launches++, 0;
}

/* Time passes as programs run and bytes are set or copied; events note it. */
typedef struct {
  double ms;
  void *stream;
} Event;
int fake_events; /* that are not destroyed */
int fake_fail_wait; /* what waiting for an event returns */
int cuEventCreate(Event **event, unsigned flags) {
  return (void)flags, *event = malloc(sizeof(Event)), __atomic_fetch_add(&fake_events, 1, 0) * 0;
}
int cuEventRecord(Event *event, void *stream) {
  *event = (Event){clock_ms, stream};
  return note("record", stream);
}
int cuStreamWaitEvent(void *stream, Event *event, unsigned flags) {
  char call[64];
  snprintf(call, sizeof call, "wait %zx for", (size_t)stream);
  return fake_fail_wait ? fake_fail_wait : note(call, event->stream) + (int)flags;
}
int cuEventElapsedTime(float *milliseconds, Event *start, Event *end) {
  return *milliseconds = (float)(end->ms - start->ms), 0;
}
int cuEventDestroy(Event *event) { return free(event), __atomic_fetch_add(&fake_events, -1, 0) * 0; }
int cuMemAlloc_v2(uint64_t *address, size_t size) {
  if (fake_full)
    return 2;
  return *address = (uint64_t)malloc(size), fake_buffers++, 0;
}
int cuMemFree_v2(uint64_t address) { return free((void *)address), fake_buffers--, 0; }
int cuMemsetD8Async(uint64_t address, unsigned char byte, size_t size, void *stream) {
  (void)address, (void)byte, (void)stream;
  return fake_fills++, fake_bytes += size, clock_ms += 7, 0;
}
/* The memory of GPUs is not there; what is copied is counted. */
int cuMemcpyAsync(uint64_t target, uint64_t source, size_t size, void *stream) {
  (void)target, (void)source, (void)stream;
  return fake_copies++, fake_copied = (int)size, clock_ms += 11, 0;
}
int cuStreamIsCapturing(void *stream, int *status) {
  return *status = stream && stream == fake_capturing, 0;
}
int cuStreamCreate(void **stream, unsigned flags) { return (void)flags, *stream = malloc(8), 0; }
int cuStreamDestroy_v2(void *stream) { return free(stream), 0; }
int cuStreamBeginCapture_v2(void *stream, int mode) {
  return (void)mode, fake_capturing = stream, captured_ms = 0, 0;
}
int cuStreamEndCapture(void *stream, void **graph) {
  (void)stream;
  double *kept = malloc(sizeof(double));
  *kept = captured_ms;
  return *graph = kept, fake_capturing = NULL, 0;
}
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) {
  return (void)flags, *executable = graph, 0;
}
int cuGraphLaunch(double *executable, void *stream) {
  return (void)stream, clock_ms += *executable, fake_graphs++, 0;
}
int cuGraphExecDestroy(void *executable) { return (void)executable, 0; }
int cuGraphDestroy(void *graph) { return free(graph), 0; }

typedef struct {
  unsigned grid[3], block[3], shared;
  void *stream;
  struct { int id, pad; int value[16]; } * attributes;
  unsigned count;
} Config;
int fake_early; /* launches that may begin before the one in front of them has ended */
int fake_cluster; /* blocks of a cluster of the last launch; 1 where there was none */
int fake_clusters_asked;     /* how often it was asked how many clusters fit, */
int fake_fitting = -1;       /* and what the answer is, but for that of its groups of SMs */
int fake_most_blocks = 8;    /* of a cluster: of more the question is an error */
int fake_groups[8] = {18, 16, 18, 16, 16, 16, 16, 16};
static int get_cluster(const Config *config) {
  for (unsigned i = 0; i < config->count; ++i)
    if (config->attributes[i].id == 4)
      return config->attributes[i].value[1] == 1 && config->attributes[i].value[2] == 1
                 ? config->attributes[i].value[0] : -1;
  return 1;
}
int cuOccupancyMaxActiveClusters(int *count, void *function, const Config *config) {
  (void)function;
  if (config->grid[0] % get_cluster(config) || get_cluster(config) > fake_most_blocks)
    return 1;
  fake_clusters_asked++;
  *count = fake_fitting < 0 ? 0 : fake_fitting;
  /* Of blocks with less than half of its shared memory an SM has several. */
  unsigned several = config->shared > 114 << 10 ? 1 : (228 << 10) / (config->shared + 1024);
  for (unsigned i = 0; fake_fitting < 0 && i < sizeof fake_groups / sizeof *fake_groups; ++i)
    *count += fake_groups[i] * several / get_cluster(config);
  return 0;
}
int cuLaunchKernelEx(const Config *config, void *function, void **parameters, void **extra) {
  const unsigned *grid = config->grid, *block = config->block;
  for (unsigned i = 0; i < config->count; ++i)
    fake_early += config->attributes[i].id == 6 && config->attributes[i].value[0];
  fake_cluster = get_cluster(config);
  if (grid[0] % fake_cluster)
    return 1;
  return cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                        config->shared, config->stream, parameters, extra);
}
/* The map is a note of what it was made of, and refused as the driver refuses. */
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *base, const uint64_t *extents,
                           const uint64_t *strides, const unsigned *box, const unsigned *steps,
                           int interleave, int swizzle, int promotion, int fill) {
  (void)steps;
  uint64_t *words = map;
  if ((uint64_t)map % 64 || (uint64_t)base % 16 || rank > 5 || interleave || fill)
    return 1;
  memset(words, 0, 128);
  words[0] = type | rank << 8 | swizzle << 16 | promotion << 24;
  words[1] = (uint64_t)base;
  for (unsigned i = 0; i < rank; ++i) {
    if (extents[i] == 0 || extents[i] > (uint64_t)1 << 32 || box[i] > 256 ||
        (i && strides[i - 1] % 16))
      return 1;
    if (i < 4)
      words[2 + i] = extents[i], words[6 + i] = i ? strides[i - 1] : 0, words[10 + i] = box[i];
  }
  return 0;
}
int cuStreamSynchronize(void *stream) { return fake_waits++, note("synchronize", stream); }
int cuThreadExchangeStreamCaptureMode(int *mode) { return *mode = 2 - *mode, 0; }
int fake_pinned_asked;
int cuPointerGetAttribute(void *value, int attribute, uint64_t pointer) {
  /* From 2^39 on there is pinned memory of the host, which GPUs see elsewhere from 2^39 + 2^38 on. */
  const uint64_t pinned = (uint64_t)1 << 39, elsewhere = pinned + ((uint64_t)1 << 38);
  if (pointer >= pinned && pointer < 2 * pinned) {
    if (attribute == 2)
      return fake_pinned_asked++, *(unsigned *)value = 1, 0;
    if (attribute != 3 || !current)
      return 1;
    return *(uint64_t *)value = pointer + (pointer >= elsewhere ? 4096 : 0), 0;
  }
  /* Addresses from 2^40 on belong to the first GPU, from 2^41 on to the second. */
  if (pointer < (uint64_t)1 << 40)
    return 1;
  if (attribute == 2)
    return *(unsigned *)value = 2, 0;
  return *(int *)value = pointer >= (uint64_t)1 << 41, 0;
}
int cuGetErrorName(int error, const char **name) {
  return *name = error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER", 0;
}
int cuGetErrorString(int error, const char **text) { return *text = "fake", error * 0; }
