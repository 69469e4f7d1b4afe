# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Switches, by Triton's names: attributes of a few objects, each with an environment variable.

    triton.knobs.cache.dir = "/fast/disk"
    with triton.knobs.runtime.scope():
        triton.knobs.runtime.interpret = True

A switch with a meaning here sets a setting of Tessera (docs/HowTo/RunTritonCode.md has the table).
A TRITON_ variable that is in the environment at import does so, too, unless Tessera's own variable
is set. The others are kept and change nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Callable, Iterator, Optional

from tessera.errors import UnsupportedError
from tessera.runtime.hooks import CompileTimes, HookChain, hooks
from tessera.settings import note_change, settings

propagate_env = True
"""True if assigning to a knob also sets its environment variable."""


class Env:
    """Assigned to a knob, this has the environment decide again."""


env = Env()


def getenv(key: str, default: Optional[str] = None) -> Optional[str]:
    """The text of an environment variable."""
    return os.environ.get(key, default)


def _truth(text: str) -> bool:
    return text.strip().lower() in ("1", "true", "on", "y", "yes")


class env_base:
    """A knob: its value is assigned, or from the environment, or a default."""

    def __init__(self, key: str, default: Any = None) -> None:
        self.key = key
        self.default = default
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Optional[type] = None) -> Any:
        if instance is not None and self.name in vars(instance):
            return self.transform(vars(instance)[self.name])
        return self.get()

    def __set__(self, instance: Any, value: Any) -> None:
        if isinstance(value, Env):
            self.__delete__(instance)
            return
        vars(instance)[self.name] = value
        if propagate_env and (value is None or isinstance(value, (bool, str, int))):
            if value is None:
                os.environ.pop(self.key, None)
            else:
                os.environ[self.key] = str(int(value) if isinstance(value, bool) else value)
        _apply()

    def __delete__(self, instance: Any) -> None:
        vars(instance).pop(self.name, None)
        _apply()

    def get(self) -> Any:
        """The value in the environment, else the default."""
        text = getenv(self.key)
        if text is None:
            return self.default() if callable(self.default) else self.default
        return self.parse(text)

    def parse(self, text: str) -> Any:
        """The value that a text stands for."""
        return text

    def transform(self, value: Any) -> Any:
        """The value that a read returns after an assignment."""
        return value


class env_str(env_base):
    """A text."""


class env_opt_str(env_base):
    """A text, or None."""


class env_bool(env_base):
    """A truth value."""

    def __init__(self, key: str, default: bool = False) -> None:
        super().__init__(key, default)

    def parse(self, text: str) -> bool:
        return _truth(text)


class env_opt_bool(env_base):
    """A truth value, or None."""

    def parse(self, text: str) -> bool:
        return _truth(text)


class env_int(env_base):
    """A whole number."""

    def __init__(self, key: str, default: int = 0) -> None:
        super().__init__(key, default)

    def parse(self, text: str) -> int:
        try:
            return int(text)
        except ValueError:
            raise RuntimeError(f"{self.key} is {text!r}, and must be an integer") from None


class env_class(env_base):
    """A class, as "module:Class"."""

    def __init__(self, key: str, type: str) -> None:
        super().__init__(key)
        self.type = type

    def parse(self, text: str) -> Any:
        import importlib

        module, colon, name = text.partition(":")
        if not colon:
            raise RuntimeError(f"{self.key} is {text!r}, and must be MODULE:CLASS")
        cls = getattr(importlib.import_module(module), name)
        if not any(base.__name__ == self.type for base in cls.__mro__):
            raise RuntimeError(f"{self.key} is {text!r}, which is no {self.type}")
        return cls


@dataclass
class NvidiaTool:
    """A program of NVIDIA's."""

    path: str
    version: str

    @staticmethod
    def from_path(path: str) -> "Optional[NvidiaTool]":
        """The program there, or None if it is none."""
        try:
            text = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        except OSError:
            return None
        release = re.search(r"release (\d+\.\d+)", text)
        return NvidiaTool(path, release[1]) if release else None


