# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layer norm and RMS norm of dense rows, perhaps with a residual added before; sums of norms of channels."""

from __future__ import annotations

import tessera.language as tl
from tessera.runtime.jit import jit


@jit
def summed(x, residual, place, mask, ACC: tl.constexpr):
    """An element of x, or of its sum with the residual, which is rounded as its result is."""
    value = tl.load(x + place, mask=mask)
    if residual is not None:
        value = (value.to(ACC) + tl.load(residual + place, mask=mask).to(ACC)).to(value.dtype)
    return value.to(ACC)


@jit
def store_normal(normal, weight, bias, out, place, i, mask, length, ACC: tl.constexpr):
    """out = normal * weight + bias."""
    if weight is not None:
        normal *= tl.load(weight + i, mask=i < length).to(ACC)
    if bias is not None:
        normal += tl.load(bias + i, mask=i < length).to(ACC)
    tl.store(out + place + i, normal, mask=mask)


@jit
def norm_kernel(x, residual, weight, bias, out, added, mean, scale, rows, length, eps: tl.float64,
                ROWS: tl.constexpr, BLOCK: tl.constexpr, ACC: tl.constexpr, IS_CENTRED: tl.constexpr,
                IS_TILE: tl.constexpr):  # fmt: skip
    """out = (x - mean) * scale * weight + bias, where scale = 1 / sqrt(variance + eps).

    IS_TILE: a row has at most BLOCK elements, and is read once.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    place = row.to(tl.int64) * length
    if IS_TILE:
        i = tl.arange(0, BLOCK)[None, :]
        mask = (row < rows) & (i < length)
        value = summed(x, residual, place + i, mask, ACC)
        if residual is not None:
            tl.store(added + place + i, value, mask=mask)
        value = tl.where(mask, value, 0.0)
        if IS_CENTRED:
            average = tl.sum(value, axis=1, keep_dims=True) / length
            value = tl.where(mask, value - average, 0.0)
            tl.store(mean + row, average, mask=row < rows)
        factor = 1 / tl.sqrt(tl.sum(value * value, axis=1, keep_dims=True) / length + eps.to(ACC))
        tl.store(scale + row, factor, mask=row < rows)
        store_normal(value * factor, weight, bias, out, place, i, mask, length, ACC)
        return
    total = tl.zeros((ROWS, 1), ACC)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = (row < rows) & (i < length)
        value = summed(x, residual, place + i, mask, ACC)
        if residual is not None:
            tl.store(added + place + i, value, mask=mask)
        if IS_CENTRED:
            total += tl.sum(value, axis=1, keep_dims=True)
    average = total / length
    squares = tl.zeros((ROWS, 1), ACC)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = (row < rows) & (i < length)
        value = tl.where(mask, summed(x, residual, place + i, mask, ACC) - average, 0.0)
        squares += tl.sum(value * value, axis=1, keep_dims=True)
    factor = 1 / tl.sqrt(squares / length + eps.to(ACC))
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = (row < rows) & (i < length)
        value = (summed(x, residual, place + i, mask, ACC) - average) * factor
        store_normal(value, weight, bias, out, place, i, mask, length, ACC)
    if IS_CENTRED:
        tl.store(mean + row, average, mask=row < rows)
    tl.store(scale + row, factor, mask=row < rows)


@jit
def norm_backward_kernel(x, weight, grad, of_added, mean, scale, out, rows, length, ROWS: tl.constexpr,
                         BLOCK: tl.constexpr, ACC: tl.constexpr, IS_CENTRED: tl.constexpr):  # fmt: skip
    """The gradient of x; `of_added` is that of the sum with the residual, which is x then."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    place = row.to(tl.int64) * length
    factor = tl.load(scale + row, mask=row < rows)
    average = tl.zeros((ROWS, 1), ACC)
    if IS_CENTRED:
        average = tl.load(mean + row, mask=row < rows)
    total, product = tl.zeros((ROWS, 1), ACC), tl.zeros((ROWS, 1), ACC)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = (row < rows) & (i < length)
        g = tl.load(grad + place + i, mask=mask).to(ACC)
        if weight is not None:
            g *= tl.load(weight + i, mask=i < length).to(ACC)
        normal = (tl.load(x + place + i, mask=mask).to(ACC) - average) * factor
        total += tl.sum(tl.where(mask, g, 0.0), axis=1, keep_dims=True)
        product += tl.sum(tl.where(mask, g * normal, 0.0), axis=1, keep_dims=True)
    if not IS_CENTRED:
        total *= 0
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = (row < rows) & (i < length)
        g = tl.load(grad + place + i, mask=mask).to(ACC)
        if weight is not None:
            g *= tl.load(weight + i, mask=i < length).to(ACC)
        normal = (tl.load(x + place + i, mask=mask).to(ACC) - average) * factor
        result = factor * (g - (total + normal * product) / length)
        if of_added is not None:
            result += tl.load(of_added + place + i, mask=mask).to(ACC)
        tl.store(out + place + i, result, mask=mask)


