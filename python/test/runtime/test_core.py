# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The core library and the extension over it: what crosses the C boundary, and how."""

import os
import shutil
import subprocess
import sys
import threading

import pytest

import tessera
from tessera import _C

PACKAGE = os.path.dirname(tessera.__file__)
CORE = os.path.join(PACKAGE, "libtessera.so")
LLVM_BIN = "/usr/lib/llvm-22/bin"

INT32, FP32 = 4, 17


def tool(name):
    path = shutil.which(name) or shutil.which(f"llvm-{name}", path=LLVM_BIN)
    if path is None:
        pytest.skip(f"needs {name}")
    return path


def test_only_the_c_api_is_exported():
    output = subprocess.check_output([tool("nm"), "-D", "--defined-only", CORE], text=True)
    names = {line.split()[-1] for line in output.splitlines()}
    # And what gdb looks for.
    names -= {"__jit_debug_register_code", "__jit_debug_descriptor"}
    assert names and all(name.startswith("tsr_") for name in names), names


def test_the_core_needs_no_llvm():
    output = subprocess.check_output([tool("readelf"), "-d", CORE], text=True)
    needed = {line.split("[")[1].rstrip("]") for line in output.splitlines() if "NEEDED" in line}
    allowed = (
        "libc.",
        "libm.",
        "libstdc++.",
        "libgcc_s.",
        "libz.",
        "libzstd.",
        "ld-linux",
        "libdl.",
    )
    assert needed and all(name.startswith(allowed + ("libpthread.",)) for name in needed), needed


def test_the_header_is_c():
    compiler = shutil.which("cc") or shutil.which("clang-22")
    include = os.path.join(os.path.dirname(os.path.dirname(PACKAGE)), "include")
    if compiler is None or not os.path.isdir(include):
        pytest.skip("needs a C compiler and the checkout")
    subprocess.run(
        [compiler, "-std=c11", "-Wall", "-Werror", "-fsyntax-only", "-xc", "-", f"-I{include}"],
        input='#include "tessera/CAPI/Tessera.h"\n',
        text=True,
        check=True,
    )


def test_the_build_id_is_that_of_the_library():
    output = subprocess.check_output([tool("readelf"), "-n", CORE], text=True)
    assert len(_C.build_id()) == 40 and _C.build_id() in output


def test_text_that_is_no_ir():
    with pytest.raises(_C.CoreError, match="does not parse") as caught:
        _C.Module.parse("module {\n  tile.frobnicate\n}", "some:file.mlir")
    info = caught.value.info
    assert info["kind"] == "user"
    assert (info["file"], info["line"], info["column"]) == ("some:file.mlir", 2, 3)


def test_an_error_tells_the_chain_of_calls():
    # Valid by its syntax, not by its types.
    text = """
    "tile.func"() <{function_type = () -> (), sym_name = "f"}> ({
      %0 = "arith.constant"() <{value = 1 : i32}> : () -> i32
      %1 = "arith.addi"(%0, %0) : (i32, i32) -> i64 loc(#call)
      "tile.return"() : () -> ()
    }) : () -> ()
    #call = loc(callsite(callsite("inner.py":3:4 at "outer.py":5:6) at "kernel.py":7:8))
    """
    with pytest.raises(_C.CoreError) as caught:
        _C.Module.parse(text, "x.mlir")
    info = caught.value.info
    assert (info["file"], info["line"], info["column"]) == ("inner.py", 3, 4)
    places = [(note.get("file"), note.get("line")) for note in info["notes"]]
    assert ("outer.py", 5) in places and ("kernel.py", 7) in places


def test_text_that_is_no_unicode_reaches_python():
    # A name in a diagnostic may be any bytes; JSON may not.
    with pytest.raises(_C.CoreError) as caught:
        _C.Module.parse('"\\FF\\FE"() : () -> ()', "x.mlir")
    assert caught.value.info["message"]


def test_modules_print_what_they_parse():
    text = "module {\n  tile.func @f(%arg0: i32) {\n    tile.return\n  }\n}\n"
    module = _C.Module.parse(text)
    module.verify()
    assert str(module) == text
    assert "loc(" in module.print(locations=True) and "loc(" not in str(module)


