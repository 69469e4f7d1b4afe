# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How Inductor lowers graphs that call graphs of their own (outlining.py).

The caller of such a graph needs only the extents, strides and types of its results, which are
known. So its ops are lowered only when its code is generated, by this process or by another
(forked_tasks.py). Its kernels have names of its own and do not depend on the kernels of other
graphs. So its code is the same in each process. Equal kernels of several graphs become one when
their definitions are joined.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import os
import pathlib
import signal
from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch._dynamo.utils import counters
from torch._inductor import async_compile, codecache, compile_fx, config, ir, lowering, metrics
from torch._inductor.graph import GraphLowering, SubgraphLowering
from torch._inductor.utils import ValueWithLineMap
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet
from torch.utils._triton import triton_hash_with_backend

from tessera.digests import digest
from tessera.errors import InternalError
from tessera.machine.devices import usable_cpus
from tessera.settings import settings
from tessera.torch.cuda_in_forks import Answers, ask_cuda, give_answers
from tessera.torch.deduplication import deduplicate
from tessera.torch.division import divide
from tessera.torch.forked_tasks import ForkedTasks, can_fork
from tessera.torch.garbage import collected_rarely
from tessera.torch.outlining import CHANNELS_LAST, OUTLINED, choose_layouts, move_updates
from tessera.torch.progress import stage, told

_OUTLINED = "tessera_outlined"
_TASKS = "tessera_tasks"
"""An attribute of a graph's lowering: the lowerings of the outlined graphs that it calls, and the
tasks that generate their code."""

_KERNELS = "tessera_kernels"
"""An attribute of a caller's code: the kernels of outlined graphs, their names by their code
without the name."""

_MOST_PROCESSES = 12
"""Processes that generate code of one graph: there are no more parts (division.py), and each takes
some tens of megabytes."""

_invoke_subgraph = torch.ops.higher_order.invoke_subgraph


@dataclasses.dataclass(frozen=True)
class Kernel:
    """The definition of a kernel: its source without its name, and the lines of the caller's code."""

    source: str
    name: str
    definition: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Code:
    """The code of an outlined graph: its function, the kernels, and what is imported for these."""

    text: str
    kernels: Sequence[Kernel]
    imports: str