@jit
def norm_gradients_kernel(x, weight, grad, of_added, mean, scale, out, of_weight, of_bias, rows, length, programs,
                          BLOCK: tl.constexpr, ACC: tl.constexpr, IS_CENTRED: tl.constexpr):  # fmt: skip
    """The gradients of x, and the sums of those of weight and bias over the rows of each of `programs`.

    A row is a tile, which is read once for all three.
    """
    i = tl.arange(0, BLOCK)
    inside = i < length
    factors = tl.full((BLOCK,), 1.0, ACC)
    if weight is not None:
        factors = tl.load(weight + i, mask=inside, other=0).to(ACC)
    weights, biases = tl.zeros((BLOCK,), ACC), tl.zeros((BLOCK,), ACC)
    for row in range(tl.program_id(0), rows, programs):
        place = row.to(tl.int64) * length + i
        g = tl.load(grad + place, mask=inside, other=0).to(ACC)
        normal = tl.load(x + place, mask=inside, other=0).to(ACC)
        factor = tl.load(scale + row)
        if IS_CENTRED:
            normal = tl.where(inside, normal - tl.load(mean + row), 0.0)
        normal *= factor
        weights += g * normal
        biases += g
        g *= factors
        result = g - normal * (tl.sum(g * normal, axis=0) / length)
        if IS_CENTRED:
            result -= tl.sum(g, axis=0) / length
        result *= factor
        if of_added is not None:
            result += tl.load(of_added + place, mask=inside).to(ACC)
        tl.store(out + place, result, mask=inside)
    place = tl.program_id(0).to(tl.int64) * length + i
    tl.store(of_weight + place, weights, mask=inside)
    if of_bias is not None:
        tl.store(of_bias + place, biases, mask=inside)


@jit
def norm_weights_kernel(x, grad, mean, scale, of_weight, of_bias, rows, length, part, ROWS: tl.constexpr,
                        BLOCK: tl.constexpr, ACC: tl.constexpr, IS_CENTRED: tl.constexpr):  # fmt: skip
    """Sums the gradients of weight and bias over `part` rows for each row of the results."""
    columns = tl.cdiv(length, BLOCK)
    number = tl.program_id(0) // columns
    i = (tl.program_id(0) % columns * BLOCK + tl.arange(0, BLOCK))[None, :]
    weights, biases = tl.zeros((ROWS, BLOCK), ACC), tl.zeros((ROWS, BLOCK), ACC)
    end = tl.minimum(number * part + part, rows)
    for start in range(number * part, end, ROWS):
        row = start + tl.arange(0, ROWS)[:, None]
        mask = (row < end) & (i < length)
        place = row.to(tl.int64) * length + i
        g = tl.load(grad + place, mask=mask).to(ACC)
        normal = tl.load(x + place, mask=mask).to(ACC)
        if IS_CENTRED:
            normal -= tl.load(mean + row, mask=row < end)
        normal *= tl.load(scale + row, mask=row < end)
        weights += tl.where(mask, g * normal, 0.0)
        biases += tl.where(mask, g, 0.0)
    out = number * length + i
    tl.store(of_weight + out, tl.sum(weights, axis=0, keep_dims=True), mask=i < length)
    if of_bias is not None:
        tl.store(of_bias + out, tl.sum(biases, axis=0, keep_dims=True), mask=i < length)


