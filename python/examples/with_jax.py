# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A softmax for JAX, with a derivative of its own: jax.jit, jax.grad and jax.vmap see one function.

Usage: with_jax.py    (needs JAX; runs on the GPU if JAX does)
"""

from __future__ import annotations

from typing import Callable

import jax
import jax.numpy as jnp

import tessera
import tessera.language as tl


@tessera.function("x[m, n] -> out[m / 1, n]")
@tessera.heuristics({"BLOCK": lambda args: tessera.next_power_of_2(args["n"])})
@tessera.jit
def softmax_kernel(x: tl.tensor, out: tl.tensor, n: tl.tensor, BLOCK: tl.constexpr) -> None:
    at = tl.program_id(0) * n
    i = tl.arange(0, BLOCK)
    row = tl.load(x + at + i, mask=i < n, other=-float("inf")).to(tl.float32)
    powers = tl.exp(row - tl.max(row, axis=0))
    tl.store(out + at + i, powers / tl.sum(powers, axis=0), mask=i < n)


@tessera.function("out[m, n], gradient[m, n] -> result[m / 1, n]")
@tessera.heuristics({"BLOCK": lambda args: tessera.next_power_of_2(args["n"])})
@tessera.jit
def softmax_gradient_kernel(
    out: tl.tensor, gradient: tl.tensor, result: tl.tensor, n: tl.tensor, BLOCK: tl.constexpr
) -> None:
    at = tl.program_id(0) * n
    i = tl.arange(0, BLOCK)
    y = tl.load(out + at + i, mask=i < n, other=0).to(tl.float32)
    dy = tl.load(gradient + at + i, mask=i < n, other=0).to(tl.float32)
    tl.store(result + at + i, y * (dy - tl.sum(y * dy, axis=0)), mask=i < n)


@jax.custom_vjp
def softmax(x: jax.Array) -> jax.Array:
    """Softmax of the rows of a matrix."""
    return softmax_kernel(x)  # type: ignore[no-any-return]


def _forward(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    out = softmax(x)
    return out, out


def _backward(out: jax.Array, gradient: jax.Array) -> tuple[jax.Array]:
    return (softmax_gradient_kernel(out, gradient),)


softmax.defvjp(_forward, _backward)


def main() -> None:
    """Compares values, gradients and batches with JAX's own softmax."""
    x = jax.random.normal(jax.random.key(0), (4, 64, 300))
    weights = jax.random.normal(jax.random.key(1), (64, 300))

    def loss(function: Callable[[jax.Array], jax.Array]) -> Callable[[jax.Array], jax.Array]:
        return lambda x: (function(x) * weights).sum()

    batched = jax.jit(jax.vmap(softmax))
    own = jax.jit(jax.vmap(jax.grad(loss(softmax))))
    other = jax.jit(jax.vmap(jax.grad(loss(jax.nn.softmax))))
    print("softmax", float(jnp.abs(batched(x) - jax.nn.softmax(x)).max()))
    print("gradient", float(jnp.abs(own(x) - other(x)).max()))
    assert jnp.allclose(batched(x), jax.nn.softmax(x), atol=1e-6)
    assert jnp.allclose(own(x), other(x), atol=1e-5)


if __name__ == "__main__":
    main()
