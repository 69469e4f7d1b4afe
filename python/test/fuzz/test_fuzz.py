# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generated kernels: interpreter, CPU and simulated GPU agree. More of them: tools of tessera.testing.fuzz.

`python -m tessera.testing.fuzz --count 5000 --seed N` runs as many as wanted, and makes a
failing kernel smaller.
"""

from __future__ import annotations

import copy
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

import tessera
from tessera.compiler.options import CompileOptions
from tessera.settings import settings
from tessera.testing.fuzz import Failure, check, generate, shrink
from tessera.testing.fuzz.arrays import Memory
from tessera.testing.fuzz.check import (
    check_all,
    choose_cpu,
    compare,
    compile_source,
    pack,
    write_reproducer,
)
from tessera.testing.fuzz.generate import KINDS
from tessera.testing.fuzz.program import Array, Check, walk

KERNELS = 40
MEMORY_KERNELS = 40
SIMULATED_KERNELS = 32
LANGUAGE_KERNELS = 24
STRIDE_KERNELS = 10
VIEW_KERNELS = 16
REDUCTION_KERNELS = 20
TILE_KERNELS = 12
HINTED_KERNELS = 28
SIMULATED_LOOPS = 12
# Loops that an earlier compiler refused, crashed on, or gave more shared memory than there is.
FORMER_LOOPS = (2, 3, 17, 30, 176, 269, 299, 360, 368, 1819, 2024)
SUM_KERNELS = 20
GRID_KERNELS = 12
FLAT_KERNELS = 8
BRANCH_KERNELS = 12
# Kernels that launches divide, whose blocks do several programs, and that ask in loops.
MACHINE_KERNELS = (9, 18, 57, 81, 83, 262, 323)


@pytest.mark.parametrize("seed", range(KERNELS))
def test_targets_agree(seed):
    check(generate(seed))


@pytest.mark.parametrize("target", ["simulator:sm_90a", "simulator:sm_80", ""])
@pytest.mark.parametrize("seed", range(STRIDE_KERNELS))
def test_offsets_keep_all_their_bits(seed, target):
    check(generate(seed, kind="strides"), target)


def test_a_large_accumulator_of_a_dot():
    # Became the accumulator of products of small integers, each of which was rounded.
    check(generate(333482), "x86-64")


def test_a_load_between_a_reduction_and_a_store():
    # The reduction said where to load, and shared a loop nest with the later store.
    check(generate(445274), "x86-64")


def test_a_half_of_a_half_lane_by_lane():
    # Lanes at -3 beyond a border took what had been kept of the index for another use.
    check(generate(7301890), "x86-64-v3")


@pytest.mark.parametrize("seed", range(SIMULATED_KERNELS))
def test_gpu_code_agrees_and_is_clean(seed):
    check(generate(seed, "simulator"), "simulator")


@pytest.mark.parametrize("seed", range(MEMORY_KERNELS))
def test_gpu_code_keeps_memory_in_order(seed):
    check(generate(seed, kind="memory"), "simulator")


@pytest.mark.parametrize("seed", range(MEMORY_KERNELS))
def test_cpu_code_keeps_memory_in_order(seed):
    check(generate(seed, kind="memory"))


@pytest.mark.parametrize("seed", range(LANGUAGE_KERNELS))
def test_cpu_code_means_what_the_language_does(seed):
    check(generate(seed, kind="language"))


@pytest.mark.parametrize("seed", range(LANGUAGE_KERNELS, 2 * LANGUAGE_KERNELS))
def test_gpu_code_means_what_the_language_does(seed):
    check(generate(seed, "simulator", kind="language"), "simulator")


def test_kernels_about_offsets_have_what_they_are_made_for():
    programs = [generate(seed, kind="strides") for seed in range(300)]
    counts = sum((program.counts for program in programs), Counter())
    offsets = ("program", "backwards", "loop", "product", "negative", "negative loop")
    offsets += ("two constants",)
    for name in ("negative rows", "negative columns", *(f"offset: {kind}" for kind in offsets)):
        assert counts[name] > 3, name
    # Constants beside a negative number are beyond 32 bits, and less than 2^63 in bytes.
    numbers = [int(text) for program in programs for text in re.findall(r"\d+", program.source())]
    assert 1 << 50 < max(numbers) <= 1 << 58


@pytest.mark.parametrize("target", ["simulator:sm_90a", "simulator:sm_80", ""])
@pytest.mark.parametrize("seed", range(VIEW_KERNELS))
def test_places_that_differ_are_told_apart(seed, target):
    check(generate(seed, kind="views"), target)


def test_kernels_about_views_have_what_they_are_made_for():
    programs = [generate(seed, kind="views") for seed in range(400)]
    counts = sum((program.counts for program in programs), Counter())
    for name in (
        "recurrence", "wraps", "scales", "carried indices", "carries a mask", "indices first",
        "indices last", "indices go on: argument", "indices go on: where", "indices go on: data",
        "masked by at", "masked by was", "masked by inside", "loads: wrapped", "loads: chosen",
        "loads: masked", "stored behind the loop", "a dot of the value tile",
        "a dot of the kept tile", "turned: constant", "turned: argument", "turned: load",
        "loops: range", "loops: staged", "loops: while", "loops: found", "loops: steps", "loops: end",
    ):  # fmt: skip
        assert counts[name] > 3, name
    assert {program.options["enable_fp_fusion"] for program in programs} == {False, True}


@pytest.mark.parametrize("target", ["simulator:sm_90a", ""])
@pytest.mark.parametrize("seed", range(FLAT_KERNELS))
def test_flat_loops_agree(seed, target):
    check(generate(seed, kind="flat"), target)


@pytest.mark.parametrize("target", ["simulator:sm_90a", ""])
@pytest.mark.parametrize("seed", range(BRANCH_KERNELS))
def test_loads_in_branches_agree(seed, target):
    check(generate(seed, kind="branches"), target)


def test_kernels_about_branches_have_what_they_are_made_for():
    programs = [generate(seed, kind="branches") for seed in range(300)]
    counts = sum((program.counts for program in programs), Counter())
    for name in (
        "stores in the loop", "reduces in the loop", "two sides",
        *(f"condition: {kind}" for kind in ("below", "not below", "odd", "flag")),
    ):  # fmt: skip
        assert counts[name] > 3, name


def test_kernels_about_flat_loops_have_what_they_are_made_for():
    programs = [generate(seed, kind="flat") for seed in range(400)]
    counts = sum((program.counts for program in programs), Counter())
    counters = ("top", "bottom", "add first", "wrap first", "at least", "remainder", "quotient",
                "flag")  # fmt: skip
    for name in (
        "loads when it opens", "two stores", "two conditionals that close", "used behind the loop",
        "not reset when it closes", "stores in each iteration", "a share of tiles",
        *(f"opens: {how}" for how in ("if", "reset", "end")),
        *(f"counter: {how}" for how in counters),
    ):  # fmt: skip
        assert counts[name] > 3, name
    # Periods and counts of tiles are 0 and negative, too.
    assert {program.iterations for program in programs} >= {-1, 0, 1, 6}
    assert {dict(program.scalars).get("tiles", 0) for program in programs} >= {-2, 0, 1, 4}


@pytest.mark.parametrize("target", ["simulator:sm_90a", "simulator:sm_80", ""])
@pytest.mark.parametrize("seed", range(REDUCTION_KERNELS))
def test_reductions_agree(seed, target):
    check(generate(seed, kind="reductions"), target)


def test_kernels_about_reductions_have_what_they_are_made_for():
    programs = [generate(seed, kind="reductions") for seed in range(800)]
    counts = sum((program.counts for program in programs), Counter())
    for name in (
        "rows below a bound", "reductions around a store", "lanes that meet", "counts",
        "rows to a view", "backwards", "bounded by <", "bounded by <=", "bounded by >",
        "bounded by >=", "between reductions: read", "between reductions: before",
        "between reductions: twice", "between reductions: branch", "meet in a row",
        "meet in a column", "meet in a run", "a mask within runs", "places below 0",
        "masked below 0", "reads before", "reads behind", "rows apart: 0", "rows apart: 1",
        "pointers go back", "begins one step before", "begins elsewhere", "tiles held: 4",
        "a held tile changes", "a long program", "a long program stores", "rounded products",
    ):  # fmt: skip
        assert counts[name] > 3, name


@pytest.mark.parametrize("target", ["simulator:sm_90a", "simulator:sm_80", ""])
@pytest.mark.parametrize("seed", range(TILE_KERNELS))
def test_tiles_come_in_any_order(seed, target):
    check(generate(seed, kind="tiles"), target)


def test_kernels_about_tiles_have_what_they_are_made_for():
    programs = [generate(seed, kind="tiles") for seed in range(300)]
    counts = sum((program.counts for program in programs), Counter())
    for name in (
        "tiles of programs: one", "tiles of programs: turns", "tiles of programs: while",
        "tiles of programs: axes", "columns: argument", "columns: constant", "columns: quotient",
        "columns: loaded", "another step", "the same step in other words", "rows overlap",
        "a tile of an earlier iteration", "a cluster may divide tiles",
        "a result of several elements", "counts its large tiles",
    ):  # fmt: skip
        assert counts[name] > 3, name


@pytest.mark.parametrize("seed", range(HINTED_KERNELS))
def test_a_broken_promise_changes_nothing(seed):
    check(generate(seed, kind="hints"))


@pytest.mark.parametrize("seed", range(HINTED_KERNELS, 2 * HINTED_KERNELS))
def test_promises_of_16_bytes_are_kept_by_gpu_code(seed):
    check(generate(seed, kind="hints"), "simulator")


def test_kernels_about_promises_have_what_they_are_made_for():
    programs = [generate(seed, kind="hints") for seed in range(200)]
    sources = "".join(program.source() for program in programs)
    for feature in (
        "tl.max_contiguous(tl.multiple_of(", "tl.multiple_of(tl.max_contiguous(",
        "tl.max_constancy(", "% m0", "tl.where(", "tl.minimum(", "tl.dot(", "tl.atomic_add(",
        "tl.store(", "for i in range(n)", "[1, 4])", "mask=",
    ):  # fmt: skip
        assert feature in sources, feature
    # Promises that do not hold for 16 bytes are none on a GPU.
    kept = "".join(program.source(gpu=True) for program in programs)
    assert 0 < kept.count("tl.max_contiguous(") < sources.count("tl.max_contiguous(")


@pytest.mark.parametrize("seed", range(SIMULATED_LOOPS))
def test_loops_of_dots_agree_and_are_clean(seed):
    target = ("simulator:sm_80", "simulator:sm_90a")[seed % 2]
    check(generate(seed, kind="loops"), target)


def test_a_narrow_copy_whose_mask_ends_within_an_access():
    # Two bytes were loaded by the mask of the first.
    check(generate(110, kind="loops"), "simulator:sm_80")


@pytest.mark.parametrize("seed", (*range(40), *FORMER_LOOPS))
def test_no_schedule_of_a_loop_is_refused(seed):
    for target in ("schedule:sm_80", "schedule:sm_90a"):
        check(generate(seed, kind="loops"), target)


def test_nothing_lies_where_barriers_of_an_earlier_loop_were():
    # On an H200, two rows of a tile in their place became NaN.
    check(generate(39000508, "simulator:sm_90a", "all"), "simulator:sm_90a")


def test_rings_that_leave_too_little_shared_memory_are_shorter():
    program = generate(2024, kind="loops")
    types = {
        "float16": "*fp16:16",
        "bfloat16": "*bf16:16",
        "float32": "*fp32:16",
        "int8": "*i8:16",
        "uint8": "*u8:16",
    }
    signature = {array.name: types[array.dtype] for array in program.arrays} | {"n": "i32"}
    kernel = compile_source(program.source(), "<kernel of seed 2024>")
    with settings.override(ptxas="driver"):
        compiled = tessera.compile(kernel, signature, target="sm_90a", **program.options)
    remarks = [remark for remark in compiled.remarks if remark.kind.startswith("schedule-")]
    dropped, changed = remarks
    assert dropped.kind == "schedule-dropped" and changed.kind == "schedule-changed"
    assert dropped.values["reason"] == "its tiles do not fit into shared memory"
    assert changed.values["schedule"] == "two stages"


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_of_every_kind_have_a_schedule(kind):
    """Arrays of every type, numbers of 64 bits and of floats; those that hold arrays are counted."""
    program = generate(2, kind=kind)
    check_all(program, ["schedule:sm_80"])
    skipped = "schedule:sm_80 not compiled: arguments that hold arrays"
    assert (skipped in program.counts) == bool(program.parts)


def test_a_schedule_that_is_refused_is_found(monkeypatch):
    core_json = CompileOptions.core_json
    monkeypatch.setattr(
        CompileOptions, "core_json", lambda self, **more: core_json(self, refused_plans=1, **more)
    )
    for target in ("schedule:sm_90a", "simulator:sm_90a"):
        with pytest.raises(Failure, match="is refused for a test"):
            check(generate(0, kind="loops"), target)


def test_loops_are_counted_by_transport():
    counts = Counter()
    for seed in range(40):
        program = generate(seed, kind="loops")
        check_all(program, ["schedule:sm_90a"])
        counts.update(program.counts)
    names = ("producer", "tma", "cp.async", "none", "dots in flight")
    transports = {name for name in counts if name.startswith("schedule:")}
    assert transports == {f"schedule:sm_90a {name}" for name in names}


def test_kernels_about_loops_have_what_they_are_made_for():
    programs = [generate(seed, kind="loops") for seed in range(400)]
    sources = "".join(program.source() for program in programs)
    for feature in (
        ".to(tl.float8e5, bitcast=True)", "<< 5) >> 5", "tl.trans(", "num_stages=3", "mask=",
        "other=1", ">= 0", ".to(tl.int64)", "tl.dot(", "input_precision", " * 0.5", "if k",
        "cache_modifier", "tl.max(", "tl.sum(", "pid", "// 64)", "bfloat16", "tl.int8",
    ):  # fmt: skip
        assert feature in sources, feature
    dots = {program.source().count("tl.dot(") for program in programs}
    assert {1, 2, 3, 4, 5} <= dots
    counts = sum((program.counts for program in programs), Counter())
    for name in (
        "a row added",
        "a row stored to before it is added",
        "a tile loaded behind the dots",
    ):
        assert counts[name] > 9, name
    options = [program.options for program in programs]
    assert {option["num_stages"] for option in options} == {1, 2, 3, 4}
    assert {4, 8} <= {option["num_warps"] for option in options}
    assert any("num_ctas" in option for option in options)


@pytest.mark.parametrize("seed", range(SUM_KERNELS))
def test_gpu_code_divides_sums_that_nobody_can_tell(seed):
    check(generate(seed, "simulator", kind="sums"), "simulator:sm_90a")


@pytest.mark.parametrize("seed", MACHINE_KERNELS)
def test_nobody_can_tell_how_a_launch_is_done(seed):
    check(generate(seed, kind="machine"), "simulator:sm_90a")


def test_launches_of_kernels_about_the_machine_are_counted():
    program = generate(9, kind="machine")
    check_all(program, ["simulator:sm_90a"])
    assert "simulator:sm_90a persistent" in program.counts
    assert any("simulator:sm_90a divides" in name for name in program.counts)


def test_kernels_about_the_machine_have_what_they_are_made_for():
    programs = [generate(seed, kind="machine") for seed in range(400)]
    assert "inline_asm" not in "".join(program.source() for program in programs)
    sources = "".join(program.source(gpu=True) for program in programs)
    for feature in (
        "%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%cluster_ctaid.x", "%cluster_nctaid.y",
        "%cluster_ctarank", "%clusterid.x", "%smid", "%globaltimer", "tl.extra.cuda.smid()",
        ".reg .u32 t;", '"=r,=r"', '"=r,r"', "is_pure=False", "asks(pid)", "while (", "if (v",
        "n + pid)", "add.s32 $0, $1, 7;", "in range(0, 2)", "lambda meta", "np.int64(",
    ):  # fmt: skip
        text = sources + "".join(program.grid for program in programs)
        assert feature in text, feature
    counts = sum((program.counts for program in programs), Counter())
    for place in ("before", "in", "between", "behind", "own loop", "while", "branch", "outer"):
        for use in ("number", "place", "bound", "mask", "scale", "condition"):
            assert counts[f"{place}, as a {use}"], (place, use)
    assert counts["large tiles of a long loop"] > 9


@pytest.mark.parametrize("seed", range(GRID_KERNELS))
def test_grids_of_every_form(seed):
    check(generate(seed, kind="grids"), ("simulator:sm_90a", "")[seed % 2])


def test_kernels_about_grids_have_what_they_are_made_for():
    counts = sum((generate(seed, kind="grids").counts for seed in range(300)), Counter())
    names = ("function", "list", "tuple", "NumPy's integers", "truth values", "no program")
    assert all(counts[name] > 3 for name in (*names, "1 axes", "2 axes", "3 axes")), counts


def test_kernels_about_sums_have_what_they_are_made_for():
    programs = [generate(seed, kind="sums") for seed in range(400)]
    plain = "".join(program.source() for program in programs)
    sources = "".join(program.source(gpu=True) for program in programs)
    assert "inline_asm" not in plain
    for feature in (
        "%ctaid.x", "%nctaid.x", "%clusterid.x", "%smid", "%nsmid", "%gridid", "asks(pid)", "if (",
        "tl.trans(tl.dot(", "tl.permute", "tl.join", "tl.split", "n + pid)", "128, 128",
        " * -1.0", "is_pure=False", "[:, None, :]", "num_stages=3", "tl.dot(v1, v2, tl.dot(",
    ):  # fmt: skip
        assert feature in sources, feature
    assert {program.launches for program in programs} == {"divided", "clusters"}


def test_kernels_about_the_language_have_what_they_are_made_for():
    programs = [generate(seed, kind="language") for seed in range(300)]
    sources = "".join(program.source() for program in programs)
    for feature in (
        "Pair(", "State.of(", "Record(", "Named(", ".turned()", ".repeated(", ".total", ".chosen(1)",
        "aggregate_replace", "apart(", "carried(", "swapped(", "picked(", "all_of(*", "both_of(",
        "make_tensor_descriptor", ".load([", ".gather(", ".scatter(", ".store([", ".atomic_",
        'padding_option="nan"', "desc0.load", "loaded_by(", "[2147483647", "libdevice.",
        "map_elementwise(one", "map_elementwise(pointed, ", "map_elementwise(pointed_to, ", "pack=2", "pack=4", "tl.topk", "return_indices=True", "tl.argsort",
        "tl.bitonic_merge", "dot_scaled", '"e2m1"', '"e4m3"', "float8e4b15", "[None, :, :]",
        "[None, None]", "tl.pointer_type", "tl.reduce((",
    ):  # fmt: skip
        assert feature in sources, feature
    assert re.search(r"\((\d, ){9}\d", sources)  # the extents of a tile
    parts = [part for program in programs for part in program.parts]
    kinds = {part.kind for part in parts}
    assert kinds == {"tuple", "list", "nested", "record", "aggregate", "descriptor"}
    assert any(part.tf32 for part in parts) and any(part.padding == "nan" for part in parts)


def test_kernels_of_one_kind_come_with_all():
    for seed in range(20):
        text = generate(seed, kind="all").source()
        assert text in [generate(seed, kind=kind).source() for kind in KINDS]


def test_kernels_about_memory_have_what_they_are_made_for():
    programs = [generate(seed, kind="memory") for seed in range(400)]
    sources = "".join(program.source(gpu=True) for program in programs)
    for feature in (
        ".to(tl.uint32) <", "2147483647", "-2147483648", "0x7fffffffffffffff", " ^ ", " >> ", " | ",
        "* 5 + 3) %", "// 2)", "debug_barrier", "inline_asm", "for k", "if (", "bitcast=True",
        "tl.flip", "tl.gather", "tl.where", "float64", "num_stages=3", "while ", "volatile=True",
        "tl.make_block_ptr", "tl.atomic_add", "load_at(", "store_at(", "tl.atomic_xchg",
        "tl.atomic_cas",
    ):  # fmt: skip
        assert feature in sources, feature
    assert any(array.base and array.behind for p in programs for array in p.arrays)
    assert any(array.base and not array.behind for p in programs for array in p.arrays)
    assert any(abs(value) > 2**31 for p in programs for _, value in p.scalars)
    assert "debug_barrier" not in "".join(program.source() for program in programs)


def test_a_seed_is_one_kernel_whatever_the_hash_seed():
    texts = {
        subprocess.run(
            [sys.executable, "-m", "tessera.testing.fuzz", "--show", "--count", "20"],
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "2")
    }
    assert len(texts) == 1


def test_generated_kernels_use_the_language_widely():
    sources = "".join(generate(seed).source() for seed in range(200))
    for feature in (
        "tl.load", "mask=", "other=", "tl.store", "tl.atomic_", "tl.dot", "tl.sum", "tl.cumsum",
        "tl.argmax", "tl.where", "tl.gather", "tl.histogram", "tl.reshape", "tl.trans", "tl.join",
        "tl.cat", "tl.flip", "tl.sort", "tl.fma", "tl.umulhi", "bitcast=True", "while ", "for ",
        "if ", "else:", "static_range", " // ", " % ", " << ", " >> ",
    ):  # fmt: skip
        assert feature in sources, feature
    # Of masks, of elements of all widths, and of extents whose odd factor moves.
    assert re.search(r"tl\.histogram\(.*, mask=", sources)
    assert re.search(r"tl\.reshape\(.*, \((384|320|576),\)\)", sources)


# --- The fuzzer finds what is wrong ----------------------------------------------------


ADD = """
@tessera.jit
def kernel(in0, out1, n):
    i = tl.arange(0, 16)
    tl.store(out1 + i, tl.load(in0 + i) + 1)
