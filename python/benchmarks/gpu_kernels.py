# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels that python/benchmarks/gpu.py measures, written once for every compiler.

Not a module to import: `gpu.load_kernels` runs this text with `jit` and `tl` of Tessera or
of Triton. So nothing here may be peculiar to one of them.
"""

@jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@jit
def add_many(
    a, b, c, d, e, f, g, h, i, j, k, l, m, o, out_ptr, n, w, x, y, z, BLOCK: tl.constexpr
):  # fmt: skip
    """For launches with many arguments, all of which are used."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.zeros((BLOCK,), dtype=tl.float32) + (w + x + y + z)
    total += tl.load(a + offsets, mask) + tl.load(b + offsets, mask) + tl.load(c + offsets, mask)
    total += tl.load(d + offsets, mask) + tl.load(e + offsets, mask) + tl.load(f + offsets, mask)
    total += tl.load(g + offsets, mask) + tl.load(h + offsets, mask) + tl.load(i + offsets, mask)
    total += tl.load(j + offsets, mask) + tl.load(k + offsets, mask) + tl.load(l + offsets, mask)
    total += tl.load(m + offsets, mask) + tl.load(o + offsets, mask)
    tl.store(out_ptr + offsets, total, mask=mask)


@jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * columns
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + start + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    y = e / tl.sum(e, axis=0)
    tl.store(out_ptr + start + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)


@jit
def rms_norm(x_ptr, w_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * columns
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + start + offsets, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / columns + eps)
    tl.store(out_ptr + start + offsets, (x * scale * w).to(out_ptr.dtype.element_ty), mask=mask)


@jit
def layer_norm(
    x_ptr,
    w_ptr,
    b_ptr,
    out_ptr,
    mean_ptr,
    rstd_ptr,
    columns,
    eps,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    start = row.to(tl.int64) * columns
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + start + offsets, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    y = centred * rstd * w + b
    tl.store(out_ptr + start + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@jit
def layer_norm_backward(
    x_ptr, w_ptr, grad_ptr, mean_ptr, rstd_ptr, grad_x_ptr, partial_w_ptr, partial_b_ptr,
    rows, columns, BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    total_w = tl.zeros((BLOCK,), tl.float32)
    total_b = tl.zeros((BLOCK,), tl.float32)
    for row in range(program, rows, tl.num_programs(0)):
        start = row.to(tl.int64) * columns
        x = tl.load(x_ptr + start + offsets, mask=mask, other=0.0).to(tl.float32)
        grad = tl.load(grad_ptr + start + offsets, mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + row)
        rstd = tl.load(rstd_ptr + row)
        normal = tl.where(mask, (x - mean) * rstd, 0.0)
        scaled = grad * w
        mean_scaled = tl.sum(scaled, axis=0) / columns
        mean_product = tl.sum(scaled * normal, axis=0) / columns
        grad_x = (scaled - mean_scaled - normal * mean_product) * rstd
        tl.store(grad_x_ptr + start + offsets, grad_x.to(grad_x_ptr.dtype.element_ty), mask=mask)
        total_w += grad * normal
        total_b += grad
    at = program * columns + offsets
    tl.store(partial_w_ptr + at, total_w, mask=mask)
    tl.store(partial_b_ptr + at, total_b, mask=mask)


@jit
def transpose(x_ptr, out_ptr, rows, columns, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    i = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    j = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (i[:, None] < rows) & (j[None, :] < columns)
    x = tl.load(x_ptr + i[:, None] * columns + j[None, :], mask=mask)
    mask_out = (j[:, None] < columns) & (i[None, :] < rows)
    tl.store(out_ptr + j[:, None] * rows + i[None, :], tl.trans(x), mask=mask_out)


@jit
def sum_rows(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row.to(tl.int64) * columns + offsets, mask=offsets < columns, other=0)
    tl.store(out_ptr + row, tl.sum(x.to(out_ptr.dtype.element_ty), axis=0))


@jit
def sum_columns(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = tl.arange(0, ROWS)
    total = tl.zeros((ROWS, BLOCK), out_ptr.dtype.element_ty)
    for start in range(0, rows, ROWS):
        at = (start + i)[:, None].to(tl.int64) * columns + j[None, :]
        mask = ((start + i)[:, None] < rows) & (j[None, :] < columns)
        total += tl.load(x_ptr + at, mask=mask, other=0).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + j, tl.sum(total, axis=0), mask=j < columns)


@jit
def cumsum(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * columns
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + start + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + start + offsets, tl.cumsum(x, axis=0), mask=mask)


@jit
def argmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row.to(tl.int64) * columns + offsets, mask=mask, other=-float("inf"))
    tl.store(out_ptr + row, tl.argmax(x, axis=0))


@jit
def topk(x_ptr, out_ptr, columns, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row.to(tl.int64) * columns + offsets, mask=mask, other=-float("inf"))
    tl.store(out_ptr + row * K + tl.arange(0, K), tl.topk(x, K))