class env_nvidia_tool(env_base):
    """A program of NVIDIA's; RuntimeError where it is not to be had."""

    def __init__(self, binary: str) -> None:
        super().__init__("_".join(["TRITON", *binary.upper().split("-"), "PATH"]))
        self.binary = binary

    def get(self) -> NvidiaTool:
        return self.transform(getenv(self.key))

    def transform(self, value: Any) -> NvidiaTool:
        for path in filter(None, (value, self._found())):
            if (tool := NvidiaTool.from_path(path)) is not None:
                return tool
        raise RuntimeError(f"there is no {self.binary}: set {self.key}")

    def _found(self) -> Optional[str]:
        import shutil

        if self.binary.startswith("ptxas"):
            from tessera.compiler.toolchain import find_ptxas

            return find_ptxas() or None
        return shutil.which(self.binary) or shutil.which(self.binary, path="/usr/local/cuda/bin")


class base_knobs:
    """A group of knobs."""

    @property
    def knob_descriptors(self) -> "dict[str, env_base]":
        """The knobs that have environment variables."""
        return {name: item for name, item in vars(type(self)).items() if isinstance(item, env_base)}

    @property
    def knobs(self) -> "dict[str, Any]":
        """Their values."""
        return {name: getattr(self, name) for name in self.knob_descriptors}

    def copy(self) -> Any:
        """Another group with the same values assigned."""
        other = type(self)()
        vars(other).update(vars(self))
        return other

    def reset(self) -> Any:
        """Has the environment decide on all of them; returns the group."""
        for name in self.knob_descriptors:
            delattr(self, name)
        return self

    @contextmanager
    def scope(self) -> "Iterator[None]":
        """The end of a `with` block undoes the assignments in it."""
        before = dict(vars(self))
        variables = {knob.key: getenv(knob.key) for knob in self.knob_descriptors.values()}
        try:
            yield
        finally:
            vars(self).clear()
            vars(self).update(before)
            for key, value in variables.items():
                if value is None:
                    os.environ.pop(key, None)
                else:
                    os.environ[key] = value
            _apply()


class _OfHooks:
    """An attribute that is one of `tessera.runtime.hooks`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Optional[type] = None) -> Any:
        return getattr(hooks, self.name)

    def __set__(self, instance: Any, value: Any) -> None:
        if isinstance(getattr(hooks, self.name), HookChain):
            chain = HookChain(reversed=self.name.endswith(("exit", "end")))
            for call in value.calls if isinstance(value, HookChain) else filter(None, [value]):
                chain.add(call)
            value = chain
        setattr(hooks, self.name, value)
        note_change()


class _StagesHook:
    """A hook that would replace stages of Triton's compiler: there can be none."""

    def __get__(self, instance: Any, owner: Optional[type] = None) -> None:
        return None

    def __set__(self, instance: Any, value: Any) -> None:
        if value is not None:
            raise UnsupportedError(
                "E074",
                "knobs.runtime.add_stages_inspection_hook replaces stages by functions of Python, "
                "and those here are C++",
                "kernel.asm has the text of each stage, and TESSERA_OVERRIDE_DIR puts one back that "
                "was edited",
            )


class build_knobs(base_knobs):
    """How C compilers are called: there is nothing to compile."""

    cc = env_opt_str("CC")
    cudacrt_path = env_opt_str("TRITON_CUDACRT_PATH")
    cudart_path = env_opt_str("TRITON_CUDART_PATH")
    impl: Any = None

    @property
    def backend_dirs(self) -> "set[str]":
        """The folders of CUDA's own files that were named."""
        return {self.cudacrt_path, self.cudart_path} - {None}


class redis_knobs(base_knobs):
    """A cache of several machines."""

    key_format = env_str("TRITON_REDIS_KEY_FORMAT", "triton:{key}:{filename}")
    host = env_str("TRITON_REDIS_HOST", "localhost")
    port = env_int("TRITON_REDIS_PORT", 6379)