"""


def run(source, arrays, checks=(), seed=0):
    kernel = compile_source(source, f"<test {hash(source)}>")
    compare(kernel, arrays, list(checks), programs=1, n=2, seed=seed, target="")


def test_agreement_is_silent():
    run(ADD, [Array("in0", "int32", 16, "integers"), Array("out1", "int32", 16)])


def test_a_write_beside_an_array_is_found():
    with pytest.raises(Failure, match="wrote after array out1"):
        run(ADD, [Array("in0", "int32", 16, "integers"), Array("out1", "int32", 8)], seed=1)


@pytest.mark.parametrize("page", (0, 1))
def test_an_array_ends_where_a_page_does(page):
    """A read beside an array, which leaves no trace, ends the process."""
    text = (
        "from tessera.testing.fuzz.arrays import Memory\n"
        "from tessera.testing.fuzz.program import Array\n"
        f"memory = Memory([Array('a', 'int32', 24, 'integers')], 1, {page})\n"
        "view, place = memory.views[0], memory.views[0].ctypes.data\n"
        "import ctypes\n"
        f"beside = place + view.nbytes if {page} else place - 4\n"
        "print('inside', view.sum() != 1, flush=True)\n"
        "print(ctypes.c_int32.from_address(beside).value)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "inside True\n"
    assert done.returncode == -11


def test_a_wrong_function_is_found():
    source = ADD.replace("tl.load(in0 + i) + 1", "tl.exp(tl.load(in0 + i)) * 1.00001")
    arrays = [Array("in0", "float32", 16, "dyadic"), Array("out1", "float32", 16)]
    with pytest.raises(Failure, match="exp"):
        run(source, arrays, [Check("exp", ("in0",), "out1", ((16,), (16,)))])


def test_a_refused_kernel_is_found():
    with pytest.raises(Failure, match="the interpreter refused the kernel: CompilationError"):
        run(
            ADD.replace("+ 1", "+ nothing"), [Array("in0", "int32", 16), Array("out1", "int32", 16)]
        )


def test_shrinking_keeps_the_failure_and_little_else():
    """The "bug": a kernel that has any `//` in it."""
    program = next(p for p in map(generate, range(500)) if "//" in p.source() and len(p.arrays) > 5)
    before = copy.deepcopy(program)
    smaller = shrink(program, lambda candidate: "//" in candidate.source())
    assert program == before
    assert "//" in smaller.source()
    assert len(list(walk(smaller.statements))) <= 4
    assert smaller.checks == []


@pytest.mark.parametrize("kind", ("values", "language", "strides"))
def test_a_shrunk_kernel_still_runs(kind):
    """Taking statements out leaves no undefined name and no wrong type behind."""
    for seed in range(2):
        program = generate(seed, kind=kind)
        programs = []
        shrink(program, lambda candidate: programs.append(candidate) or False)
        for candidate in programs[:: max(1, len(programs) // 5)]:
            memory = Memory(candidate.arrays, candidate.programs, seed)
            kernel = compile_source(candidate.source(), f"<shrunk from {seed}>")
            scalars = [candidate.iterations, *(value for _, value in candidate.scalars)]
            arguments = pack(kernel, candidate.arrays, memory.views, scalars, candidate.parts)
            tessera.interpret(kernel)[(candidate.programs,)](*arguments)


@pytest.mark.parametrize("kind", ("values", "language", "strides", "grids"))
def test_a_reproducer_replays(tmp_path, kind):
    path = tmp_path / "kernel.py"
    seed = next(
        s for s in range(100) if kind != "language" or len(generate(s, kind=kind).parts) > 2
    )
    program = generate(seed, kind=kind)
    path.write_text(write_reproducer(program, choose_cpu(seed), "nothing is wrong"))
    done = subprocess.run(
        [sys.executable, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "the targets agree\n", done.stderr


@pytest.mark.parametrize(
    "target, text",
    [
        ("gpu", "--target gpu: unknown CPU 'gpu'; other targets are cuda, simulator"),
        ("x86-64,simulator:sm_70", "--target simulator:sm_70: no such GPU; there are sm_80"),
        ("cuda:1", "--target cuda:1: unknown CPU 'cuda:1'"),
    ],
)
def test_a_target_that_does_not_exist(target, text):
    done = subprocess.run(
        [sys.executable, "-m", "tessera.testing.fuzz", "--count", "1", "--target", target],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and text in done.stderr


# --- Campaigns -------------------------------------------------------------------------


def campaign(*options):
    return subprocess.Popen(
        [sys.executable, "-m", "tessera.testing.fuzz", *map(str, options)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(path, holds):
    """The summary in `path`, once `holds` is true of it."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if path.exists() and holds(summary := json.loads(path.read_text())):
            return summary
        time.sleep(0.05)
    raise TimeoutError(f"{path} has no such summary")


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGINT))
def test_a_signal_ends_a_campaign_with_its_summary(tmp_path, number):
    file = tmp_path / "campaign.json"
    process = campaign(
        "--count", 100000, "--seed", 5, "--kind", "both", "--target", "schedule:sm_80",
        "--json", file,
    )  # fmt: skip
    before = wait_for(file, lambda summary: summary["kernels"] >= 50)
    process.send_signal(number)
    text, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    after = json.loads(file.read_text())
    assert f"{after['kernels']} kernels from seed 5, 0 failures" in text
    assert (after["first_seed"], after["count"], after["kind"]) == (5, 100000, "both")
    assert after["kernels"] >= before["kernels"] and after["seconds"] > 0
    # By kind and target, without the kernel that was running.
    by_kind = after["checked"]
    assert set(by_kind) == {"values", "memory"}
    assert sum(checked["schedule:sm_80"] for checked in by_kind.values()) == after["kernels"]


