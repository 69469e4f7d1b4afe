# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""extern_elementwise with libraries of the user's own: values, and what is said of bad ones.

The libraries are texts of LLVM IR, so that no tool is needed to make them; where there is an
llvm-as, bitcode too.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest
from execution.running import Runner, draw, host_has, make_kernel

import tessera
import tessera.gpu
import tessera.language as tl
from tessera.compiler.cache import default_cache
from tessera.compiler.options import CompileOptions
from tessera.compiler.toolchain import find_ptxas
from tessera.errors import TesseraError
from tessera.runtime.compiling import compile_specialised
from tessera.runtime.signatures import value_spec
from tessera.settings import settings

LLVM_AS = shutil.which("llvm-as-22") or shutil.which("llvm-as", path="/usr/lib/llvm-22/bin")

LIBRARY = """
target triple = "nvptx64-nvidia-cuda"
target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"

@table = internal addrspace(4) constant [4 x i32] [i32 10, i32 20, i32 30, i32 40]

declare float @__nv_sqrtf(float)
declare double @missing(double)

define private float @square(float %x) #0 {
  %y = fmul float %x, %x
  ret float %y
}

define float @length(float %x, float %y) #0 {
  %a = call float @square(float %x)
  %b = call float @square(float %y)
  %sum = fadd float %a, %b
  %root = call float @__nv_sqrtf(float %sum)
  ret float %root
}

define i32 @step(i32 %n) {
entry:
  %odd = trunc i32 %n to i1
  br i1 %odd, label %up, label %down
up:
  %thrice = mul i32 %n, 3
  %next = add i32 %thrice, 1
  br label %done
down:
  %half = ashr i32 %n, 1
  br label %done
done:
  %result = phi i32 [ %next, %up ], [ %half, %down ]
  ret i32 %result
}

define i32 @entry(i32 %n) {
  %i = and i32 %n, 3
  %at = getelementptr [4 x i32], ptr addrspace(4) @table, i32 0, i32 %i
  %value = load i32, ptr addrspace(4) %at
  ret i32 %value
}

define double @lacking(double %x) {
  %y = call double @missing(double %x)
  ret double %y
}

define float @pick(ptr %from, i1 %other, half %h) {
  %next = getelementptr float, ptr %from, i32 1
  %at = select i1 %other, ptr %next, ptr %from
  %value = load float, ptr %at
  %wide = fpext half %h to float
  %sum = fadd float %value, %wide
  ret float %sum
}

define internal float @hidden(float %x) {
  ret float %x
}

attributes #0 = { "target-cpu"="sm_70" "target-features"="+ptx60" }
"""


@pytest.fixture(params=["simulator", "cuda"])
def run(request: pytest.FixtureRequest) -> Runner:
    if not host_has(request.param):
        pytest.skip("there is no GPU")
    return Runner(request.param)


