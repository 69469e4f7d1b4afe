// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Multi-scale deformable attention. Forward as one would write it first: a thread an element of
// the output. Backward as Deformable DETR has it: a block for the channels of a query's head, which
// adds to the gradient of the maps by atomics, and sums up over channels in shared memory. What
// gpu.py compares the Tessera kernels with; compiled there with nvcc.

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

/// A block of `dim` threads, a power of two, for a batch, query and head.
static __global__ void backward(const float *value, const long *shapes, const long *starts,
                                const float *loc, const float *attn, const float *grad_out,
                                float *grad_value, float *grad_loc, float *grad_attn, int positions,
                                int queries, int heads, int dim, int levels, int points) {
  extern __shared__ float sums[]; // of the weight's gradient, of x's and of y's
  size_t item = blockIdx.x;
  int channel = threadIdx.x, head = item % heads;
  size_t n = item / heads / queries;
  int stride = heads * dim;
  float grad = grad_out[item * dim + channel];
  for (int level = 0; level < levels; ++level) {
    int height = shapes[2 * level], width = shapes[2 * level + 1];
    size_t first = (n * positions + starts[level]) * stride + head * dim + channel;
    const float *map = value + first;
    float *grad_map = grad_value + first;
    for (int point = 0; point < points; ++point) {
      size_t at = (item * levels + level) * points + point;
      float weight = attn[at];
      float x = loc[2 * at] * width - 0.5f, y = loc[2 * at + 1] * height - 0.5f;
      int column = floorf(x), row = floorf(y);
      float dx = x - column, dy = y - row;
      float v[2][2];
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) {
          int r = row + i, c = column + j;
          v[i][j] = pixel(map, r, c, height, width, stride);
          if (r >= 0 && r < height && c >= 0 && c < width)
            atomicAdd(grad_map + (size_t(r) * width + c) * stride,
                      (i ? dy : 1 - dy) * (j ? dx : 1 - dx) * weight * grad);
        }
      float upper = v[0][0] + dx * (v[0][1] - v[0][0]), lower = v[1][0] + dx * (v[1][1] - v[1][0]);
      float along_x = (1 - dy) * (v[0][1] - v[0][0]) + dy * (v[1][1] - v[1][0]);
      sums[channel] = grad * (upper + dy * (lower - upper));
      sums[dim + channel] = width * weight * grad * along_x;
      sums[2 * dim + channel] = height * weight * grad * (lower - upper);
      __syncthreads();
      for (int half = dim / 2; half > 0; half /= 2) {
        if (channel < half)
          for (int i = 0; i < 3; ++i)
            sums[i * dim + channel] += sums[i * dim + channel + half];
        __syncthreads();
      }
      if (channel == 0) {
        grad_attn[at] = sums[0];
        grad_loc[2 * at] = sums[dim];
        grad_loc[2 * at + 1] = sums[2 * dim];
      }
      __syncthreads();
    }
  }
}

extern "C" int deformable_backward(void *stream, const float *value, const long *shapes,
                                   const long *starts, const float *loc, const float *attn,
                                   const float *grad_out, float *grad_value, float *grad_loc,
                                   float *grad_attn, int batch, int positions, int queries,
                                   int heads, int dim, int levels, int points) {
  backward<<<batch * queries * heads, dim, 3 * dim * sizeof(float),
             static_cast<cudaStream_t>(stream)>>>(value, shapes, starts, loc, attn, grad_out,
                                                  grad_value, grad_loc, grad_attn, positions,
                                                  queries, heads, dim, levels, points);
  return cudaGetLastError();
}