def _folder(name: str) -> "Callable[[], str]":
    return lambda: os.path.join(cache.home_dir, ".triton", name)


def _cache_folder() -> str:
    if "TRITON_HOME" in os.environ:
        return _folder("cache")()
    from tessera.compiler.cache import default_cache

    return str(default_cache().root)


class cache_knobs(base_knobs):
    """Folders of caches and dumps."""

    home_dir = env_str("TRITON_HOME", os.path.expanduser("~/"))
    dump_dir = env_str("TRITON_DUMP_DIR", _folder("dump"))
    override_dir = env_str("TRITON_OVERRIDE_DIR", _folder("override"))
    dir = env_str("TRITON_CACHE_DIR", _cache_folder)
    manager_class = env_class("TRITON_CACHE_MANAGER", "CacheManager")
    remote_manager_class = env_class("TRITON_REMOTE_CACHE_BACKEND", "RemoteCacheBackend")

    def get_triton_dir(self, dirname: str) -> str:
        """A folder of Triton's own."""
        return _folder(dirname)()


class compilation_knobs(base_knobs):
    """How kernels are compiled."""

    override = env_bool("TRITON_KERNEL_OVERRIDE")
    dump_ir = env_bool("TRITON_KERNEL_DUMP")
    dump_ir_extract_di_local_variables = env_bool("LLVM_EXTRACT_DI_LOCAL_VARIABLES")
    store_binary_only = env_bool("TRITON_STORE_BINARY_ONLY")
    always_compile = env_bool("TRITON_ALWAYS_COMPILE")
    use_ir_loc = env_opt_str("USE_IR_LOC")
    enable_asan = env_bool("TRITON_ENABLE_ASAN")
    disable_line_info = env_bool("TRITON_DISABLE_LINE_INFO")
    front_end_debugging = env_bool("TRITON_FRONT_END_DEBUGGING")
    allow_non_constexpr_globals = env_bool("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS")
    instrumentation_mode = env_str("TRITON_INSTRUMENTATION_MODE", "")
    listener = _OfHooks("compilation_listener")


class autotuning_knobs(base_knobs):
    """How configurations are chosen."""

    cache = env_bool("TRITON_CACHE_AUTOTUNING")
    print = env_bool("TRITON_PRINT_AUTOTUNING")
    listener = _OfHooks("autotuning_listener")


class runtime_knobs(base_knobs):
    """How kernels are launched."""

    interpret = env_bool("TRITON_INTERPRET")
    debug = env_bool("TRITON_DEBUG")
    override_arch = env_opt_str("TRITON_OVERRIDE_ARCH")
    launch_enter_hook = _OfHooks("launch_enter")
    launch_exit_hook = _OfHooks("launch_exit")
    kernel_load_start_hook = _OfHooks("kernel_load_start")
    kernel_load_end_hook = _OfHooks("kernel_load_end")
    jit_cache_hook = _OfHooks("jit_cache")
    jit_post_compile_hook = _OfHooks("jit_post_compile")
    add_stages_inspection_hook = _StagesHook()


class language_knobs(base_knobs):
    """Defaults of kernels."""

    fp32_default = env_opt_str("TRITON_F32_DEFAULT")
    default_fp_fusion = env_bool("TRITON_DEFAULT_FP_FUSION", True)


class nvidia_knobs(base_knobs):
    """NVIDIA's tools."""

    cuobjdump = env_nvidia_tool("cuobjdump")
    nvdisasm = env_nvidia_tool("nvdisasm")
    ptxas = env_nvidia_tool("ptxas")
    ptxas_blackwell = env_nvidia_tool("ptxas-blackwell")
    dump_nvptx = env_bool("NVPTX_ENABLE_DUMP")
    disable_ptxas_opt = env_bool("DISABLE_PTXAS_OPT")
    ptxas_options = env_opt_str("PTXAS_OPTIONS")
    mock_ptx_version = env_opt_str("TRITON_MOCK_PTX_VERSION")
    dump_ptxas_log = env_bool("TRITON_DUMP_PTXAS_LOG")
    libdevice_path = env_opt_str("TRITON_LIBDEVICE_PATH")
    libcuda_path = env_opt_str("TRITON_LIBCUDA_PATH")


