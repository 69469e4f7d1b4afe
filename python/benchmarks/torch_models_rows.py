# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models of torch_models.py: a dozen each of timm, torchvision and transformers.

They are made of their libraries' classes with random weights; nothing is downloaded. Those of
transformers have few layers of the real widths. `small` makes them small enough for a CPU.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as functional
from torch import nn

FAMILIES = ("timm", "torchvision", "transformers")


@dataclass
class Model:
    """A model and what it is called with."""

    module: nn.Module
    inputs: dict[str, torch.Tensor]
    labels: torch.Tensor
    """Of the classes of its last dimension, for training."""

    def infer(self) -> Callable[..., torch.Tensor]:
        """From inputs to what the model gives for each class."""
        return lambda module, inputs: _logits(module(**inputs))

    def loss(self) -> Callable[..., torch.Tensor]:
        """From inputs and labels to a number."""

        def loss(module: nn.Module, inputs: Any, labels: torch.Tensor) -> torch.Tensor:
            logits = _logits(module(**inputs))
            return functional.cross_entropy(logits.flatten(0, -2).float(), labels.flatten())

        return loss


def _logits(results: Any) -> torch.Tensor:
    if isinstance(results, torch.Tensor):
        return results
    logits: torch.Tensor = results["logits"]
    return logits


@dataclass(frozen=True)
class _Image:
    """A model of images."""

    name: str
    size: int = 224
    small: str = ""
    """The model that stands for it on a CPU."""
    small_size: int = 64
    small_options: tuple[tuple[str, Any], ...] = ()


TIMM = (
    _Image("resnet50", small="resnet18"),
    _Image("convnext_tiny", small="convnext_atto"),
    _Image("vit_base_patch16_224", small="vit_tiny_patch16_224", small_size=224,
           small_options=(("depth", 2),)),
    _Image("beit_base_patch16_224", small_size=224,
           small_options=(("depth", 2), ("embed_dim", 192), ("num_heads", 3))),
    _Image("swin_tiny_patch4_window7_224", small_size=224,
           small_options=(("depths", (1, 2, 1, 1)),)),
    _Image("mixer_b16_224", small="mixer_s32_224", small_size=224),
    _Image("efficientnet_b0"),
    _Image("mobilenetv3_large_100", small="mobilenetv3_small_050"),
    _Image("regnety_016", small="regnety_002"),
    _Image("xcit_tiny_12_p16_224", small="xcit_nano_12_p16_224", small_size=224,
           small_options=(("depth", 2),)),
    _Image("levit_128", small="levit_128s", small_size=224),
    _Image("nfnet_l0", small="eca_nfnet_l0", small_options=()),
)  # fmt: skip

TORCHVISION = (
    _Image("resnet18"),
    _Image("alexnet", small_size=96),
    _Image("vgg11_bn", small="squeezenet1_0"),
    _Image("squeezenet1_1"),
    _Image("densenet121"),
    _Image("mobilenet_v2"),
    _Image("shufflenet_v2_x1_0", small="shufflenet_v2_x0_5"),
    _Image("mnasnet1_0", small="mnasnet0_5"),
    _Image("efficientnet_v2_s", small="mobilenet_v3_small"),
    _Image("regnet_y_400mf"),
    _Image("vit_b_16", small_size=224),
    _Image("swin_t", small_size=64),
)


@dataclass(frozen=True)
class _Text:
    """A model of transformers; the names of its configuration differ."""

    name: str
    config: str
    head: str
    width: int = 768
    heads: int = 12
    layers: int = 4
    options: tuple[tuple[str, Any], ...] = ()
    names: tuple[str, str, str, str] = (
        "hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size",
    )  # fmt: skip
    inner: float = 4
    decoder: bool = False
    """Whether it takes tokens for its decoder, too."""


_GPT2_NAMES = ("n_embd", "n_head", "n_layer", "n_inner")
_BART_NAMES = ("d_model", "encoder_attention_heads", "encoder_layers", "encoder_ffn_dim")
_T5_NAMES = ("d_model", "num_heads", "num_layers", "d_ff")
TRANSFORMERS = (
    _Text("bert", "BertConfig", "BertForMaskedLM"),
    _Text("albert", "AlbertConfig", "AlbertForMaskedLM"),
    _Text("distilbert", "DistilBertConfig", "DistilBertForMaskedLM",
          names=("dim", "n_heads", "n_layers", "hidden_dim")),
    _Text("deberta_v2", "DebertaV2Config", "DebertaV2ForMaskedLM"),
    _Text("gpt2", "GPT2Config", "GPT2LMHeadModel", names=_GPT2_NAMES),
    _Text("opt", "OPTConfig", "OPTForCausalLM", options=(("word_embed_proj_dim", -1),),
          names=("hidden_size", "num_attention_heads", "num_hidden_layers", "ffn_dim")),
    _Text("gpt_neox", "GPTNeoXConfig", "GPTNeoXForCausalLM"),
    _Text("llama", "LlamaConfig", "LlamaForCausalLM", 2048, 32, inner=2.75,
          options=(("num_key_value_heads", 8),)),
    _Text("qwen3", "Qwen3Config", "Qwen3ForCausalLM", 1024, 16, inner=3,
          options=(("num_key_value_heads", 8), ("head_dim", 64))),
    _Text("gemma2", "Gemma2Config", "Gemma2ForCausalLM", 1024, 8,
          options=(("num_key_value_heads", 4), ("head_dim", 128))),
    _Text("t5", "T5Config", "T5ForConditionalGeneration", 512, 8, names=_T5_NAMES, decoder=True),
    _Text("bart", "BartConfig", "BartForConditionalGeneration", names=_BART_NAMES, decoder=True,
          options=(("decoder_layers", -2), ("decoder_attention_heads", -3))),
)  # fmt: skip