class OutlinedLowering(SubgraphLowering):  # type: ignore[misc]
    """The lowering of an outlined graph, which is deferred until its code is needed."""

    def __init__(self, caller: GraphLowering, subgraph: ir.Subgraph, inputs: Sequence[Any]) -> None:
        module = subgraph.graph_module
        super().__init__(
            parent=caller,
            gm=module,
            example_inputs=inputs,
            shape_env=caller._shape_env,
            layout_opt=module.meta[CHANNELS_LAST],
            extern_node_serializer=caller.extern_node_serializer,
            is_inference=caller.is_inference,
            is_backward=caller.is_backward,
            name=caller.qualify_name(subgraph.name),
        )
        # Inputs of a backward graph that are not needed any more, by their numbers there.
        self.bw_donated_idxs = None
        self._inputs = inputs
        self._fake_mode = V.fake_mode
        (output,) = module.graph.find_nodes(op="output")
        self._given = [node.meta["val"] for node in output.args[0]]
        self.graph_outputs = [_declare(f"{self.name}_{n}", x) for n, x in enumerate(self._given)]
        self._definitions: dict[str, tuple[Any, ...]] = {}
        self._process = os.getpid()

    def find_nodes_prefer_channels_last(self) -> OrderedSet[torch.fx.Node]:
        return OrderedSet(n for n in self.module.graph.nodes if CHANNELS_LAST in n.meta)

    def init_wrapper_code(self, *args: Any, **kwargs: Any) -> None:
        super().init_wrapper_code(*args, **kwargs)
        numbers = itertools.count()
        wrapper = self.wrapper_code
        wrapper.src_to_kernel = {}
        wrapper.next_kernel_suffix = lambda: f"{self.name}_{next(numbers)}"
        wrapper.define_kernel = self._define_kernel

    def _define_kernel(self, name: str, *definition: Any) -> None:
        self._definitions[name] = definition

    def output(self, target: Any, args: Any, kwargs: Any) -> None:
        results = copy_shared_results(args[0], self.graph_inputs)
        for number, (result, given) in enumerate(zip(results, self._given, strict=True)):
            if result is not args[0][number]:
                stride = ir.convert_shape_to_inductor(given.stride())
                results[number] = ir.ExternKernel.require_exact_strides(result, stride)
        super().output(target, (results, *args[1:]), kwargs)

    def codegen(self) -> tuple[ValueWithLineMap, ValueWithLineMap]:
        tasks = getattr(self.parent, _TASKS, None)
        code = self.generate() if tasks is None else tasks.get(self)
        wrapper = self._get_root_wrapper()
        if code.kernels:
            # As generating the code here would have done, of which the caller takes a note.
            with V.set_graph_handler(self.parent):
                wrapper.write_triton_header_once()
        if code.imports not in wrapper.imports.getvalue():
            wrapper.imports.splice(code.imports)
        kernels = wrapper.src_to_kernel
        if self.parent.wrapper_code is not wrapper:
            # The caller's graph is partitioned, and its kernels are defined in the parts.
            kernels = vars(wrapper).setdefault(_KERNELS, {})
        for kernel in code.kernels:
            known = kernels.setdefault(kernel.source, kernel.name)
            is_new = known == kernel.name
            wrapper.define_kernel(kernel.name, *(kernel.definition if is_new else (known,)))
        return ValueWithLineMap(code.text, []), ValueWithLineMap("", [])

    def generate(self) -> Code:
        """Lowers the graph and generates its code; what calls it has an object for its code."""
        wrapper = self._get_root_wrapper()
        imports = wrapper.imports.getvalue()
        with (
            V.set_graph_handler(self),
            V.set_fake_mode(self._fake_mode),
            config.patch("graph_partition", False),
        ):
            self.run(*self._inputs)
            self._check_results()
            self._pass_constants()
            text, _ = super().codegen()
            sources = {name: source for source, name in self.wrapper_code.src_to_kernel.items()}
        kernels = [
            Kernel(sources.get(name, name), name, definition)
            for name, definition in self._definitions.items()
        ]
        return Code(text.value, kernels, wrapper.imports.getvalue()[len(imports) :])

    def _get_root_wrapper(self) -> Any:
        """The code of the graph that is called from outside, and of all that it calls."""
        wrapper = self.parent.wrapper_code
        while hasattr(wrapper, "parent_wrapper"):
            wrapper = wrapper.parent_wrapper
        return wrapper

    def _pass_constants(self) -> None:
        """Tensors that lowering has made are kept with that graph, in the process that runs it."""
        if not self.constants:
            return
        if os.getpid() != self._process:
            raise RuntimeError("tensors cannot be sent")  # so that this is done there
        root = self.parent
        while isinstance(root, SubgraphLowering):
            root = root.parent
        root.constants.update(self.constants)

    def _check_results(self) -> None:
        """Checks that the results have the strides that the caller's code uses."""
        for result, given in zip(self.graph_outputs, self._given, strict=True):
            strides = [
                (int(stride), expected)
                for extent, stride, expected in zip(
                    given.shape, result.get_stride(), given.stride(), strict=True
                )
                if extent > 1 and given.numel() > 0
            ]
            if result.get_dtype() != given.dtype or any(a != b for a, b in strides):
                raise InternalError(
                    f"{self.name} gives {result.get_layout()}, not what {given} is like"
                )


def _declare(name: str, value: Any) -> ir.TensorBox:
    """Inductor's object for a result that is a tensor like this one."""
    size, stride = map(ir.convert_shape_to_inductor, (value.shape, value.stride()))
    layout = ir.FixedLayout(value.device, value.dtype, size, stride)
    return ir.TensorBox.create(ir.InputBuffer(name=name, layout=layout))


