# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Commands of the pages: which are run, and what is checked of those that would take too long."""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

from docs.pages import ROOT

# What is not run, by how the command begins, and why. It is checked instead: that the program,
# its subcommands and its options exist.
LONG = {
    "tools/check": "runs every test, this one among them",
    "tools/demo": "builds the release, then runs what python/test/execution runs",
    "tools/wheel": "builds the release; tools/check has it as a check of its own",
    "tools/bench": "takes minutes, and times are for a machine that does nothing else",
    "tools/docs": "builds the site into the checkout; tools/check has it as a check of its own",
    "tools/gpu_bundle": "downloads the assembler of GPU code",
    "tools/gpu_run.sh": "is for another machine",
    "tools/dev/mutate_mlir.py": "is a campaign",
    "tools/dev/mutate_kernels.py": "is a campaign",
    "tools/dev/stress_forks.py": "is a campaign",
    "tools/dev/stress_kernels.py": "is a campaign",
    "tools/dev/upstream_suite.py": "wants a checkout of another project",
    "tools/dev/unpack_system.sh": "downloads packages of another system",
    "tools/dev/check_sanitized.sh": "makes the build with sanitizers, which takes half an hour",
    "tools/dev/run_sanitized.sh": "wants the build with sanitizers, which takes half an hour",
    "tools/dev/generate_docs.py": "writes into the checkout; test_generated_pages.py runs it",
    "python -m tessera tune ops": "takes a minute, and times are for a machine that does nothing else",
    "python -m tessera.testing.fuzz": "is a campaign; python/test/fuzz runs short ones",
    "python -m tessera.testing.fuzz.launches": "is a campaign; python/test/fuzz runs short ones",
    "python python/test/docs/run_page.py README.md": "test_snippets.py runs it",
    "python -m pytest": "is a check of its own",
    "pytest": "is a check of its own",
    "lit": "is a check of its own",
    "cmake": "is a build",
    "ctest": "is a check of its own",
    "git clone": "needs a network",
    "git": "changes a checkout",
    "pip": "needs a network",
    "python -m pip": "needs a network",
    "uv": "needs a network",
    "apt-get": "changes the system",
    "sudo": "changes the system",
    "nvidia-smi": "needs a GPU",
    "python python/examples/all_reduce.py": "needs several GPUs",
    "torchrun": "needs several GPUs",
}
# Where the options of a script are that sets things up before it looks at them.
HELP = {
    "tools/check": [sys.executable, "tools/dev/run_checks.py"],
    "tools/demo": [sys.executable, "python/examples/demo.py"],
    "tools/docs": [sys.executable, "tools/site/build_site.py"],
    "tools/wheel": [sys.executable, "tools/wheel"],
}
# Programs of the system, of which no more is asked than that they are named right.
SYSTEM = {
    "git", "pip", "apt-get", "sudo", "nvidia-smi", "pytest", "lit", "ctest", "cd", "export", "source",
    "uv", "python", "python3", "compute-sanitizer", "torchrun",
}  # fmt: skip
TOOLS = [path.name for path in (ROOT / "tools").glob("tessera-*")]


def commands_of(text: str) -> list[tuple[str, str]]:
    """The commands of a fence, each with the output that the page shows of it.

    In a fence with lines that begin with `$ `, other lines are output; in any other fence,
    all lines are commands. A command goes on over lines as a shell would let it.
    """
    lines = text.splitlines()
    prompts = any(line.startswith("$ ") for line in lines)
    found: list[tuple[str, str]] = []
    pending: list[str] = []
    for line in lines:
        if pending:
            pending.append(line.removeprefix("> ") if prompts else line)
        elif prompts and not line.startswith("$ "):
            if found:
                found[-1] = (found[-1][0], found[-1][1] + line + "\n")
            continue
        elif line.strip() and not line.lstrip().startswith("#"):
            pending.append(line.removeprefix("$ ") if prompts else line)
        else:
            continue
        if is_complete("\n".join(pending)):
            found.append(("\n".join(pending), ""))
            pending = []
    if pending:
        found.append(("\n".join(pending), ""))
    return found


def is_complete(command: str) -> bool:
    """Whether a shell would run this, and not wait for more lines."""
    if re.search(r"(\\|\||&&)\s*$", command):
        return False
    checked = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True)
    return checked.returncode == 0 and not checked.stderr


def simple_commands(command: str) -> list[list[str]]:
    """The words of each program that a line of a shell starts."""
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars="|&;")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    found: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("|&;"):
            found.append([])
        elif found[-1] or not re.match(r"\w+=", word):
            found[-1].append(word)
    return [words for words in found if words]


def why_long(words: list[str]) -> str:
    """Why a command is not run; nothing where it is."""
    text = " ".join(words)
    for begin, why in LONG.items():
        if text == begin or text.startswith(begin + " "):
            return why
    return ""