def names_of(family: str) -> list[str]:
    """The models of a family, in the order in which they are run."""
    rows: Any = {"timm": TIMM, "torchvision": TORCHVISION, "transformers": TRANSFORMERS}[family]
    return [row.name for row in rows]


def missing(family: str) -> str:
    """Why a family cannot be run here; nothing where it can."""
    try:
        importlib.import_module(family)
    except Exception as error:  # what is installed may not fit this torch
        return f"{type(error).__name__}: {error}"
    return ""


def make(family: str, name: str, small: bool, batch: int = 0) -> Model:
    """A model with random weights, on the CPU, in float32."""
    torch.manual_seed(0)
    if family == "transformers":
        return _make_text(next(row for row in TRANSFORMERS if row.name == name), small, batch)
    row = next(row for row in (TIMM if family == "timm" else TORCHVISION) if row.name == name)
    size = row.small_size if small else row.size
    chosen = (small and row.small) or row.name
    if family == "timm":
        import timm

        options = dict(row.small_options) if small else {}
        module = timm.create_model(chosen, pretrained=False, num_classes=1000, **options)
    else:
        import torchvision

        module = getattr(torchvision.models, chosen)(weights=None, num_classes=1000)
    still(module)
    batch = batch or (2 if small else 16)
    parameter = "x" if family == "timm" else next(iter(_parameters(module)))
    images = torch.randn(batch, 3, size, size)
    return Model(module, {parameter: images}, torch.randint(0, 1000, (batch,)))


def _parameters(module: nn.Module) -> list[str]:
    import inspect

    return list(inspect.signature(module.forward).parameters)


def _make_text(row: _Text, small: bool, batch: int) -> Model:
    import transformers

    width, heads, layers, inner = row.names
    divided = 8 if small and row.width >= 1024 else 4 if small else 1
    values: dict[str, Any] = {
        width: row.width // divided,
        heads: max(1, row.heads // divided),
        layers: 2 if small else row.layers,
        inner: int(row.width // divided * row.inner),
        "vocab_size": 1000 if small else 32000,
        "use_cache": False,
        "pad_token_id": 0,
    }
    for name, value in row.options:
        if name == "num_key_value_heads":
            value = max(1, value // divided)
        elif value == -1:
            value = values[width]
        elif value == -2:
            value = values[layers]
        elif value == -3:
            value = values[heads]
        values[name] = value
    if row.names == _BART_NAMES:
        values["decoder_ffn_dim"] = values[inner]
    config = getattr(transformers, row.config)(**values)
    module = getattr(transformers, row.head)(config)
    still(module)
    shape = (batch or (2 if small else 8), 48 if small else 256)
    tokens = torch.randint(1, values["vocab_size"], shape)
    inputs = {"input_ids": tokens}
    if row.decoder:
        inputs["decoder_input_ids"] = tokens.flip(1).contiguous()
    return Model(module, inputs, torch.randint(1, values["vocab_size"], shape))


def still(module: nn.Module) -> None:
    """Nothing by chance: results of training are compared."""
    for part in module.modules():
        if "drop" in type(part).__name__.lower() or "StochasticDepth" == type(part).__name__:
            for name in ("p", "drop_prob"):
                if isinstance(getattr(part, name, None), float):
                    setattr(part, name, 0.0)
        for name, value in list(vars(part).items()):
            if isinstance(value, float) and ("dropout" in name or name == "drop_prob"):
                setattr(part, name, 0.0)


# --- For tessera.torch.optimize -----------------------------------------------------------

OPTIMIZED = ("bert-base", "llama-1b")
SHAPES = ((1, 128), (1, 512), (4, 128), (16, 128), (16, 512))
"""Batch and length."""


def make_whole(name: str, small: bool, batch: int, length: int) -> Model:
    """A model of transformers with all its layers: a BERT-base, a llama of a billion parameters."""
    import transformers

    torch.manual_seed(0)
    shared: dict[str, Any] = {"use_cache": False, "pad_token_id": 0}
    if name == "bert-base":
        config = transformers.BertConfig(**shared, **({"num_hidden_layers": 2} if small else {}))
        module: nn.Module = transformers.BertForMaskedLM(config)
    else:
        shape = {
            "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
            "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
            "max_position_embeddings": 2048, "tie_word_embeddings": True,
        }  # fmt: skip
        if small:
            shape.update(hidden_size=512, intermediate_size=1024, num_hidden_layers=2)
            shape.update(num_attention_heads=8, num_key_value_heads=2, vocab_size=4096)
        config = transformers.LlamaConfig(**shared, **shape)
        module = transformers.LlamaForCausalLM(config)
    still(module)
    tokens = torch.randint(1, config.vocab_size, (batch, length))
    return Model(module, {"input_ids": tokens}, tokens)
