# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples in TableGen descriptions, made complete so that tessera-opt can read them.

An example shows an operation or two, with values and layouts from elsewhere. What is missing
is put around it: a function whose arguments are the values, of the types that the parser
expects them to have, and layouts for the names of layouts.
"""

from __future__ import annotations

import dataclasses
import re
import subprocess

from docs.commands import environment
from docs.pages import ROOT

RECORD = re.compile(r"^def\s+(?P<def>\w+)\s*:?(?P<head>[^{]*?)\{(?P<body>.*?)^\}", re.S | re.M)


@dataclasses.dataclass
class Example:
    """A fence of a description: of what it is, and where."""

    file: str
    line: int
    name: str  # of the definition
    mnemonic: str  # of the operation, or the flag of the pass
    text: str

    @property
    def id(self) -> str:
        return f"{self.name}:{self.line}"


def examples(kind: str) -> list[Example]:
    """The fences in the descriptions of passes ("Passes.td"), or of everything else."""
    found = []
    for path in sorted((ROOT / "include").rglob("*.td")):
        if (path.name == "Passes.td") != (kind == "Passes.td"):
            continue
        text = path.read_text()
        file = str(path.relative_to(ROOT))
        for fence in re.finditer(r"^ *```mlir\n(.*?)^ *```$", text, re.S | re.M):
            line = text.count("\n", 0, fence.start()) + 1
            records = list(re.finditer(r"^def\s+(\w+)(.*)", text[: fence.start()], re.M))
            head = text[records[-1].start() : fence.start()]
            mnemonic = re.search(r'<\s*"([\w-]+)"', head)
            body = "\n".join(part[4:] for part in fence.group(1).splitlines())
            name = records[-1].group(1)
            found.append(Example(file, line, name, mnemonic.group(1) if mnemonic else "", body))
    return found


# Layouts


def bits_of(shape: list[int], order: list[int]) -> list[str]:
    """The elements that are a power of two away from the first, dimensions in an order."""
    found = []
    for dimension in order:
        extent = 1
        while extent < shape[dimension]:
            place = [0] * len(shape)
            place[dimension] = extent
            found.append(str(place if len(shape) > 1 else extent))
            extent *= 2
    return found


def shared_layout(shape: list[int], by_columns: bool) -> str:
    order = list(range(len(shape)))
    columns = bits_of(shape, order if by_columns else order[::-1])
    dimensions = "x".join(map(str, shape))
    return f"#tilegpu.layout<{dimensions}, offset = [{', '.join(columns)}]>"


def register_layout(shape: list[int], by_columns: bool) -> str:
    """Neighbours in a thread, then over the lanes, then over four warps, the rest in a thread."""
    order = list(range(len(shape)))
    bits = bits_of(shape, order if by_columns else order[::-1])
    zero = str([0] * len(shape) if len(shape) > 1 else 0)
    first = min(2, max(0, len(bits) - 7))
    lanes = (bits[first : first + 5] + [zero] * 5)[:5]
    warps = (bits[first + 5 : first + 7] + [zero] * 2)[:2]
    registers = sorted(bits[:first] + bits[first + 7 :], key=eval)
    dimensions = "x".join(map(str, shape))
    parts = [f"reg = [{', '.join(registers)}]"] if registers else []
    parts += [f"lane = [{', '.join(lanes)}]", f"warp = [{', '.join(warps)}]"]
    return f"#tilegpu.layout<{dimensions}, {', '.join(parts)}>"


def with_layouts(text: str, known: dict[str, str]) -> str:
    """Layouts for the names of layouts that nothing in the text defines."""
    defined = set(re.findall(r"^\s*(#\w+) =", text, re.M))

    def layout(match: re.Match[str]) -> str:
        kind, shape, element, name = match.groups()
        if name in defined:
            return match.group(0)
        extents = [int(extent) for extent in shape.rstrip("x").split("x")]
        make = shared_layout if kind == "memdesc" else register_layout
        made = known.get(name) or make(extents, name.endswith(("columns", "1")))
        return f"{kind}<{shape}{element}, {made}"

    return re.sub(r"\b(memdesc|tensor)<((?:\d+x)+)([^,>]+>?), (#[a-z]\w*)\b(?!\.)", layout, text)


# Values


def free_values(text: str) -> list[str]:
    """The values that an example uses and does not define."""
    text = re.sub(r"//.*", "", text)
    defined = set()
    for results in re.findall(r"^\s*((?:%\w+(?::\d+)?(?:, )?)+) =", text, re.M):
        defined |= set(re.findall(r"%\w+", results))
    defined |= set(
        re.findall(r"(%\w+)\s*:\s*(?!\d)[!\w]", " ".join(re.findall(r"\([^()]*\)", text)))
    )
    for arguments in re.findall(r"(?:iter_args|@\w+|\^\w+)\s*\(([^)]*)\)", text):
        defined |= set(re.findall(r"(%\w+)\s*[:=]", arguments))
    defined |= set(re.findall(r"(?:scf\.for|scf\.parallel) (%\w+) =", text))
    used = dict.fromkeys(re.findall(r"%[A-Za-z]\w*", text))
    return [value for value in used if value not in defined]


# What an operation has to stand in, `BODY` being its example: for those that stand nowhere else.
PARTITION = """tilegpu.warp_specialize default {
} partition warps(4) {
  BODY
}"""
DEFAULT = """tilegpu.warp_specialize default {
  BODY
} partition warps(4) {
}"""
MAP = (
    "%map: !tilegpu.tensor_map {tilegpu.tensor_map = #tilegpu.tensor_map<base = 0, element = bf16, "
    "extents = ()[s0, s1, s2] -> (s1, s2), strides = ()[s0, s1, s2] -> (s2, 1), box = [EXTENTS], "
    "swizzle = 0>}"
)
AROUND = {
    "Strips_YieldOp": "%r = strips.group [1024] -> tensor<1024xf32> {\nBODY\n}",
    "Tile_MapReturnOp": "%r = tile.map_elementwise %t : (tensor<64xf32>) -> tensor<64xf32> {\n"
    "^bb0(%y: f32):\nBODY\n}",
    "Tile_ReduceReturnOp": "%r = tile.reduce (%t) {axis = 0 : i32} : (tensor<64xf32>) -> f32 {\n"
    "^bb0(%m: f32, %n: f32):\nBODY\n}",
    "Tile_ScanReturnOp": "%r = tile.scan (%t) {axis = 0 : i32} : (tensor<64xf32>) -> tensor<64xf32> "
    "{\n^bb0(%m: f32, %n: f32):\nBODY\n}",
    "Tile_SortReturnOp": "%r = tile.sort (%t) {axis = 0 : i32} : (tensor<64xf32>) -> tensor<64xf32> "
    "{\n^bb0(%m: f32, %n: f32):\nBODY\n}",
    "TileGPU_BarrierOp": DEFAULT,
    "TileGPU_MBarrierExpectOp": PARTITION,
    "TileGPU_TMALoadOp": PARTITION,
    "TileGPU_TMAStoreOp": DEFAULT.replace(
        "BODY",
        "tilegpu.local_store %x, %o : tensor<128x64xbf16, #rows>, "
        "!tilegpu.memdesc<128x64xbf16, #shared>\n  BODY",
    ),
    "TileGPU_PartitionEndOp": PARTITION,
    "TileGPU_PingPongWaitOp": DEFAULT,
    "TileGPU_PingPongPassOp": DEFAULT,
}
# What else there is in the module.
BESIDE = {
    "Tile_CallOp": "tile.func private @relu(%x: tensor<64xf32>) -> tensor<64xf32> {\n"
    "tile.return %x : tensor<64xf32>\n}\n",
}
# Layouts that an instruction prescribes.
LAYOUTS = {
    "TileGPU_MmaDotOp": {
        "#a": "#tilegpu.layout<64x32, reg = [[0, 1], [0, 8], [0, 16], [8, 0], [32, 0]], "
        "lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[0, 0], [16, 0]]>",
        "#b": "#tilegpu.layout<32x64, reg = [[0, 16], [0, 32], [1, 0], [8, 0], [16, 0]], "
        "lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 8], [0, 0]]>",
        "#acc": "#tilegpu.layout<64x64, reg = [[0, 1], [0, 16], [0, 32], [8, 0], [32, 0]], "
        "lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[0, 8], [16, 0]]>",
    },
    # The odd factors that the register layouts of other examples leave out.
    "TileGPU_RenumberOp": {
        "#a": "#tilegpu.layout<16x24, lane = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]], "
        "warp = [[4, 0], [8, 0]]>",
        "#b": "#tilegpu.layout<384, lane = [1, 2, 4, 8, 16], warp = [32, 64]>",
    },
    "TileGPU_TMAStoreOp": {
        "#rows": "#tilegpu.layout<128x64, reg = [[0, 1], [0, 2], [2, 0], [4, 0], [8, 0]], "
        "lane = [[0, 4], [0, 8], [0, 16], [0, 32], [1, 0]], warp = [[16, 0], [32, 0], [64, 0]]>",
    },
    "TileGPU_WarpgroupDotOp": {
        "#shared": "#tilegpu.layout<64x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], "
        "[1, 0], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0]]>",
        "#shared1": "#tilegpu.layout<32x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], "
        "[0, 1], [8, 2], [16, 4], [0, 8], [0, 16], [0, 32]]>",
        "#acc": "#tilegpu.layout<64x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], "
        "lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>",
    },
}
BOXES = {"TileGPU_TMAStoreOp": "64, 64"}
LAYOUTS["TileGPUInsertProxyFencesPass"] = LAYOUTS["TileGPU_WarpgroupDotOp"]
WARPS = {
    "TileGPU_BarrierOp": 8,
    "TileGPU_PingPongWaitOp": 8,
    "TileGPU_PingPongPassOp": 8,
    "TileGPU_TMAStoreOp": 8,
}
# Passes on functions of plain values and vectors.
OF_FUNCTIONS = {
    "StripsExpandTotalArith",
    "StripsLegalizeFloats",
    "StripsExpandMath",
    "StripsSplitLoops",
    "StripsHoistInvariants",
}
FUNCTION = re.compile(r"\b(tile|func|llvm)\.func\b")


def last_values(text: str) -> list[str]:
    """The values that are computed outside of regions and used nowhere."""
    found = []
    for results in re.findall(r"^((?:%\w+(?:, )?)+)(?::\d+)? =", text, re.M):
        for value in results.split(", "):
            if len(re.findall(rf"{value}\b", text)) == 1:
                found.append(value)
    return found


@dataclasses.dataclass
class Module:
    """An example with what is put around it."""

    example: Example
    text: str
    kernel: bool = False
    returned: bool = False  # what the example computes, so that passes do not drop it
    types: dict[str, str] = dataclasses.field(default_factory=dict)
    error: str = ""

    def __post_init__(self) -> None:
        around = AROUND.get(self.example.name, "BODY")
        known = LAYOUTS.get(self.example.name, {})
        self.text = with_layouts(around.replace("BODY", self.text), known)
        self.results: dict[str, str] = {}
        if not FUNCTION.search(self.text):
            self.types = {value: "i1" for value in free_values(self.text)}
            if self.returned:
                self.results = {value: "i1" for value in last_values(self.text)}

    def print(self) -> str:
        """The module, as far as the types of its values are known."""
        text = self.text
        machine = (
            f"module attributes {{tilegpu.num_warps = {WARPS.get(self.example.name, 4)} : i32, "
            'tilegpu.target = #tilegpu.target<"sm_90a">} {'
        )
        if self.example.mnemonic.startswith("tilegpu-") and re.match(r"tile\.func", text):
            return f"{machine}\n{text}\n}}\n"
        if FUNCTION.search(text) or re.match(r"\s*[#!]\w+ = ", text):
            return text
        # An attribute or a type, or several.
        if re.match(r"\s*(#tilegpu|!|tensor<)", text):
            each = re.split(r"\n(?=[#!t])", text.strip())
            return "\n".join(
                f"{one[0].replace('t', '!')}example{i} = {one}" for i, one in enumerate(each)
            )
        arguments = [f"{value}: {kind}" for value, kind in self.types.items()]
        boxes = re.findall(r"memdesc<([\dx]+)x[a-z]*f16, ", text)
        kernel = (
            self.kernel
            or "tilegpu." in text
            and any(op in text for op in ("warp_specialize", "tma_", "ping_pong"))
        )
        if kernel and not self.kernel:
            # Tensor maps are arguments of kernels, and other values are made in them.
            text = (
                "".join(
                    f"{value} = {'tilegpu.local_alloc : () -> ' if 'memdesc' in kind else 'ub.poison : '}{kind}\n"
                    for value, kind in self.types.items()
                    if value != "%map"
                )
                + text
            )
            arguments = []
            if "%map" in self.types:
                box = BOXES.get(self.example.name, boxes[0].replace("x", ", "))
                arguments = [MAP.replace("EXTENTS", box)]
        returns = "" if re.search(r"^\s*tile\.return", text, re.M) else "tile.return"
        results = ""
        if not returns:
            results = " -> " + re.search(r"tile\.return %\w+ : (.*)", text).group(1)
        plain = self.example.name in OF_FUNCTIONS
        if plain:
            returns = "return"
        if self.results:
            types = ", ".join(self.results.values())
            returns = f"{'' if plain else 'tile.'}return {', '.join(self.results)} : {types}"
            results = f" -> ({types})"
        function = "func.func" if plain else "tile.func" if kernel else "tile.func private"
        return (
            f"{machine}\n{BESIDE.get(self.example.name, '')}"
            f"{function} @example({', '.join(arguments)}){results} {{\n{text}\n{returns}\n}}\n}}\n"
        )


def run(modules: list[Module], *passes: str) -> str:
    """Runs passes over modules, one after the other, and learns what is wrong with each."""
    texts = [module.print() for module in modules]
    lines = [0]
    for text in texts:
        lines.append(lines[-1] + text.count("\n") + 2)
    result = subprocess.run(
        ["tessera-opt", "--split-input-file", *passes, "-"],
        input="\n// -----\n".join(texts),
        capture_output=True,
        text=True,
        env=environment(),
    )
    for module in modules:
        module.error = ""
    for line, said in re.findall(r"^<stdin>:(\d+):\d+: error: (.*)$", result.stderr, re.M):
        place = next(i for i, end in enumerate(lines) if end >= int(line)) - 1
        if not modules[place].error:
            modules[place].error = said
    if result.returncode and not any(module.error for module in modules):
        raise AssertionError(result.stderr)
    return result.stdout


def complete(modules: list[Module]) -> None:
    """Finds the types of the values that examples get from elsewhere, from the parser's errors."""
    left = modules
    for _ in range(20):
        run(left)
        again = []
        for module in left:
            match = re.match(
                r"use of value '(%\w+)' expects different type than prior uses: '(.*)' vs '(.*)'",
                module.error,
            )
            if match and match.group(1) in module.types:
                if match.group(3) == "i1" and module.types[match.group(1)] == "i1":
                    module.types[match.group(1)] = match.group(2)
                    again.append(module)
            elif match and match.group(1) in module.results:
                module.results[match.group(1)] = match.group(3)
                again.append(module)
        if not again:
            return
        left = again