def copy_shared_results(results: Sequence[Any], inputs: Any) -> list[Any]:
    """Results of a graph as Inductor has them, with a copy of each that is memory of an input or of
    a result before it."""
    taken = set(inputs)
    copied = []
    for result in results:
        if isinstance(result, ir.TensorBox):
            result.realize()
            data = result.data
            base = data.unwrap_view() if isinstance(data, ir.BaseView) else data
            name = base.get_name()
            if name in taken:
                result = lowering.clone(result)
            taken.add(name)
        copied.append(result)
    return copied


def _lower_call(original: Any, subgraph: ir.Subgraph, identifier: str, *operands: Any) -> Any:
    """The lowering of a call of a graph: of an outlined one without that graph."""
    module = subgraph.graph_module
    if OUTLINED not in module.meta:
        return original(subgraph, identifier, *operands)
    caller = V.graph
    if subgraph.graph is None:
        values = caller.current_node.meta["eager_input_vals"][0][2:]
        subgraph.graph = OutlinedLowering(caller, subgraph, values)
        vars(caller).setdefault(_OUTLINED, []).append(subgraph.graph)
    results = original(subgraph, identifier, *operands)
    call = results[0].data.data.inputs[0]
    updates = []
    for number in module.meta[OUTLINED]:
        buffer = call.inputs[number]
        if buffer.get_name() not in caller.graph_inputs:
            raise InternalError(f"{subgraph.name} would write to a copy of input {number}")
        layout = ir.NoneLayout(device=buffer.get_device())
        updates.append(ir.MutationOutput(layout, buffer, call))
    if updates:
        call.get_outputs = lambda: [call, *updates]
    return results


class CodeTasks:
    """The outlined graphs that a graph calls, whose code several processes generate."""

    def __init__(self, caller: GraphLowering, graphs: Sequence[OutlinedLowering]) -> None:
        # Those first that take longest.
        self._graphs = sorted(graphs, key=lambda graph: -len(graph.module.graph.nodes))
        answers = ask_cuda([graph.module for graph in graphs], V.fake_mode)
        # The target is a part of the code, and torch caches it.
        triton_hash_with_backend()
        self._tasks = ForkedTasks(
            [functools.partial(_generate_counted, graph) for graph in self._graphs],
            count_processes(),
            functools.partial(_prepare_fork, caller, answers),
        )

    def get(self, graph: OutlinedLowering) -> Code:
        """A graph's code."""
        code, process, counts = self._tasks.get(self._graphs.index(graph))
        if process != os.getpid():
            metrics.CachedMetricsHelper.apply_deltas(counts)
        return code

    def close(self) -> None:
        self._tasks.close()
        counters["tessera"]["codegen_failed_in_fork"] += len(self._tasks.failures)


def count_processes() -> int:
    """How many processes generate code at once. The user sets it; otherwise it is one for each CPU,
    but no more than Inductor's workers. The processes of a distributed program share the CPUs. Only
    this process generates code if Inductor measures meanwhile, or if this process cannot fork."""
    wanted = settings.codegen_processes
    if wanted == 0:
        local = os.environ.get("LOCAL_WORLD_SIZE", "")
        cpus = usable_cpus() // max(1, int(local) if local.isdecimal() else 1)
        wanted = min(cpus, int(async_compile.get_compile_threads()), _MOST_PROCESSES)
    return max(1, wanted) if can_fork() and not measures() else 1


def measures() -> bool:
    """True if Inductor measures kernels while it lowers a graph or generates code, or writes down
    what it does."""
    return bool(
        config.max_autotune
        or config.max_autotune_gemm
        or config.benchmark_fusion
        or config.benchmark_combo_kernel
        or config.triton.multi_kernel
        or config.triton.autotune_at_compile_time
        or config.trace.enabled
    )


def _generate_counted(graph: OutlinedLowering) -> tuple[Code, int, Any]:
    """A graph's code, the process that generated it, and what Inductor has counted meanwhile."""
    counts = metrics.CachedMetricsHelper()
    code = graph.generate()
    return code, os.getpid(), counts.get_deltas()