@jit
def moments_kernel(x, mean, variance, rows, length, ROWS: tl.constexpr, BLOCK: tl.constexpr,
                   ACC: tl.constexpr):  # fmt: skip
    """The mean and the variance of each row, which is in a cache when it is read again."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    place = row.to(tl.int64) * length
    total, squares = tl.zeros((ROWS, 1), ACC), tl.zeros((ROWS, 1), ACC)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        value = tl.load(x + place + i, mask=(row < rows) & (i < length), other=0).to(ACC)
        total += tl.sum(value, axis=1, keep_dims=True)
    average = total / length
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = (row < rows) & (i < length)
        value = tl.where(mask, tl.load(x + place + i, mask=mask).to(ACC) - average, 0.0)
        squares += tl.sum(value * value, axis=1, keep_dims=True)
    tl.store(mean + row, average, mask=row < rows)
    tl.store(variance + row, squares / length, mask=row < rows)


@jit
def merge_moments_kernel(means, variances, mean, variance, scale, outer, kept, inner, eps: tl.float64,
                         BLOCK: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """The moments of parts of one length as one, of arrays (outer, kept, inner), for each of `kept`."""
    number, count = tl.program_id(0), outer * inner
    total, squares = tl.zeros((BLOCK,), ACC), tl.zeros((BLOCK,), ACC)
    # Distances to the first mean, as in moments_of_lines_kernel.
    base = tl.load(means + number * inner, mask=count > 0, other=0)
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        place = i // inner * kept * inner + number * inner + i % inner
        total += tl.where(i < count, tl.load(means + place, mask=i < count, other=0) - base, 0.0)
    average = base + tl.sum(total, keep_dims=True) / count
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        place = i // inner * kept * inner + number * inner + i % inner
        distance = tl.load(means + place, mask=i < count, other=0) - average
        within = tl.load(variances + place, mask=i < count, other=0)
        squares += tl.where(i < count, within + distance * distance, 0.0)
    squared = tl.sum(squares, keep_dims=True) / count
    one = tl.arange(0, 1)
    tl.store(mean + number + one, average)
    tl.store(variance + number + one, squared)
    tl.store(scale + number + one, 1 / tl.sqrt(squared + eps.to(ACC)))


@jit
def merge_gradients_kernel(totals, products, weight, total, product, outer, kept, inner, channels, parts,
                           BLOCK: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """The sums of both for each of `kept`, by the weights of their channels. Arrays are as above, and
    (examples, channels, parts)."""
    number, count = tl.program_id(0), outer * inner
    sums, of_products = tl.zeros((BLOCK,), ACC), tl.zeros((BLOCK,), ACC)
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        place = i // inner * kept * inner + number * inner + i % inner
        factor = tl.full((BLOCK,), 1.0, ACC)
        if weight is not None:
            factor = tl.load(weight + place // parts % channels, mask=i < count, other=0).to(ACC)
        sums += factor * tl.load(totals + place, mask=i < count, other=0)
        of_products += factor * tl.load(products + place, mask=i < count, other=0)
    one = tl.arange(0, 1)
    tl.store(total + number + one, tl.sum(sums, keep_dims=True))
    tl.store(product + number + one, tl.sum(of_products, keep_dims=True))


@jit
def merge_weights_kernel(totals, products, scale, of_weight, of_bias, examples, channels, parts, per_scale,
                         scales, BLOCK: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """The gradients of the weight and the bias of each channel. Channels share scales, by turns of `scales`."""
    channel, count = tl.program_id(0), examples * parts
    weights, biases = tl.zeros((BLOCK,), ACC), tl.zeros((BLOCK,), ACC)
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        row = i // parts * channels + channel
        place = row * parts + i % parts
        factor = tl.load(scale + row // per_scale % scales, mask=i < count, other=0)
        weights += factor * tl.load(products + place, mask=i < count, other=0)
        biases += tl.load(totals + place, mask=i < count, other=0)
    one = tl.arange(0, 1)
    if of_weight is not None:
        tl.store(of_weight + channel + one, tl.sum(weights, keep_dims=True))
    if of_bias is not None:
        tl.store(of_bias + channel + one, tl.sum(biases, keep_dims=True))


@jit
def group_norm_kernel(x, weight, bias, out, mean, variance, groups, channels, length, eps: tl.float64,
                      BLOCK: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """The norm of a group, whose channels lie one after the other, for a group that a cache holds."""
    group = tl.program_id(0)
    count = channels * length
    place = group.to(tl.int64) * count
    total, squares = tl.zeros((1,), ACC), tl.zeros((1,), ACC)
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x + place + i, mask=i < count, other=0).to(ACC), keep_dims=True)
    average = total / count
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        value = tl.load(x + place + i, mask=i < count).to(ACC) - average
        value = tl.where(i < count, value, 0.0)
        squares += tl.sum(value * value, keep_dims=True)
    factor = 1 / tl.sqrt(squares / count + eps.to(ACC))
    one = tl.arange(0, 1)
    tl.store(mean + group + one, average)
    tl.store(variance + group + one, squares / count)
    for channel in range(channels):
        scale, number = factor, group % groups * channels + channel
        if weight is not None:
            scale *= tl.load(weight + number).to(ACC)
        shift = tl.zeros((1,), ACC)
        if bias is not None:
            shift += tl.load(bias + number).to(ACC)
        begin = place + channel * length
        for start in range(0, length, BLOCK):
            i = start + tl.arange(0, BLOCK)
            value = tl.load(x + begin + i, mask=i < length).to(ACC)
            tl.store(out + begin + i, (value - average) * scale + shift, mask=i < length)


@jit
def group_norm_backward_kernel(x, weight, grad, mean, scale, out, totals, products, groups, channels,
                               length, BLOCK: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """The gradient of a group that a cache holds, and the sums of gradient_sums_kernel for its channels."""
    group = tl.program_id(0)
    place = group.to(tl.int64) * channels * length
    average, factor = tl.load(mean + group).to(ACC), tl.load(scale + group).to(ACC)
    one = tl.arange(0, 1)
    total, product = tl.zeros((1,), ACC), tl.zeros((1,), ACC)
    for channel in range(channels):
        begin = place + channel * length
        sums, of_products = tl.zeros((1,), ACC), tl.zeros((1,), ACC)
        for start in range(0, length, BLOCK):
            i = start + tl.arange(0, BLOCK)
            g = tl.load(grad + begin + i, mask=i < length, other=0).to(ACC)
            value = tl.load(x + begin + i, mask=i < length, other=0).to(ACC) - average
            sums += tl.sum(g, keep_dims=True)
            of_products += tl.sum(g * value, keep_dims=True)
        tl.store(totals + group * channels + channel + one, sums)
        tl.store(products + group * channels + channel + one, of_products)
        factor_of = tl.full((1,), 1.0, ACC)
        if weight is not None:
            factor_of *= tl.load(weight + group % groups * channels + channel).to(ACC)
        total += factor_of * sums
        product += factor_of * of_products
    total /= channels * length
    product *= factor * factor / (channels * length)
    for channel in range(channels):
        begin = place + channel * length
        factor_of = tl.full((1,), 1.0, ACC)
        if weight is not None:
            factor_of *= tl.load(weight + group % groups * channels + channel).to(ACC)
        for start in range(0, length, BLOCK):
            i = start + tl.arange(0, BLOCK)
            g = tl.load(grad + begin + i, mask=i < length).to(ACC)
            value = tl.load(x + begin + i, mask=i < length).to(ACC) - average
            result = factor * (g * factor_of - total - value * product)
            tl.store(out + begin + i, result, mask=i < length)


@jit
def batch_norm_backward_kernel(x, weight, grad, mean, scale, out, of_weight, of_bias, examples, channels, length,
                               BLOCK: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """The gradients of a channel that a cache holds, of all examples, and those of its weight and bias."""
    channel, one = tl.program_id(0), tl.arange(0, 1)
    average, factor = tl.load(mean + channel).to(ACC), tl.load(scale + channel).to(ACC)
    total, product = tl.zeros((1,), ACC), tl.zeros((1,), ACC)
    for example in range(examples):
        begin = (example * channels + channel).to(tl.int64) * length
        for start in range(0, length, BLOCK):
            i = start + tl.arange(0, BLOCK)
            g = tl.load(grad + begin + i, mask=i < length, other=0).to(ACC)
            value = tl.load(x + begin + i, mask=i < length, other=0).to(ACC) - average
            total += tl.sum(g, keep_dims=True)
            product += tl.sum(g * value, keep_dims=True)
    if of_weight is not None:
        tl.store(of_weight + channel + one, product * factor)
    if of_bias is not None:
        tl.store(of_bias + channel + one, total)
    scaled = tl.full((1,), 1.0, ACC)
    if weight is not None:
        scaled *= tl.load(weight + channel).to(ACC)
    total *= scaled / (examples * length)
    product *= scaled * factor * factor / (examples * length)
    for example in range(examples):
        begin = (example * channels + channel).to(tl.int64) * length
        for start in range(0, length, BLOCK):
            i = start + tl.arange(0, BLOCK)
            g = tl.load(grad + begin + i, mask=i < length).to(ACC)
            value = tl.load(x + begin + i, mask=i < length).to(ACC) - average
            tl.store(
                out + begin + i, factor * (g * scaled - total - value * product), mask=i < length
            )


@jit
def gradient_sums_kernel(x, grad, mean, totals, products, rows, length, rows_per_mean, means,
                         ROWS: tl.constexpr, BLOCK: tl.constexpr, ACC: tl.constexpr):  # fmt: skip
    """The sums of grad and of grad * (x - mean) for each row. Rows share means, by turns of `means`."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    place = row.to(tl.int64) * length
    average = tl.load(mean + row // rows_per_mean % means, mask=row < rows).to(ACC)
    total, product = tl.zeros((ROWS, 1), ACC), tl.zeros((ROWS, 1), ACC)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        mask = (row < rows) & (i < length)
        g = tl.load(grad + place + i, mask=mask, other=0).to(ACC)
        value = tl.load(x + place + i, mask=mask, other=0).to(ACC) - average
        total += tl.sum(g, axis=1, keep_dims=True)
        product += tl.sum(g * value, axis=1, keep_dims=True)
    tl.store(totals + row, total, mask=row < rows)
    tl.store(products + row, product, mask=row < rows)
