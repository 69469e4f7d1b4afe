/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The same on a GPU, with NVIDIA's driver API:
 *
 *     python -m tessera build kernels.py:scale --name kernels -o out_gpu --target sm_90a \
 *         -s "*fp32:16, fp32, *fp32:16, i32:16, 1024" -s "*fp32, fp32, *fp32, i32, 1024"
 *     cc -O2 -Iout_gpu -I$CUDA_HOME/include main_gpu.c out_gpu/*.c -ldl -lm -lpthread -lcuda -o main_gpu
 */
#include "kernels.h"

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                \
  do {                                                                                             \
    if ((call) != 0) {                                                                             \
      fprintf(stderr, "%s failed: %s\n", #call, tessera_error_text());                             \
      return 1;                                                                                    \
    }                                                                                              \
  } while (0)

int main(void) {
  enum { COUNT = 1000003 };
  float *x = malloc(COUNT * sizeof(float)), *out = malloc(COUNT * sizeof(float));
  for (int i = 0; i < COUNT; ++i)
    x[i] = (float)(i % 17);
  CUdevice device;
  CUcontext context;
  CUstream stream;
  CUdeviceptr onGPU, result;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemAlloc(&onGPU, COUNT * sizeof(float)));
  CHECK(cuMemAlloc(&result, COUNT * sizeof(float)));
  CHECK(cuMemcpyHtoD(onGPU, x, COUNT * sizeof(float)));

  tessera_launch launch = tessera_grid((COUNT + 1023) / 1024, 1, 1);
  launch.stream = stream;
  for (int offset = 0; offset < 2; ++offset) { /* aligned, and not */
    CHECK(scale(&launch, (const float *)onGPU + offset, 2.0f, (float *)result, COUNT - offset));
    CHECK(cuMemcpyDtoHAsync(out, result, COUNT * sizeof(float), stream));
    CHECK(cuStreamSynchronize(stream));
    for (int i = 0; i < COUNT - offset; ++i)
      if (out[i] != 2 * x[i + offset])
        return 1;
  }
  puts("right");
  return 0;
}
