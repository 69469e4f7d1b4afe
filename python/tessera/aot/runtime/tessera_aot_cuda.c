/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Launches on NVIDIA's GPUs. The driver is opened by the first one: a program that never launches
 * on a GPU runs without.
 */
#define _GNU_SOURCE
#include "tessera_aot.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

typedef void *CUcontext, *CUmodule, *CUfunction, *CUstream;

typedef struct launch_attribute {
  int32_t id;
  char padding[4];
  union {
    char bytes[64];
    uint32_t cluster[3];
  } value;
} launch_attribute;

typedef struct launch_config {
  uint32_t grid[3], block[3];
  uint32_t shared_bytes;
  CUstream stream;
  launch_attribute *attributes;
  uint32_t num_attributes;
} launch_config;
_Static_assert(sizeof(launch_attribute) == 72 && offsetof(launch_config, attributes) == 40,
               "the driver has laid these out");

enum {
  CLUSTER_DIMENSION = 4,     /* CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION */
  MAX_DYNAMIC_SHARED = 8,    /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
  MULTIPROCESSOR_COUNT = 16, /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */
  CAPABILITY_MAJOR = 75,     /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
  CAPABILITY_MINOR = 76,
  NO_BINARY_FOR_GPU = 209
};

static struct {
  int (*cuInit)(unsigned);
  int (*cuGetErrorString)(int, const char **);
  int (*cuCtxGetCurrent)(CUcontext *);
  int (*cuCtxSetCurrent)(CUcontext);
  int (*cuCtxGetDevice)(int *);
  int (*cuDeviceGet)(int *, int);
  int (*cuDeviceGetAttribute)(int *, int, int);
  int (*cuDevicePrimaryCtxRetain)(CUcontext *, int);
  int (*cuModuleLoadDataEx)(CUmodule *, const void *, unsigned, int *, void **);
  int (*cuModuleGetFunction)(CUfunction *, CUmodule, const char *);
  int (*cuFuncSetAttribute)(CUfunction, int, int);
  int (*cuLaunchKernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void **, void **);
  int (*cuLaunchKernelEx)(const launch_config *, CUfunction, void **, void **);
  int (*cuOccupancyMaxActiveClusters)(int *, CUfunction, const launch_config *);
  int (*cuTensorMapEncodeTiled)(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,
                                const uint32_t *, const uint32_t *, int, int, int, int);
} driver;

static const char *driver_problem;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;

static void open_driver(void) {
  static const struct {
    const char *name;
    size_t place;
    int is_optional;
  } functions[] = {
      {"cuInit", offsetof(__typeof__(driver), cuInit), 0},
      {"cuGetErrorString", offsetof(__typeof__(driver), cuGetErrorString), 0},
      {"cuCtxGetCurrent", offsetof(__typeof__(driver), cuCtxGetCurrent), 0},
      {"cuCtxSetCurrent", offsetof(__typeof__(driver), cuCtxSetCurrent), 0},
      {"cuCtxGetDevice", offsetof(__typeof__(driver), cuCtxGetDevice), 0},
      {"cuDeviceGet", offsetof(__typeof__(driver), cuDeviceGet), 0},
      {"cuDeviceGetAttribute", offsetof(__typeof__(driver), cuDeviceGetAttribute), 0},
      {"cuDevicePrimaryCtxRetain", offsetof(__typeof__(driver), cuDevicePrimaryCtxRetain), 0},
      {"cuModuleLoadDataEx", offsetof(__typeof__(driver), cuModuleLoadDataEx), 0},
      {"cuModuleGetFunction", offsetof(__typeof__(driver), cuModuleGetFunction), 0},
      {"cuFuncSetAttribute", offsetof(__typeof__(driver), cuFuncSetAttribute), 0},
      {"cuLaunchKernel", offsetof(__typeof__(driver), cuLaunchKernel), 0},
      {"cuLaunchKernelEx", offsetof(__typeof__(driver), cuLaunchKernelEx), 1},
      {"cuOccupancyMaxActiveClusters", offsetof(__typeof__(driver), cuOccupancyMaxActiveClusters),
       1},
      {"cuTensorMapEncodeTiled", offsetof(__typeof__(driver), cuTensorMapEncodeTiled), 1},
  };
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    driver_problem = "no CUDA driver is installed";
    return;
  }
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i) {
    void *found = dlsym(library, functions[i].name);
    if (!found && !functions[i].is_optional)
      driver_problem = "the CUDA driver is too old";
    *(void **)((char *)&driver + functions[i].place) = found;
  }
  if (!driver_problem && driver.cuInit(0) != 0)
    driver_problem = "the CUDA driver finds no GPU";
}

static int fail(const tessera_gpu_kernel *kernel, const char *doing, int code) {
  const char *text = NULL;
  driver.cuGetErrorString(code, &text);
  return tessera_fail(code == NO_BINARY_FOR_GPU ? TESSERA_WRONG_MACHINE : TESSERA_DRIVER,
                      "%s: %s failed: %s", kernel->name, doing, text ? text : "unknown error");
}