class amd_knobs(base_knobs):
    """AMD's, which change nothing."""

    use_buffer_ops = env_bool("AMDGCN_USE_BUFFER_OPS", True)
    use_buffer_atomics = env_bool("AMDGCN_USE_BUFFER_ATOMICS", True)
    buffer_ops_analyze_small_tensor_range = env_bool("AMDGCN_ANALYZE_SMALL_TENSOR_RANGE")
    dump_amdgcn = env_bool("AMDGCN_ENABLE_DUMP")
    libhip_path = env_opt_str("TRITON_LIBHIP_PATH")
    use_block_pingpong = env_opt_bool("TRITON_HIP_USE_BLOCK_PINGPONG")
    use_in_thread_transpose = env_opt_bool("TRITON_HIP_USE_IN_THREAD_TRANSPOSE")
    use_async_copy = env_bool("TRITON_HIP_USE_ASYNC_COPY")
    scalarize_packed_fops = env_bool("AMDGCN_SCALARIZE_PACKED_FOPS")


class proton_knobs(base_knobs):
    """A profiler's."""

    disable = env_bool("TRITON_PROTON_DISABLE")
    enable_nvtx = env_bool("TRITON_ENABLE_NVTX", True)


build = build_knobs()
redis = redis_knobs()
cache = cache_knobs()
compilation = compilation_knobs()
autotuning = autotuning_knobs()
runtime = runtime_knobs()
language = language_knobs()
nvidia = nvidia_knobs()
amd = amd_knobs()
proton = proton_knobs()


def refresh_knobs() -> None:
    """Looks at the environment again."""
    _apply()


def _wanted() -> "dict[str, tuple[Any, bool]]":
    """The values that knobs give to settings of Tessera, and whether they were assigned; None for
    no value."""

    def said(group: base_knobs, name: str, on: Any = True) -> "tuple[Any, bool]":
        knob = group.knob_descriptors[name]
        assigned = name in vars(group)
        is_said = bool(on) and (assigned or knob.key in os.environ or on is not True)
        return (getattr(group, name) if is_said else None), assigned

    cache_dir = said(cache, "dir")
    if cache_dir[0] is None and said(cache, "home_dir")[0] is not None:
        cache_dir = _folder("cache")(), "home_dir" in vars(cache)
    ptxas = vars(nvidia).get("ptxas", os.environ.get("TRITON_PTXAS_PATH"))
    always, is_assigned = said(compilation, "always_compile")
    return {
        "cache_dir": cache_dir,
        "dump_dir": said(cache, "dump_dir", "dump" if compilation.dump_ir else False),
        "override_dir": said(cache, "override_dir", "use" if compilation.override else False),
        "cache": ("off" if always else None, is_assigned),
        "interpret": said(runtime, "interpret"),
        "debug": said(runtime, "debug"),
        "libdevice": said(nvidia, "libdevice_path"),
        "ptxas": (ptxas if isinstance(ptxas, str) else None, "ptxas" in vars(nvidia)),
    }


_applied: "dict[str, Any]" = {}
"""The values of settings before a knob changed them, by their names."""


def _apply() -> None:
    if "proton" not in globals():  # still being imported
        return
    for name, (value, assigned) in _wanted().items():
        variable = getattr(type(settings), name).variable
        if value is not None and not assigned and variable in os.environ:
            continue  # of two variables Tessera's own counts
        if value is None:
            if name in _applied:
                setattr(settings, name, _applied.pop(name))
        elif getattr(settings, name) != value:
            _applied.setdefault(name, getattr(settings, name))
            setattr(settings, name, value)


class _Knobs(ModuleType):
    """This module, in which a group may be replaced by another."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, base_knobs):
            _apply()


sys.modules[__name__].__class__ = _Knobs
_apply()
