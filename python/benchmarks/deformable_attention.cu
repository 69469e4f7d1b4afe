// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Multi-scale deformable attention, forward, as one would write it first: a thread an element
// of the output. What gpu.py compares the Tessera kernel with; compiled there with nvcc.

#include <cuda_runtime.h>

static __device__ float pixel(const float *map, int row, int column, int height, int width,
                              int stride) {
  bool inside = row >= 0 && row < height && column >= 0 && column < width;
  return inside ? map[(size_t(row) * width + column) * stride] : 0.0f;
}

static __global__ void forward(const float *value, const long *shapes, const long *starts,
                               const float *loc, const float *attn, float *out, int batch,
                               int positions, int queries, int heads, int dim, int levels,
                               int points) {
  size_t index = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= size_t(batch) * queries * heads * dim)
    return;
  int channel = index % dim;
  size_t item = index / dim; // batch, query, head
  int head = item % heads;
  size_t n = item / heads / queries;
  int stride = heads * dim;
  float sum = 0;
  for (int level = 0; level < levels; ++level) {
    int height = shapes[2 * level], width = shapes[2 * level + 1];
    const float *map = value + (n * positions + starts[level]) * stride + head * dim + channel;
    for (int point = 0; point < points; ++point) {
      size_t at = (item * levels + level) * points + point;
      float x = loc[2 * at] * width - 0.5f, y = loc[2 * at + 1] * height - 0.5f;
      int column = floorf(x), row = floorf(y);
      float dx = x - column, dy = y - row;
      float top = (1 - dx) * pixel(map, row, column, height, width, stride) +
                  dx * pixel(map, row, column + 1, height, width, stride);
      float bottom = (1 - dx) * pixel(map, row + 1, column, height, width, stride) +
                     dx * pixel(map, row + 1, column + 1, height, width, stride);
      sum += attn[at] * ((1 - dy) * top + dy * bottom);
    }
  }
  out[index] = sum;
}

extern "C" int deformable_forward(void *stream, const float *value, const long *shapes,
                                  const long *starts, const float *loc, const float *attn,
                                  float *out, int batch, int positions, int queries, int heads,
                                  int dim, int levels, int points) {
  size_t total = size_t(batch) * queries * heads * dim;
  forward<<<(total + 255) / 256, 256, 0, static_cast<cudaStream_t>(stream)>>>(
      value, shapes, starts, loc, attn, out, batch, positions, queries, heads, dim, levels, points);
  return cudaGetLastError();
}