def test_types():
    tile = _C.Type(1, FP32, True, (16, 32))
    assert (tile.kind, tile.dtype, tile.is_const, tile.shape) == (1, FP32, True, (16, 32))
    assert tile == _C.Type(1, FP32, True, [16, 32]) != _C.Type(1, FP32, False, (16, 32))
    assert hash(tile) == hash(_C.Type(1, FP32, True, (16, 32)))
    for arguments in [(9, FP32), (0, 99), (0, FP32, False, (1,) * 33)]:
        with pytest.raises(ValueError):
            _C.Type(*arguments)


@pytest.fixture
def builder():
    made = _C.Builder(_C.Module())
    made.set_location("kernel.py", 1, 1)
    made.call("begin_function", "f", [_C.Type(0, INT32)], [0], True, False)
    return made


def test_values_and_literals(builder):
    (one,) = builder.call("constant", 1, _C.Type(0, INT32))
    (two,) = builder.call("add", one, 1)
    assert isinstance(two, _C.Value) and two != one and len({one, two, one}) == 2
    assert builder.type_of(two) == _C.Type(0, INT32)
    (big,) = builder.call("to_tensor", 2**64 - 1)
    assert builder.type_of(big).dtype == 9  # uint64
    (flag,) = builder.call("to_tensor", True)
    assert builder.type_of(flag).dtype == 1


def test_a_module_outlives_nothing_but_its_builder():
    builder = _C.Builder(_C.Module())  # the module is held by the builder alone
    builder.set_location("kernel.py", 1, 1)
    builder.call("begin_function", "f", [], [], True, False)
    builder.call("end_function", [])


def test_what_the_builder_cannot_take(builder):
    with pytest.raises(OverflowError, match="fits no 64-bit"):
        builder.call("to_tensor", 2**64)
    with pytest.raises(OverflowError, match="fits no 64-bit"):
        builder.call("to_tensor", -(2**63) - 1)
    with pytest.raises(TypeError, match="takes no dict"):
        builder.call("to_tensor", {})
    with pytest.raises(UnicodeEncodeError):
        builder.call("math", "\udc80", 1)
    with pytest.raises(_C.CoreError) as caught:
        builder.call("no_such_builtin")
    assert caught.value.info["kind"] == "internal"
    (one,) = builder.call("constant", 1, _C.Type(0, INT32))  # still usable


def test_a_mistake_is_a_user_error(builder):
    (tile,) = builder.call("arange", 0, 64)
    (other,) = builder.call("arange", 0, 32)
    with pytest.raises(_C.CoreError, match="64.*32") as caught:
        builder.call("add", tile, other)
    assert caught.value.info["kind"] == "user" and caught.value.info["id"] == "E022"


def test_errors_belong_to_their_thread():
    """Threads fail at once, each with its own message."""
    failures = []

    def work(name):
        for _ in range(200):
            try:
                _C.Module.parse("module {", name)
            except _C.CoreError as error:
                if error.info["file"] != name:
                    failures.append((name, error.info))

    threads = [threading.Thread(target=work, args=(f"{n}.mlir",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_interpreting_what_is_not_there():
    module = _C.Module.parse("tile.func @f(%a: i32) { tile.return }")
    for name, arguments in [("g", [1]), ("f", []), ("f", [1, 2])]:
        with pytest.raises(_C.CoreError) as caught:
            _C.interpret(module, name, (1, 1, 1), arguments)
        assert caught.value.info["kind"] == "user"
    _C.interpret(module, "f", (1, 1, 1), [-1])


def test_options_that_make_no_sense():
    for options in ["", "[]", '{"cpu": 3}', '{"colour": "red"}', '{"target": "abacus"}']:
        module = _C.Module.parse("tile.func @f(%a: i32) { tile.return }")
        with pytest.raises(_C.CoreError) as caught:
            _C.compile(module, options)
        assert caught.value.info["id"] == "E062"


@pytest.mark.parametrize("data", [b"", b"x", b"\0" * 1000, b"\xff" * 100])
def test_bytes_that_are_no_kernel(data):
    with pytest.raises(_C.CoreError):
        _C.Kernel.deserialize(data)


def test_host_info():
    info = _C.host_info()
    assert info["cpu"] and info["vector_bits"] in (128, 256, 512) and info["threads"] >= 1
    assert info["machine"].split("+")[0] and isinstance(info["measured"], str)


def test_modules_come_when_they_are_asked_for():
    code = (
        "import sys, tessera\n"
        "late = {'tessera.testing', 'tessera.gpu'}\n"
        "assert not late & set(sys.modules) and {'testing', 'gpu'} <= set(dir(tessera))\n"
        "assert tessera.testing.do_bench and tessera.gpu.simulate and late <= set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