/* The thread's context; of a thread without one, that of the first GPU which all libraries share.
 */
static int find_context(const tessera_gpu_kernel *kernel, CUcontext *context) {
  pthread_once(&driver_once, open_driver);
  if (driver_problem)
    return tessera_fail(TESSERA_DRIVER, "%s: %s", kernel->name, driver_problem);
  int code = driver.cuCtxGetCurrent(context);
  if (code == 0 && !*context) {
    int device = 0;
    code = driver.cuDeviceGet(&device, 0);
    if (code == 0)
      code = driver.cuDevicePrimaryCtxRetain(context, device);
    if (code == 0)
      code = driver.cuCtxSetCurrent(*context);
  }
  return code ? fail(kernel, "asking for a context", code) : TESSERA_OK;
}

int tessera_gpu_fits(const tessera_gpu_kernel *kernel) {
  CUcontext context;
  int device = 0, major = 0, minor = 0;
  if (find_context(kernel, &context) != TESSERA_OK)
    return -1;
  int code = driver.cuCtxGetDevice(&device);
  if (code == 0)
    code = driver.cuDeviceGetAttribute(&major, CAPABILITY_MAJOR, device);
  if (code == 0)
    code = driver.cuDeviceGetAttribute(&minor, CAPABILITY_MINOR, device);
  if (code != 0) {
    fail(kernel, "asking for the GPU's capability", code);
    return -1;
  }
  int capability = 10 * major + minor;
  return kernel->is_specific ? capability == kernel->capability
                             : major == kernel->capability / 10 && capability >= kernel->capability;
}

struct tessera_gpu_module {
  CUcontext context;
  CUfunction function;
  int most_blocks; /* of a persistent kernel: so many clusters run at once; at least 1 */
  struct tessera_gpu_module *next;
};

static pthread_mutex_t modules_lock = PTHREAD_MUTEX_INITIALIZER;

/* What a launch says of the clusters of a kernel, which lie along the first axis of the grid. */
static launch_attribute cluster_of(const tessera_gpu_kernel *kernel) {
  launch_attribute cluster = {CLUSTER_DIMENSION, {0}, {{0}}};
  cluster.value.cluster[0] = (uint32_t)kernel->num_ctas;
  cluster.value.cluster[1] = cluster.value.cluster[2] = 1;
  return cluster;
}

/* How many clusters of a persistent kernel (blocks, where it has none) run at once. */
static int count_blocks(const tessera_gpu_kernel *kernel, CUfunction function, int *count) {
  int device = 0, multiprocessors = 0, fitting = 0;
  int code = driver.cuCtxGetDevice(&device);
  if (code == 0)
    code = driver.cuDeviceGetAttribute(&multiprocessors, MULTIPROCESSOR_COUNT, device);
  *count = kernel->persistent_programs * multiprocessors / kernel->num_ctas;
  /* Not all SMs have neighbours enough for a cluster. */
  if (code == 0 && kernel->num_ctas > 1 && driver.cuOccupancyMaxActiveClusters) {
    launch_attribute cluster = cluster_of(kernel);
    launch_config config = {{(uint32_t)kernel->num_ctas, 1, 1},
                            {32u * (uint32_t)kernel->num_warps, 1, 1},
                            (uint32_t)kernel->shared_bytes,
                            NULL,
                            &cluster,
                            1};
    code = driver.cuOccupancyMaxActiveClusters(&fitting, function, &config);
    if (fitting > 0 && fitting < *count)
      *count = fitting;
  }
  if (*count < 1)
    *count = 1;
  return code;
}

static int find_module(tessera_gpu_kernel *kernel, CUcontext context,
                       const struct tessera_gpu_module **found) {
  for (struct tessera_gpu_module *module = kernel->modules; module; module = module->next)
    if (module->context == context) {
      *found = module;
      return TESSERA_OK;
    }
  CUmodule loaded;
  CUfunction function = NULL;
  int most_blocks = 0;
  int code = driver.cuModuleLoadDataEx(&loaded, kernel->image, 0, NULL, NULL);
  if (code == 0)
    code = driver.cuModuleGetFunction(&function, loaded, kernel->symbol);
  if (code == 0 && kernel->shared_bytes > 0)
    code = driver.cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, kernel->shared_bytes);
  if (code == 0 && kernel->persistent_programs)
    code = count_blocks(kernel, function, &most_blocks);
  if (code)
    return fail(kernel, "loading the kernel", code);
  struct tessera_gpu_module *module = malloc(sizeof(*module));
  if (!module)
    return tessera_fail(TESSERA_OUT_OF_MEMORY, "%s: out of memory", kernel->name);
  module->context = context;
  module->function = function;
  module->most_blocks = most_blocks;
  module->next = kernel->modules;
  *found = kernel->modules = module;
  return TESSERA_OK;
}

typedef struct tensor_map {
  _Alignas(64) uint64_t words[16];
} tensor_map;