def _prepare_fork(caller: GraphLowering, answers: Answers) -> None:
    """Turns off what a fork must not use: a GPU, threads, or workers of this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for the process that waits
    torch.set_num_threads(1)
    async_compile.AsyncCompile.use_process_pool = classmethod(lambda cls: False)
    give_answers(answers)
    caller.init_wrapper_code()


@functools.cache
def source_digest() -> str:
    """A digest of the modules that change what Inductor generates. Its keys of cached graphs know
    torch's version and, without a GPU, nothing else: code from before a mend would be found after.
    """
    files = sorted(pathlib.Path(__file__).parent.glob("*.py"))
    return digest(*(part for file in files for part in (file.name, file.read_bytes()))).hex()


def outline_before_lowering() -> None:
    """Has Inductor divide each graph that it makes kernels of Tessera's of. Graphs stay whole where
    Inductor generates C++ or orders communication."""
    run_passes = compile_fx._recursive_post_grad_passes
    compile_graph = compile_fx.fx_codegen_and_compile
    run, codegen = GraphLowering.run, GraphLowering.codegen
    collect_details = codecache.FxGraphHashDetails.__init__

    def recursive_post_grad_passes(graph_module: Any, is_inference: bool = False) -> None:
        run_passes(graph_module, is_inference)
        is_ours = config.cpu_backend == "triton"
        is_whole = config.cpp_wrapper or V.aot_compilation
        if is_ours and not is_whole and not _has_collectives(graph_module):
            outline_parts(graph_module, is_inference)

    def run_and_begin(self: GraphLowering, *args: Any) -> Any:
        stage("lowering it")
        results = run(self, *args)
        graphs = vars(self).get(_OUTLINED, ())
        if len(graphs) > 1 and not isinstance(self, SubgraphLowering) and count_processes() > 1:
            setattr(self, _TASKS, CodeTasks(self, graphs))
        return results

    def codegen_and_end(self: GraphLowering) -> Any:
        tasks = vars(self).get(_TASKS)
        stage("generating code")
        with contextlib.nullcontext() if tasks is None else contextlib.closing(tasks):
            result = codegen(self)
        if not isinstance(self, SubgraphLowering):
            stage("compiling kernels")
        return result

    def compile_and_collect_rarely(graph_module: Any, *args: Any, **kwargs: Any) -> Any:
        if config.cpu_backend != "triton":
            return compile_graph(graph_module, *args, **kwargs)
        with collected_rarely(), told(graph_module):
            return compile_graph(graph_module, *args, **kwargs)

    def init_details(self: Any, *args: Any, **kwargs: Any) -> None:
        collect_details(self, *args, **kwargs)
        # Parts of the cache's key.
        self.tessera_outlines = (settings.deduplicate, count_processes() > 1)
        self.tessera_sources = source_digest()

    lower_call = functools.partial(_lower_call, lowering.lowerings[_invoke_subgraph])
    lowering.lowerings[_invoke_subgraph] = lower_call
    codecache.FxGraphHashDetails.__init__ = init_details
    compile_fx.fx_codegen_and_compile = compile_and_collect_rarely
    compile_fx._recursive_post_grad_passes = recursive_post_grad_passes
    GraphLowering.run, GraphLowering.codegen = run_and_begin, codegen_and_end


def outline_parts(graph_module: Any, is_inference: bool) -> None:
    """Outlines repeated parts, and parts of the rest, into subgraphs."""
    divides = count_processes() > 1
    if not settings.deduplicate and not divides:
        return
    choose_layouts(graph_module, is_inference)
    move_updates(graph_module.graph)
    if settings.deduplicate:
        deduplicate(graph_module)
    if divides:
        divide(graph_module)


def _has_collectives(graph_module: Any) -> bool:
    return any(
        getattr(node.target, "namespace", "").startswith(("_c10d", "c10d"))
        for node in graph_module.graph.nodes
    )