def is_shown(wanted: str, result: str) -> bool:
    """Whether the text of a pass's result is like an example that shows it.

    Its lines stand there in this order, others between them; `...` is any text. Names of
    values and layouts are the example's own: each stands for one name.
    """
    wanted = re.sub(r"//.*", "", wanted)
    wanted = re.sub(r",\n\s*", ", ", wanted)
    wanted = re.sub(r"\n\s*(?=[:!]|->)", " ", wanted)
    lines = [" ".join(line.split()) for line in wanted.splitlines()]
    lines = [line for line in lines if line not in ("", "...")]
    given = [" ".join(line.split()) for line in result.splitlines()]
    steps = 100_000

    def pattern(line: str, names: dict[str, str]) -> tuple[re.Pattern[str], dict[str, str]]:
        parts = []
        groups: dict[str, str] = {}
        for part in re.split(r"(\.\.\.|%\w+(?:#\d)?|#[a-z]\w*\b(?!\.))", line):
            if part == "...":
                parts.append(".*?")
            elif not re.match(r"[%#]", part):
                parts.append(re.escape(part))
            elif part in names:
                parts.append(re.escape(names[part]) + r"(?![\w-])")
            elif part in groups:
                parts.append(f"(?P={groups[part]})")
            else:
                groups[part] = f"n{len(groups)}"
                parts.append(f"(?P<{groups[part]}>{part[0]}[\\w#-]+)")
        return re.compile("".join(parts)), groups

    def follow(line: int, place: int, names: dict[str, str]) -> bool:
        nonlocal steps
        if line == len(lines):
            return True
        known, groups = pattern(lines[line], names)
        for number in range(place, len(given)):
            steps -= 1
            if steps < 0:
                return False
            match = known.search(given[number])
            if match:
                found = {name: match.group(group) for name, group in groups.items()}
                if follow(line + 1, number + 1, {**names, **found}):
                    return True
        return False

    return follow(0, 0, {})


def operations(text: str) -> set[str]:
    """The operations in an example or a result."""
    text = re.sub(r"//.*", "", text)
    return set(
        re.findall(
            r"(?<![#!.@\w])((?:tile|tilegpu|strips|arith|math|scf|vector|memref|llvm|nvvm)\.[a-z_0-9.]+)",
            text,
        )
    )