@functools.lru_cache(maxsize=None)
def help_of(command: tuple[str, ...]) -> str | None:
    """What a program says of itself, None where it refuses."""
    result = subprocess.run(
        [*command, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(),
    )
    return result.stdout + result.stderr if result.returncode == 0 else None


def environment() -> dict[str, str]:
    """The shell's, with the tools of this build and this Python found first."""
    path = [str(ROOT / "build/dev/bin"), os.path.dirname(sys.executable), "/usr/lib/llvm-22/bin"]
    return {
        **os.environ,
        "PATH": os.pathsep.join([*path, os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT / "python"),
    }


def reader_environment(wheel: bool) -> dict[str, str]:
    """The shell's, as a reader's is: without what this Python, its tests and its build have set.

    Where Tessera is a wheel, the environment in which it is installed is active.
    """
    folder = os.path.dirname(sys.executable)
    path = [one for one in os.environ["PATH"].split(os.pathsep) if one != folder]
    path = [one for one in path if not one.startswith(str(ROOT)) and "llvm" not in one]
    found = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    return {**found, "PATH": os.pathsep.join([folder, *path] if wheel else path)}


def names_checkout(words: list[str]) -> bool:
    """Whether a command is for a checkout: it names a file of it, a build, or a program that is built."""
    begins = ("tools/", "python/", "docs/", "build/", "test/", ".venv/")
    return any(word.startswith(begins) for word in words) or words[0] in TOOLS


def what_is_wrong(words: list[str]) -> str:
    """What a command names that does not exist; nothing where all of it does."""
    program = words[0]
    if program == "cmake":
        return wrong_with_cmake(words)
    options = [re.split(r"[=\[]", word)[0] for word in words if re.match(r"--[a-z]", word)]
    if program in ("python", "python3") and words[1:2] == ["-m"] and len(words) > 2:
        if not words[2].startswith("tessera"):
            return ""
        command = [sys.executable, "-m", words[2]]
        for word in words[3:]:  # subcommands
            if not re.fullmatch(r"[a-z]+", word) or help_of((*command, word)) is None:
                break
            command.append(word)
        else:
            word = ""
        if (
            word
            and re.fullmatch(r"[a-z]+", word)
            and re.search(r"\{[\w,-]+\}", help_of(tuple(command)) or "")
        ):
            return f"`{' '.join(words[:3])}` has no command `{word}`"
        if "--as-triton" in options or command[-1] == "run":
            # What comes behind the program that is run is that program's.
            options = [option for option in options if option == "--as-triton"]
    elif program in HELP:
        command = HELP[program]
    elif "/" in program and not program.startswith(("/", "~", ".venv", "build/")):
        path = ROOT / program
        if not os.access(path, os.X_OK):
            return f"no program {program}"
        if path.suffix == ".sh" or program in ("tools/bench", "tools/gpu_bundle"):
            return wrong_with_script(words)
        command = [sys.executable, str(path)] if path.suffix == ".py" else [str(path)]
    elif os.path.basename(program) in TOOLS:
        found = shutil.which(os.path.basename(program), path=environment()["PATH"])
        if not found:
            return f"no program {program}"
        command = [found]
    elif program in SYSTEM or program.startswith((".venv/", "/", "~")):
        return ""
    elif shutil.which(program, path=environment()["PATH"]):
        return ""
    else:
        return f"no program {program}"
    known = help_of(tuple(command))
    if known is None:
        return f"`{' '.join(command)} --help` fails"
    if program in HELP:  # options of the script itself
        known += (ROOT / program).read_text()
    # The tools of LLVM hide options that they have, of debugging for one.
    if os.path.basename(program) in TOOLS:
        hidden = subprocess.run([*command, "--help-hidden"], capture_output=True, text=True).stdout
        known += hidden
    missing = [name for name in options if not re.search(rf"{re.escape(name)}(?![\w-])", known)]
    if missing:
        return f"{program} has no option {', '.join(missing)}"
    if program == "tools/check":
        listed = subprocess.run([*command, "--list"], cwd=ROOT, capture_output=True, text=True)
        unknown = [w for w in words[1:] if not w.startswith("-") and w not in listed.stdout.split()]
        if unknown:
            return f"tools/check has no check {', '.join(unknown)}"
    return ""


def wrong_with_script(words: list[str]) -> str:
    """A shell script has to name the words that it is given."""
    if words[0] == "tools/bench":
        name = next((word for word in words[1:] if not word.startswith("-")), "cpu")
        benchmark = ROOT / f"python/benchmarks/{name}.py"
        if not benchmark.exists():
            return f"no benchmark {name}"
        text = benchmark.read_text()
        missing = [w for w in words[1:] if w.startswith("--") and f'"{w}"' not in text]
        return f"{name}.py has no option {', '.join(missing)}" if missing else ""
    text = (ROOT / words[0]).read_text()
    if words[0].endswith("run_sanitized.sh"):
        return ""
    missing = [word for word in words[1:] if re.fullmatch(r"-*[a-z]+", word) and word not in text]
    return f"{words[0]} knows nothing of {', '.join(missing)}" if missing else ""


def wrong_with_cmake(words: list[str]) -> str:
    """Presets have to be there, and targets where there is a build to ask."""
    presets = json.loads((ROOT / "CMakePresets.json").read_text())
    names = [preset["name"] for preset in presets["configurePresets"] if not preset.get("hidden")]
    for option, value in zip(words, words[1:]):
        if option == "--preset" and value not in names:
            return f"no preset {value}"
        if option == "--build" and value.removeprefix("build/") not in names:
            return f"{value} is no folder of a preset"
    if "--target" not in words or not (ROOT / "build/dev/build.ninja").exists():
        return ""
    asked = []
    for word in words[words.index("--target") + 1 :]:
        if word.startswith("-"):
            break
        asked.append(word)
    listed = subprocess.run(
        ["ninja", "-C", "build/dev", "-t", "targets", "all"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    ).stdout
    targets = {line.split(":")[0] for line in listed.splitlines()}
    missing = [name for name in asked if name not in targets]
    return f"no target {', '.join(missing)}" if missing else ""
