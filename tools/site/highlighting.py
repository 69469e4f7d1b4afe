# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Colours for what Pygments does not know: MLIR, and PTX where its version has none."""

from __future__ import annotations

from typing import Any

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text


class MLIRLexer(RegexLexer):
    """The textual form of MLIR, by the shape of its words alone: it is never wrong about a dialect."""

    name = "MLIR"
    aliases = ["mlir"]
    tokens = {
        "root": [
            (r"\s+", Text),
            (r"//.*", Comment.Single),
            (r'"(\\.|[^"\\])*"', String),
            (r"%[\w.$-]+(:\d+)?(#\d+)?", Name.Variable),
            (r"@[\w.$-]+", Name.Function),
            (r"\^[\w.$-]+", Name.Label),
            (r"![a-zA-Z_][\w.$]*", Keyword.Type),
            (r"#[a-zA-Z_][\w.$]*", Name.Constant),
            (r"(tensor|vector|memref|tuple|complex)(?=<)", Keyword.Type),
            (r"(?<![\w.])(bf16|tf32|index|none|[su]?i\d+|f\d+(E\d+M\d+\w*)?)\b", Keyword.Type),
            (r"(?<=x)(bf16|tf32|index|[su]?i\d+|f\d+(E\d+M\d+\w*)?)\b", Keyword.Type),
            (r"(?<=[\d?])x(?=[\d?!a-z])", Punctuation),
            (words(("true", "false", "unit", "dense", "array"), suffix=r"\b"), Keyword.Constant),
            (r"[a-zA-Z_][\w$]*(\.[\w$]+)+", Keyword),
            (words(("module", "attributes", "loc", "to", "step", "return"), suffix=r"\b"), Keyword),
            (r"-?(0x[0-9a-fA-F]+|\d+\.\d*([eE][-+]?\d+)?|\d+(?=x)|\d+)", Number),
            (r"->|[=:?*+-]", Operator),
            (r"[a-zA-Z_][\w$-]*", Name),
            (r"[\[\](){}<>,|/&;.^~`'$!#@%]", Punctuation),
            (r".", Text),
        ]
    }


class PTXLexer(RegexLexer):
    """NVIDIA's PTX."""

    name = "PTX"
    aliases = ["ptx"]
    tokens = {
        "root": [
            (r"\s+", Text),
            (r"//.*", Comment.Single),
            (r"/\*(.|\n)*?\*/", Comment.Multiline),
            (r'"(\\.|[^"\\])*"', String),
            (r"%[\w.]+", Name.Variable),
            (r"@!?%\w+", Name.Label),
            (r"\$\w+:?", Name.Label),
            (r"\.[a-zA-Z_]\w*", Keyword.Type),
            (r"0[fFdDxX][0-9a-fA-F]+|-?\d+(\.\d+)?", Number),
            (r"[a-zA-Z_]\w*(?=[.\s;])", Keyword),
            (r"[a-zA-Z_]\w*", Name),
            (r"[\[\](){}<>,;|+=*&^-]", Punctuation),
            (r".", Text),
        ]
    }


class LLVMLexer(RegexLexer):
    """LLVM IR of this version, whose words are more than Pygments knows."""

    name = "LLVM IR"
    aliases = ["llvm"]
    tokens = {
        "root": [
            (r"\s+", Text),
            (r";.*", Comment.Single),
            (r'[@%$]"[^"]*"', Name.Variable),
            (r'c?"(\\.|[^"\\])*"', String),
            (r"^[\w.$-]+:", Name.Label),
            (r"%[\w.$-]+", Name.Variable),
            (r"@[\w.$-]+", Name.Function),
            (r"[!#][\w.$-]*", Name.Constant),
            (r"\b(i\d+|half|bfloat|float|double|ptr|void|label|metadata|token)\b", Keyword.Type),
            (r"\b(true|false|null|undef|poison|zeroinitializer|splat)\b", Keyword.Constant),
            (r"-?(0x[0-9a-fA-F]+|\d+\.\d+(e[-+]?\d+)?|\d+)", Number),
            (r"[a-z_][\w.]*", Keyword),
            (r"[=*]", Operator),
            (r".", Punctuation),
        ]
    }


class TableGenLexer(RegexLexer):
    """TableGen, with descriptions in Markdown and pieces of C++ as the texts that they are."""

    name = "TableGen"
    aliases = ["tablegen"]
    tokens = {
        "root": [
            (r"\s+", Text),
            (r"//.*", Comment.Single),
            (r"#\w+.*", Comment.Preproc),
            (r"\[\{(.|\n)*?\}\]", String),
            (r'"(\\.|[^"\\])*"', String),
            (
                words(("class", "def", "defm", "let", "in", "include", "multiclass"), suffix=r"\b"),
                Keyword,
            ),
            (
                words(("bit", "bits", "int", "string", "list", "dag", "code"), suffix=r"\b"),
                Keyword.Type,
            ),
            (r"\$\w+", Name.Variable),
            (r"!\w+", Name.Builtin),
            (r"-?\d+", Number),
            (r"[A-Za-z_]\w*", Name),
            (r".", Punctuation),
        ]
    }


def register(app: Any) -> None:
    """Has Sphinx know the languages of code blocks."""
    app.add_lexer("mlir", MLIRLexer)
    app.add_lexer("ptx", PTXLexer)
    app.add_lexer("llvm", LLVMLexer)
    app.add_lexer("tablegen", TableGenLexer)
    # Assembly of x86 is shown as GNU's assembler writes it.
    from pygments.lexers.asm import GasLexer

    app.add_lexer("asm", GasLexer)