@pytest.fixture
def library(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "library.ll"
    path.write_text(LIBRARY)
    return path


def kernel_of(args: str, table: str, path: object = "", type: str = "float32") -> Any:
    """Over 256 elements: `args` of x and y through the function that `table` names."""
    return make_kernel(f"""
@tl.core.extern
def function(x, y, _semantic=None):
    return tl.core.extern_elementwise("mine", {str(path)!r}, [{args}], {table}, is_pure=True,
                                      _semantic=_semantic)

@tessera.jit
def kernel(x_ptr, y_ptr, out_ptr):
    i = tl.arange(0, 256)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(out_ptr + i, function(x, y).to(tl.{type}))
""")


LENGTH = '{(tl.dtype("fp32"), tl.dtype("fp32")): ("length", tl.dtype("fp32"))}'
STEP = "{(tl.int32,): ('step', tl.int32)}"


def check_length(run: Runner, rng: np.random.Generator, kernel: Any, **options: Any) -> None:
    x, y = draw(rng, 256, "float32"), draw(rng, 256, "float32")
    out = np.full(256, 99, np.float32)
    run(kernel, (1,), x, y, out, **options)
    exact = np.hypot(x.astype(np.float64), y)
    np.testing.assert_allclose(out, exact, rtol=4e-7)


@pytest.mark.parametrize("warps", [1, 4])
def test_a_function_with_others_behind_it(run, rng, library, warps):
    check_length(run, rng, kernel_of("x, y", LENGTH, library), num_warps=warps)


def test_the_launch_names_the_file(run, rng, library):
    check_length(run, rng, kernel_of("x, y", LENGTH), extern_libs={"mine": library})
    elsewhere = kernel_of("x, y", LENGTH, "/no/such/file.bc")
    check_length(run, rng, elsewhere, extern_libs={"mine": str(library)})


@pytest.mark.skipif(LLVM_AS is None, reason="there is no llvm-as")
def test_bitcode(run, rng, library):
    bitcode = library.with_suffix(".bc")
    subprocess.run([str(LLVM_AS), str(library), "-o", str(bitcode)], check=True)
    check_length(run, rng, kernel_of("x, y", LENGTH, bitcode))


def test_branches_of_integers(run, rng, library):
    x = draw(rng, 256, "int32")
    out = np.full(256, 99, np.int32)
    run(kernel_of("x", STEP, library, "int32"), (1,), x, x, out)
    np.testing.assert_array_equal(out, np.where(x & 1, x * np.int32(3) + 1, x >> 1))


def test_a_table_of_the_librarys(run, rng, library):
    x = draw(rng, 256, "int32")
    out = np.full(256, 99, np.int32)
    table = "{(tl.int32,): ('entry', tl.int32)}"
    run(kernel_of("x", table, library, "int32"), (1,), x, x, out)
    np.testing.assert_array_equal(out, (x % 4 + 1) * 10)


def test_functions_of_libdevice_that_have_no_other_name(run, rng):
    kernel = make_kernel("""
@tl.core.extern
def acosh(x):
    table = {(tl.float32,): ("__nv_acoshf", tl.float32)}
    return tl.extern_elementwise("libdevice", "", [x], table, is_pure=True)

@tessera.jit
def kernel(x_ptr, out_ptr):
    i = tl.arange(0, 256)
    tl.store(out_ptr + i, acosh(tl.load(x_ptr + i)))
""")
    x = 1 + np.abs(draw(rng, 256, "float32"))
    out = np.full(256, 99, np.float32)
    run(kernel, (1,), x, out)
    np.testing.assert_allclose(out, np.arccosh(x.astype(np.float64)), rtol=1e-6)


def test_pointers_bools_and_halves(run, rng, library):
    """Pointers of LLVM IR are generic, as those of clang's are."""
    kernel = make_kernel(f"""
@tl.core.extern
def pick(p, other, h):
    table = {{(tl.pointer_type(tl.float32), tl.int1, tl.float16): ("pick", tl.float32)}}
    return tl.extern_elementwise("mine", {str(library)!r}, [p, other, h], table, is_pure=False)

@tessera.jit
def kernel(x_ptr, h_ptr, out_ptr):
    i = tl.arange(0, 64)
    tl.store(out_ptr + i, pick(x_ptr + 2 * i, i % 3 == 0, tl.load(h_ptr + i)))
""")
    x, h = draw(rng, 128, "float32"), draw(rng, 64, "float16")
    out = np.full(64, 99, np.float32)
    run(kernel, (1,), x, h, out)
    i = np.arange(64)
    np.testing.assert_array_equal(out, x[2 * i + (i % 3 == 0)] + h.astype(np.float32))


def test_two_libraries_with_the_same_names(run, rng, library, tmp_path):
    other = tmp_path / "other.ll"
    other.write_text(
        "define i32 @step(i32 %n) { ret i32 1 }\n"
        "define i32 @twice(i32 %n) { %m = add i32 %n, %n\n ret i32 %m }\n"
    )
    kernel = make_kernel(f"""
@tl.core.extern
def both(x):
    here = tl.extern_elementwise("a", {str(library)!r}, [x], {STEP}, True)
    there = {{(tl.int32,): ("twice", tl.int32)}}
    return here + tl.extern_elementwise("b", {str(other)!r}, [x], there, True)

@tessera.jit
def kernel(x_ptr, out_ptr):
    i = tl.arange(0, 64)
    tl.store(out_ptr + i, both(tl.load(x_ptr + i)))
""")
    x = np.arange(64, dtype=np.int32)
    out = np.full(64, 99, np.int32)
    run(kernel, (1,), x, out)
    np.testing.assert_array_equal(out, np.where(x & 1, x * 3 + 1, x >> 1) + 2 * x)


def build(kernel: Any, **options: Any) -> Any:
    types = "*fp32:16, *fp32:16, *fp32:16"
    return tessera.compile(kernel, types, target="sm_90a", **options)


@pytest.mark.skipif(not find_ptxas(), reason="there is no ptxas")
def test_only_what_is_called_is_linked(library):
    kernel = build(kernel_of("x, y", LENGTH, library))
    ptx = kernel.asm["ptx"]
    assert "sqrt.approx" in ptx and ".func" not in ptx
    assert "step" not in kernel.asm["llvmir"] and "table" not in ptx
    assert kernel.asm["cubin"]
    whole = tessera.compile(
        kernel_of("x", "{(tl.int32,): ('entry', tl.int32)}", library, "int32"),
        "*i32, *i32, *i32",
        target="sm_80",
    )
    assert "table" in whole.asm["ptx"] and "sqrt" not in whole.asm["ptx"]


@pytest.mark.skipif(not find_ptxas(), reason="there is no ptxas")
def test_the_disk_cache_knows_what_was_in_the_file(library, tmp_path):
    """A file with another text is another kernel; one that is the same again is found."""
    options = CompileOptions.of({"target": "sm_90a"})
    spec = value_spec(tl.pointer_type(tl.int32))

    def cubin() -> Any:
        kernel = kernel_of("x", STEP, library, "int32")
        return compile_specialised(kernel, ("key",), [spec] * 3, options)[0].asm["cubin"]

    with settings.override(cache_dir=str(tmp_path / "cache"), cache="rw"):
        first = cubin()
        library.write_text(LIBRARY.replace("mul i32 %n, 3", "mul i32 %n, 5"))
        second = cubin()
        assert second != first and default_cache().hits == 0
        library.write_text(LIBRARY)
        assert cubin() == first and default_cache().hits == 1


@pytest.mark.parametrize(
    "function, table, texts",
    [
        ("x, y", "('lenght', tl.float32)", ["has no function 'lenght'", "did you mean 'length'?"]),
        ("x, y", "('length', tl.float64)", ["is float (float, float)", "double (float, float)"]),
        ("x", "('length', tl.float32)", ["is float (float, float)", "called as float (float)"]),
        ("x", "('hidden', tl.float32)", ["'hidden'", "is private to it"]),
        ("x.to(tl.float64)", "('lacking', tl.float64)", ["calls the function 'missing'"]),
        ("x", "('square', tl.float32)", ["'square'", "is private to it"]),
    ],
)
def test_functions_that_are_not_there(library, function, table, texts):
    types = ", ".join(
        "tl.float64" if "64" in each else "tl.float32" for each in function.split(", ")
    )
    kernel = kernel_of(function, f"{{({types},): {table}}}", library)
    for attempt in (lambda: build(kernel), lambda: tessera.gpu.simulate(kernel)[(1,)](*[X] * 3)):
        with pytest.raises(TesseraError) as caught:
            attempt()
        assert caught.value.id == "E071"
        assert "<kernel " in str(caught.value), "no place in the kernel"
        for text in texts:
            assert text in str(caught.value)


X = np.ones(256, np.float32)


@pytest.mark.parametrize(
    "content, text",
    [
        (b"", "expected"),
        (b"float length(float x) { return x; }", "as LLVM IR"),
        (b"BC\xc0\xde" + bytes(range(200)), "as LLVM IR"),
        (b"BC\xc0\xde", "as LLVM IR"),
        (LIBRARY.replace("nvptx64-nvidia-cuda", "x86_64-pc-linux-gnu").encode(), "x86_64"),
        (LIBRARY.replace("nvptx64-nvidia", "nvptx-nvidia").encode(), "for nvptx-nvidia-cuda"),
        (
            b"declare i64 @llvm.x86.rdtsc()\n"
            b"define float @length(float %x, float %y) {\n"
            b"  %t = call i64 @llvm.x86.rdtsc()\n  %f = uitofp i64 %t to float\n"
            b"  ret float %f\n}\n",
            "uses llvm.x86.rdtsc, which is not for GPUs",
        ),
        (LIBRARY.replace("fadd float %a", "fadd float %later").encode(), "as LLVM IR"),
        (
            LIBRARY.encode()
            + b"@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }]"
            + b" [{ i32, ptr, ptr } { i32 1, ptr @start, ptr null }]\n"
            + b"define internal void @start() { ret void }\n",
            "initialisers",
        ),
    ],
)
def test_files_that_are_no_libraries(tmp_path, content, text):
    path = tmp_path / "bad.bc"
    path.write_bytes(content)
    if not content:
        text = "has no function 'length'"  # an empty text is a library of nothing
    with pytest.raises(TesseraError) as caught:
        build(kernel_of("x, y", LENGTH, path))
    assert (
        caught.value.id == "E071" and text in str(caught.value) and str(path) in str(caught.value)
    )


@pytest.mark.skipif(LLVM_AS is None, reason="there is no llvm-as")
def test_bitcode_that_is_cut_off_or_damaged(library, tmp_path, rng):
    """LLVM neither ends the process nor makes a kernel of what it cannot read."""
    whole = tmp_path / "whole.bc"
    subprocess.run([str(LLVM_AS), str(library), "-o", str(whole)], check=True)
    content = whole.read_bytes()
    path = tmp_path / "cut.bc"
    for size in range(4, len(content), len(content) // 12 & ~3):
        path.write_bytes(content[:size])
        with pytest.raises(TesseraError) as caught:
            build(kernel_of("x, y", LENGTH, path))
        assert caught.value.id == "E071"


def test_libraries_that_are_nowhere(tmp_path):
    for kernel, options, text in (
        (kernel_of("x, y", LENGTH, tmp_path / "none.bc"), {}, "No such file"),
        (kernel_of("x, y", LENGTH, tmp_path), {}, "Is a directory"),
        (kernel_of("x, y", LENGTH), {}, "no file is given for the library `mine`"),
        (kernel_of("x, y", LENGTH), {"extern_libs": {"other": "a.bc"}}, "extern_libs names other"),
    ):
        with pytest.raises(TesseraError) as caught:
            build(kernel, **options)
        assert caught.value.id == "E071" and text in str(caught.value)
    with pytest.raises(TesseraError) as caught:
        build(kernel_of("x, y", LENGTH), extern_libs=["mine"])
    assert caught.value.id == "E053"
    pointer = "{(tl.float32,): ('length', tl.pointer_type(tl.float32))}"
    for kernel in (kernel_of("x", LENGTH, tmp_path), kernel_of("x", pointer, tmp_path)):
        with pytest.raises(TesseraError) as caught:
            build(kernel)
        assert caught.value.id == "E030"


def test_a_launch_may_name_another_libdevice(tmp_path):
    """As the tutorial on external functions does for Triton."""
    kernel = make_kernel("""
from tessera.language.extra import libdevice

@tessera.jit
def kernel(x_ptr, y_ptr, out_ptr):
    i = tl.arange(0, 256)
    tl.store(out_ptr + i, libdevice.asin(tl.load(x_ptr + i)))
""")
    with pytest.raises(TesseraError) as caught:
        build(kernel, extern_libs={"libdevice": str(tmp_path / "none.bc")})
    assert caught.value.id == "E063" and "none.bc" in str(caught.value)
    own = tmp_path / "own.ll"
    own.write_text(
        "define float @__nv_asinf(float %x) {\n  %y = fmul float %x, 7.25\n  ret float %y\n}\n"
    )
    assert "0f40E80000" in build(kernel, extern_libs={"libdevice": own}).asm["ptx"]


def test_cpus_and_the_interpreter_refuse_it(library):
    kernel = kernel_of("x, y", LENGTH, library)
    with pytest.raises(TesseraError) as caught:
        kernel[(1,)](X, X, X.copy())
    assert caught.value.id == "E030"
    with pytest.raises(TesseraError) as caught:
        tessera.interpret(kernel)[(1,)](X, X, X.copy())
    assert caught.value.id == "E050"