/* 0 if the driver makes no such map. */
static int encode(const tessera_tensor_map *recipe, const tessera_shape *shape, tensor_map *map) {
  enum { NO_INTERLEAVE = 0, ZEROS_OUTSIDE = 0, PROMOTE_128 = 2, PROMOTE_256 = 3 };
  static const uint32_t dense[5] = {1, 1, 1, 1, 1};
  if (!driver.cuTensorMapEncodeTiled)
    return 0;
  int swizzle = 0; /* CU_TENSOR_MAP_SWIZZLE_NONE, _32B, _64B, _128B */
  for (int bytes = recipe->swizzle_bytes; bytes >= 32; bytes /= 2)
    ++swizzle;
  int is_long = shape->box[0] * (uint32_t)recipe->array.element_bytes >= 128;
  return driver.cuTensorMapEncodeTiled(
             map, recipe->element, (uint32_t)recipe->array.rank, (void *)(uintptr_t)shape->base,
             shape->extents, shape->strides + 1, shape->box, dense, NO_INTERLEAVE, swizzle,
             is_long ? PROMOTE_256 : PROMOTE_128, ZEROS_OUTSIDE) == 0;
}

int tessera_run_gpu(tessera_gpu_kernel *kernel, const tessera_launch *launch, uint64_t *slots) {
  enum { MOST_ARGUMENTS = 256, MOST_MAPS = 16, MOST_TABLES = 16 };
  if (!launch)
    return tessera_fail(TESSERA_BAD_LAUNCH, "%s: the launch is not described", kernel->name);
  for (int axis = 0; axis < 3; ++axis)
    if (launch->grid[axis] < 0)
      return tessera_fail(TESSERA_BAD_LAUNCH, "%s: the grid is (%d, %d, %d)", kernel->name,
                          launch->grid[0], launch->grid[1], launch->grid[2]);
  if (launch->grid[0] == 0 || launch->grid[1] == 0 || launch->grid[2] == 0)
    return TESSERA_OK;
  const tessera_limits *limits = kernel->limits;
  tessera_shape shapes[MOST_MAPS];
  if (limits && !tessera_accepts(limits, launch->grid, slots, shapes))
    return TESSERA_OUTSIDE_LIMITS;
  CUcontext context;
  const struct tessera_gpu_module *module = NULL;
  int status = find_context(kernel, &context);
  if (status != TESSERA_OK)
    return status;
  pthread_mutex_lock(&modules_lock);
  status = find_module(kernel, context, &module);
  pthread_mutex_unlock(&modules_lock);
  if (status != TESSERA_OK)
    return status;
  int32_t grid[3] = {launch->grid[0], launch->grid[1], launch->grid[2]};
  void *arguments[MOST_ARGUMENTS + 3 + MOST_MAPS + MOST_TABLES], **next = arguments;
  tensor_map maps[MOST_MAPS];
  for (int i = 0; i < kernel->num_arguments; ++i)
    *next++ = &slots[i];
  int64_t clusters = grid[0];
  if (kernel->persistent_programs) {
    int64_t programs = (int64_t)grid[0] * grid[1] * grid[2];
    for (int axis = 0; axis < 3; ++axis)
      *next++ = &grid[axis];
    clusters = programs < module->most_blocks ? programs : module->most_blocks;
  }
  for (int i = 0; limits && i < limits->num_maps; ++i) {
    if (!encode(&limits->maps[i], &shapes[i], &maps[i]))
      return TESSERA_OUTSIDE_LIMITS;
    *next++ = &maps[i];
  }
  for (int i = 0; i < kernel->num_tables; ++i)
    *next++ = &slots[kernel->tables[i]];
  int64_t blocks = clusters * kernel->num_ctas;
  unsigned rows = kernel->persistent_programs ? 1 : (unsigned)grid[1];
  unsigned planes = kernel->persistent_programs ? 1 : (unsigned)grid[2];
  if (blocks > INT32_MAX || rows > 65535 || planes > 65535)
    return tessera_fail(TESSERA_BAD_LAUNCH, "%s: the grid (%d, %d, %d) is larger than a GPU's",
                        kernel->name, grid[0], grid[1], grid[2]);
  unsigned threads = 32u * (unsigned)kernel->num_warps;
  int code;
  if (kernel->num_ctas == 1) {
    code = driver.cuLaunchKernel(module->function, (unsigned)blocks, rows, planes, threads, 1, 1,
                                 (unsigned)kernel->shared_bytes, launch->stream, arguments, NULL);
  } else if (!driver.cuLaunchKernelEx) {
    return tessera_fail(TESSERA_DRIVER, "%s: the CUDA driver is too old for clusters",
                        kernel->name);
  } else {
    launch_attribute cluster = cluster_of(kernel);
    launch_config config = {{(uint32_t)blocks, rows, planes},
                            {threads, 1, 1},
                            (uint32_t)kernel->shared_bytes,
                            launch->stream,
                            &cluster,
                            1};
    code = driver.cuLaunchKernelEx(&config, module->function, arguments, NULL);
  }
  return code ? fail(kernel, "the launch", code) : TESSERA_OK;
}