def test_a_campaign_that_is_killed_leaves_a_summary(tmp_path):
    file = tmp_path / "campaign.json"
    process = campaign("--count", 100000, "--target", "schedule:sm_80", "--json", file)
    wait_for(file, lambda summary: summary["kernels"] >= 50)
    process.kill()
    process.communicate()
    after = json.loads(file.read_text())
    assert after["kernels"] % 50 == 0 and after["checked"]["values"]["schedule:sm_80"] >= 50


def test_a_failure_is_in_the_summary(tmp_path, monkeypatch):
    file = tmp_path / "campaign.json"
    # A child's process begins with this.
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "import tessera.testing.fuzz as fuzz\n"
        "def fail(program, targets):\n"
        "    raise fuzz.Failure('planted')\n"
        "sys.modules['tessera.testing.fuzz.check'].check_all = fail\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    process = campaign("--count", 3, "--no-shrink", "--json", file, "--out", tmp_path / "found")
    text, errors = process.communicate()
    assert process.returncode == 1, errors
    assert "3 kernels from seed 0, 3 failures" in text
    summary = json.loads(file.read_text())
    assert summary["findings"] == [{"seed": seed, "message": "planted"} for seed in range(3)]
    assert (tmp_path / "found" / "seed-2.py").exists()


def test_files_of_campaigns_become_one(tmp_path):
    files = [tmp_path / "first.json", tmp_path / "second.json"]
    for number, file in enumerate(files):
        process = campaign(
            "--kind", "loops", "--target", "schedule:sm_80", "--seed", 4 * number, "--count", 4,
            "--json", file,
        )  # fmt: skip
        process.communicate()
    parts = [json.loads(file.read_text()) for file in files]
    parts[1]["findings"].append({"seed": 5, "message": "planted"})
    files[1].write_text(json.dumps(parts[1]))
    both = tmp_path / "both.json"
    process = campaign("--merge", *files, "--json", both)
    text, _ = process.communicate()
    assert process.returncode == 1 and "8 kernels from seed 0, 1 failures" in text
    merged = json.loads(both.read_text())
    assert merged["checked"] == {"loops": {"schedule:sm_80": 8}}
    assert merged["findings"] == parts[1]["findings"]
    for name, number in merged["counts"].items():
        assert number == sum(part["counts"].get(name, 0) for part in parts)
    assert [part["first_seed"] for part in merged["campaigns"]] == [0, 4]

    process = campaign("--merge", files[0], files[0])
    _, errors = process.communicate()
    assert process.returncode == 2 and "both given the seeds 0 to 3" in errors
    files[0].write_text('{"kernels": 3}')
    process = campaign("--merge", *files)
    _, errors = process.communicate()
    assert process.returncode == 2 and "lacks checked, count, first_seed" in errors
