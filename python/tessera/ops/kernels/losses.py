# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cross entropy and negative log likelihood: a loss and a weight for each line of classes.

A target outside of the classes that is not the ignored one has a loss of NaN, and a gradient of NaN.
"""

from __future__ import annotations

import tessera.language as tl
from tessera.ops.kernels.lines import first_line, lane_offsets, line_number
from tessera.ops.kernels.softmaxes import line_statistics
from tessera.runtime.jit import jit


@jit
def cross_entropy_kernel(x, targets, weight, loss, total_weight, logsum, ignored, smoothing: tl.float64,
                         z: tl.float64, length, lanes, lane_stride, stride, slab_stride, blocks,
                         LANES: tl.constexpr, BLOCK: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """Computes the losses of targets that are numbers of classes."""
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += first
    offsets, in_lane = lane_offsets(lanes, lane, lane_stride, LANES)
    top, total = line_statistics(x, offsets, in_lane, length, stride, ACC, BLOCK)
    log_total = top + tl.log(total)

    # The smoothed part is the mean of all classes' losses, each with its weight.
    spread = tl.zeros((LANES, 1), ACC)
    if smoothing != 0:
        for start in range(0, length, BLOCK):
            i = start + tl.arange(0, BLOCK)[None, :]
            mask = in_lane & (i < length)
            value = log_total - tl.load(x + offsets + i * stride, mask=mask).to(ACC)
            if weight is not None:
                value *= tl.load(weight + i, mask=i < length).to(ACC)
            spread += tl.sum(tl.where(mask, value, 0.0), axis=1, keep_dims=True)

    number = line_number(lanes, lane, slab, LANES)[:, None]
    chosen = tl.load(targets + number, mask=in_lane, other=ignored)
    is_kept = chosen != ignored
    is_class = (chosen >= 0) & (chosen < length)
    value = tl.load(x + offsets + chosen * stride, mask=in_lane & is_class).to(ACC)
    share = is_kept.to(ACC)
    if weight is not None:
        share *= tl.load(weight + chosen, mask=in_lane & is_class).to(ACC)
    result = (1 - smoothing).to(ACC) * share * (log_total - value)
    result += smoothing.to(ACC) / length * spread + z.to(ACC) * log_total * log_total
    result = tl.where(
        is_class, tl.where(is_kept, result, 0.0), tl.where(is_kept, float("nan"), 0.0)
    )
    tl.store(loss + number, result, mask=in_lane)
    tl.store(total_weight + number, share, mask=in_lane)
    tl.store(logsum + number, log_total, mask=in_lane)


@jit
def sum_lines_kernel(losses, weights, loss, total_weight, lines, BLOCK: tl.constexpr, ACC: tl.constexpr,
                     IS_MEAN: tl.constexpr):  # fmt: skip
    """The sum of all lines by one program, or their mean, and the sum of weights."""
    total, shares = tl.zeros((BLOCK,), ACC), tl.zeros((BLOCK,), ACC)
    for start in range(0, lines, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(losses + i, mask=i < lines, other=0.0)
        shares += tl.load(weights + i, mask=i < lines, other=0.0)
    result, all_shares = tl.sum(total), tl.sum(shares)
    tl.store(loss, result / all_shares if IS_MEAN else result)
    tl.store(total_weight, all_shares)


@jit
def cross_entropy_backward_kernel(x, targets, weight, logsum, grad, total_weight, out, ignored,
                                  smoothing: tl.float64, z: tl.float64, length, lanes, lane_stride,
                                  stride, slab_stride, blocks, LANES: tl.constexpr, BLOCK: tl.constexpr,
                                  ACC: tl.constexpr, IS_SUM: tl.constexpr):  # fmt: skip
    """The gradient of lines; IS_SUM: of their sum, which was divided by the total weight, if any."""
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += first
    out += first
    offsets, in_lane = lane_offsets(lanes, lane, lane_stride, LANES)
    number = line_number(lanes, lane, slab, LANES)[:, None]
    chosen = tl.load(targets + number, mask=in_lane, other=ignored)
    is_class = (chosen >= 0) & (chosen < length)
    g = tl.load(grad + (number * 0 if IS_SUM else number), mask=in_lane).to(ACC)
    if total_weight is not None:
        g /= tl.load(total_weight)
    g = tl.where(chosen == ignored, 0.0, tl.where(is_class, g, float("nan")))
    log_total = tl.load(logsum + number, mask=in_lane).to(ACC)
    share = tl.full((LANES, 1), 1.0, ACC)
    if weight is not None:
        share = tl.load(weight + chosen, mask=in_lane & is_class).to(ACC)
    share *= (1 - smoothing).to(ACC)
    spread = smoothing.to(ACC) / length
    sum_of_weights = tl.zeros((1, 1), ACC) + length
    if weight is not None and smoothing != 0:
        sum_of_weights = tl.zeros((1, 1), ACC)
        for start in range(0, length, BLOCK):
            i = start + tl.arange(0, BLOCK)[None, :]
            part = tl.load(weight + i, mask=i < length, other=0.0).to(ACC)
            sum_of_weights += tl.sum(part, axis=1, keep_dims=True)
    scale = share + spread * sum_of_weights + 2 * z.to(ACC) * log_total
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        p = tl.exp(tl.load(x + offsets + i * stride, mask=mask).to(ACC) - log_total)
        part = spread
        if weight is not None:
            part = spread * tl.load(weight + i, mask=i < length).to(ACC)
        result = scale * p - part - tl.where(i == chosen, share, 0.0)
        result = tl.where(g == 0, 0.0, g * result)
        tl.store(out + offsets + i * stride, result, mask=mask)


@jit
def soft_cross_entropy_kernel(x, targets, weight, loss, logsum, smoothing: tl.float64, length, lanes,
                              lane_stride, stride, slab_stride, blocks, LANES: tl.constexpr,
                              BLOCK: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """Computes the losses of targets that are probabilities of all classes."""
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += first
    targets += first
    offsets, in_lane = lane_offsets(lanes, lane, lane_stride, LANES)
    top, total = line_statistics(x, offsets, in_lane, length, stride, ACC, BLOCK)
    log_total = top + tl.log(total)
    result = tl.zeros((LANES, 1), ACC)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        share = tl.load(targets + offsets + i * stride, mask=mask).to(ACC)
        share = share * (1 - smoothing).to(ACC) + smoothing.to(ACC) / length
        if weight is not None:
            share *= tl.load(weight + i, mask=i < length).to(ACC)
        value = log_total - tl.load(x + offsets + i * stride, mask=mask).to(ACC)
        result += tl.sum(tl.where(mask & (share != 0), share * value, 0.0), axis=1, keep_dims=True)
    number = line_number(lanes, lane, slab, LANES)[:, None]
    tl.store(loss + number, result, mask=in_lane)
    tl.store(logsum + number, log_total, mask=in_lane)


@jit
def soft_cross_entropy_backward_kernel(x, targets, weight, logsum, grad, out, out_target,
                                       smoothing: tl.float64, length, lanes, lane_stride, stride,
                                       slab_stride, blocks, LANES: tl.constexpr, BLOCK: tl.constexpr,
                                       ACC: tl.constexpr):  # fmt: skip
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    x += first
    targets += first
    out += first
    if out_target is not None:
        out_target += first
    offsets, in_lane = lane_offsets(lanes, lane, lane_stride, LANES)
    number = line_number(lanes, lane, slab, LANES)[:, None]
    log_total = tl.load(logsum + number, mask=in_lane).to(ACC)
    g = tl.load(grad + number, mask=in_lane).to(ACC)
    total = tl.zeros((LANES, 1), ACC)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        share = tl.load(targets + offsets + i * stride, mask=mask).to(ACC)
        share = share * (1 - smoothing).to(ACC) + smoothing.to(ACC) / length
        if weight is not None:
            share *= tl.load(weight + i, mask=i < length).to(ACC)
        total += tl.sum(tl.where(mask, share, 0.0), axis=1, keep_dims=True)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = in_lane & (i < length)
        share = tl.load(targets + offsets + i * stride, mask=mask).to(ACC)
        share = share * (1 - smoothing).to(ACC) + smoothing.to(ACC) / length
        value = tl.load(x + offsets + i * stride, mask=mask).to(ACC) - log_total
        of_target = -g * value * (1 - smoothing).to(ACC)
        if weight is not None:
            factor = tl.load(weight + i, mask=i < length).to(ACC)
            share *= factor
            of_target *= factor
        tl.store(out + offsets + i * stride, g * (tl.exp(value) * total - share), mask=mask)
        if out_target is not None:
            tl.store(out_target + offsets + i * stride, of_target, mask=mask)


@jit
def nll_lines(x, targets, weight, ignored, number, lines, length, inner, ACC: tl.constexpr):
    """The losses and the weights of lines, 0 behind the last one."""
    mask = number < lines
    chosen = tl.load(targets + number, mask=mask, other=ignored).to(tl.int64)
    is_kept, is_class = chosen != ignored, (chosen >= 0) & (chosen < length)
    place = (number // inner).to(tl.int64) * length * inner + number % inner + chosen * inner
    value = tl.load(x + place, mask=mask & is_class).to(ACC)
    share = (is_kept & mask).to(ACC)
    if weight is not None:
        share *= tl.load(weight + chosen, mask=mask & is_class).to(ACC)
    loss = tl.where(is_class, -share * value, float("nan"))
    return tl.where(is_kept & mask, loss, 0.0), share


@jit
def nll_kernel(x, targets, weight, loss, total_weight, ignored, lines, length, inner, BLOCK: tl.constexpr,
               ACC: tl.constexpr):  # fmt: skip
    number = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value, share = nll_lines(x, targets, weight, ignored, number, lines, length, inner, ACC)
    tl.store(loss + number, value, mask=number < lines)
    tl.store(total_weight + number, share, mask=number < lines)


@jit
def nll_sum_kernel(x, targets, weight, loss, total_weight, ignored, lines, length, inner,
                   BLOCK: tl.constexpr, ACC: tl.constexpr, IS_MEAN: tl.constexpr):  # fmt: skip
    """The sum of all lines by one program, or their mean, and the sum of weights."""
    total, shares = tl.zeros((BLOCK,), ACC), tl.zeros((BLOCK,), ACC)
    for start in range(0, lines, BLOCK):
        number = start + tl.arange(0, BLOCK)
        value, share = nll_lines(x, targets, weight, ignored, number, lines, length, inner, ACC)
        total += value
        shares += share
    result, all_shares = tl.sum(total), tl.sum(shares)
    if IS_MEAN:
        result /= all_shares
    tl.store(loss, result)
    tl.store(total_weight, all_shares)


@jit
def nll_backward_kernel(targets, weight, grad, total_weight, out, ignored, length, lanes, lane_stride,
                        stride, slab_stride, blocks, LANES: tl.constexpr, BLOCK: tl.constexpr,
                        ACC: tl.constexpr, IS_SUM: tl.constexpr):  # fmt: skip
    """The gradient of lines; IS_SUM: of their sum, which was divided by the total weight, if any."""
    first, lane, slab = first_line(lanes, lane_stride, slab_stride, blocks, LANES)
    out += first
    offsets, in_lane = lane_offsets(lanes, lane, lane_stride, LANES)
    number = line_number(lanes, lane, slab, LANES)[:, None]
    chosen = tl.load(targets + number, mask=in_lane, other=ignored)
    is_class = (chosen >= 0) & (chosen < length)
    g = -tl.load(grad + (number * 0 if IS_SUM else number), mask=in_lane).to(ACC)
    if total_weight is not None:
        g /= tl.load(total_weight)
    if weight is not None:
        g *= tl.load(weight + chosen, mask=in_lane & is_class).to(ACC)
    elsewhere = tl.where(is_class | (chosen == ignored), 0.0, float("nan"))
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        is_chosen = (i == chosen) & (chosen != ignored)
        tl.store(
            out + offsets + i * stride,
            tl.where(is_chosen, g, elsewhere),
            mask=in_lane & (i < length),
        )


@jit
def nll_places_kernel(targets, weight, grad, total_weight, out, ignored, lines, length, inner,
                      BLOCK: tl.constexpr, ACC: tl.constexpr, IS_SUM: tl.constexpr):  # fmt: skip
    """The same in zeros, of which one is stored for each line. A line with a wrong class is NaN."""
    number = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    chosen = tl.load(targets + number, mask=number < lines, other=ignored).to(tl.int64)
    is_there = (number < lines) & (chosen != ignored)
    is_class = is_there & (chosen >= 0) & (chosen < length)
    g = -tl.load(grad + (number * 0 if IS_SUM else number), mask=is_there).to(ACC)
    if total_weight is not None:
        g /= tl.load(total_weight)
    if weight is not None:
        g *= tl.load(weight + chosen, mask=is_class).to(ACC)
    first = (number // inner).to(tl.int64) * length * inner + number % inner
    tl.store(out + first + chosen * inner, g, mask=is_class)
    is_wrong = is_there & ~is_class
    if tl.max(is_wrong.to(tl.int32)) > 0:
        for i in range(length):
            tl.store(out + first + i * inner, tl.full((BLOCK,), float("nan"), ACC), mask=is_wrong)
