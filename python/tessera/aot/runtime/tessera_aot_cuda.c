/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Launches on NVIDIA's GPUs. The driver is opened by the first one: a program that never launches on
 * a GPU runs without.
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
  CLUSTER_DIMENSION = 4,          /* CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION */
  MAX_DYNAMIC_SHARED = 8,         /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
  CAPABILITY_MAJOR = 75,          /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
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

/* The thread's context; of a thread without one, that of the first GPU which all libraries share. */
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
  struct tessera_gpu_module *next;
};

static pthread_mutex_t modules_lock = PTHREAD_MUTEX_INITIALIZER;

static int find_function(tessera_gpu_kernel *kernel, CUcontext context, CUfunction *function) {
  for (struct tessera_gpu_module *module = kernel->modules; module; module = module->next)
    if (module->context == context) {
      *function = module->function;
      return TESSERA_OK;
    }
  CUmodule loaded;
  int code = driver.cuModuleLoadDataEx(&loaded, kernel->image, 0, NULL, NULL);
  if (code == 0)
    code = driver.cuModuleGetFunction(function, loaded, kernel->symbol);
  if (code == 0 && kernel->shared_bytes > 0)
    code = driver.cuFuncSetAttribute(*function, MAX_DYNAMIC_SHARED, kernel->shared_bytes);
  if (code)
    return fail(kernel, "loading the kernel", code);
  struct tessera_gpu_module *module = malloc(sizeof(*module));
  if (!module)
    return tessera_fail(TESSERA_OUT_OF_MEMORY, "%s: out of memory", kernel->name);
  module->context = context;
  module->function = *function;
  module->next = kernel->modules;
  kernel->modules = module;
  return TESSERA_OK;
}

int tessera_run_gpu(tessera_gpu_kernel *kernel, const tessera_launch *launch, uint64_t *slots) {
  enum { MOST_ARGUMENTS = 256 };
  if (!launch)
    return tessera_fail(TESSERA_BAD_LAUNCH, "%s: the launch is not described", kernel->name);
  for (int axis = 0; axis < 3; ++axis)
    if (launch->grid[axis] < 0)
      return tessera_fail(TESSERA_BAD_LAUNCH, "%s: the grid is (%d, %d, %d)", kernel->name,
                          launch->grid[0], launch->grid[1], launch->grid[2]);
  if (launch->grid[0] == 0 || launch->grid[1] == 0 || launch->grid[2] == 0)
    return TESSERA_OK;
  int64_t blocks = (int64_t)launch->grid[0] * kernel->num_ctas;
  if (blocks > INT32_MAX || launch->grid[1] > 65535 || launch->grid[2] > 65535)
    return tessera_fail(TESSERA_BAD_LAUNCH, "%s: the grid (%d, %d, %d) is larger than a GPU's",
                        kernel->name, launch->grid[0], launch->grid[1], launch->grid[2]);
  CUcontext context;
  CUfunction function = NULL;
  int status = find_context(kernel, &context);
  if (status != TESSERA_OK)
    return status;
  pthread_mutex_lock(&modules_lock);
  status = find_function(kernel, context, &function);
  pthread_mutex_unlock(&modules_lock);
  if (status != TESSERA_OK)
    return status;
  void *arguments[MOST_ARGUMENTS];
  for (int i = 0; i < kernel->num_arguments; ++i)
    arguments[i] = &slots[i];
  unsigned threads = 32u * (unsigned)kernel->num_warps;
  int code;
  if (kernel->num_ctas == 1) {
    code = driver.cuLaunchKernel(function, (unsigned)blocks, (unsigned)launch->grid[1],
                                 (unsigned)launch->grid[2], threads, 1, 1,
                                 (unsigned)kernel->shared_bytes, launch->stream, arguments, NULL);
  } else if (!driver.cuLaunchKernelEx) {
    return tessera_fail(TESSERA_DRIVER, "%s: the CUDA driver is too old for clusters",
                        kernel->name);
  } else {
    launch_attribute cluster = {CLUSTER_DIMENSION, {0}, {{0}}};
    cluster.value.cluster[0] = (uint32_t)kernel->num_ctas;
    cluster.value.cluster[1] = cluster.value.cluster[2] = 1;
    launch_config config = {{(uint32_t)blocks, (uint32_t)launch->grid[1], (uint32_t)launch->grid[2]},
                            {threads, 1, 1},
                            (uint32_t)kernel->shared_bytes,
                            launch->stream,
                            &cluster,
                            1};
    code = driver.cuLaunchKernelEx(&config, function, arguments, NULL);
  }
  return code ? fail(kernel, "the launch", code) : TESSERA_OK;
}
