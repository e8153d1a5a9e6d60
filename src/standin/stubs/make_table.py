#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make table.inc, the table of CUDA functions that the stand-in answers by guess, from CUDA headers.

usage: make_table.py --include DIR [--include DIR ...] --imports imports.txt --sources DIR > table.inc

Every function of the headers that no source file under --sources defines becomes one STUB line:
name, result type, parameters reduced to what the calling convention needs, and what to do:

  ZERO(a, n)    clear the n bytes that an output parameter points to
  HANDLE(a)     store a new handle where an output parameter points to
  WORK(a)       parameter a is a stream: count one piece of work on it
  FREE(a)       parameter a is a handle that is not used any more
  LIBRARY(a)    parameter a is a library handle: count work on the stream set for it
  TEXT          the result is a text

Functions that tell a size of device memory, which programs then allocate, become SIZE_STUB lines: name,
parameters, entry of the table of workspaces, output, its width in bytes, bytes per unit, what else to do.

ALIAS lines follow: driver functions that have a version in their name are also looked up without it.

Imported symbols without a prototype in the headers get a line without parameters. Only needed to
support further versions of CUDA; the build uses the table that is checked in.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HEADERS = """cuda_runtime_api.h cuda.h cublas_v2.h cublasLt.h cusparse.h cusolverDn.h cusolverSp.h
cusolverMg.h cufft.h cufftXt.h nccl.h cudnn.h curand.h cupti.h cufile.h nvrtc.h nvJitLink.h
cusparseLt.h cudaProfiler.h cuda_profiler_api.h""".split()
PREFIX = (
    r"(?:__cuda|cuda|cublas|cudnn|cusparse|cusolver|cufft|curand|nccl|cuFile|cupti|cu[A-Z]|nvrtc"
    r"|nvJitLink|nvshmem)"
)
NOT_FUNCTIONS = {"cuComplex", "cuDoubleComplex", "cuFloatComplex"}
# Pointers to numbers are device memory or scalars that the caller reads back: left alone.
NUMBERS = {
    "void", "char", "float", "double", "half", "__half", "float2", "double2", "cuComplex",
    "cuDoubleComplex", "cuFloatComplex", "cufftReal", "cufftComplex", "cufftDoubleReal",
    "cufftDoubleComplex", "unsigned char", "signed char",
}  # fmt: skip
CREATES = re.compile(r"[Cc]reate|Init|Retain|Load|Instantiate|Open|Clone|Add[A-Z]|GetKernel|Split")
LIBRARY_HANDLES = {
    "cublasHandle_t", "cublasLtHandle_t", "cudnnHandle_t", "cusparseHandle_t", "cusolverDnHandle_t",
    "cusolverSpHandle_t", "curandGenerator_t",
}  # fmt: skip
STREAMS = {"cudaStream_t", "CUstream"}
SIZES = re.compile(
    r"[bB]ufferSize(?!.*Host)|WorkspaceSize|ReserveSpaceSize|GetMultiHeadAttnBuffers"
    r"|ReductionIndicesSize|^cufft(Xt)?(Estimate|GetSize|MakePlan)"
)
QUIET = re.compile(r"Set|Get|Create|Destroy|[bB]uffer[sS]ize|_bufferSize|Query|Size$")


def preprocess(includes):
    found = [h for h in HEADERS if any((pathlib.Path(i) / h).exists() for i in includes)]
    source = "".join(f"#include <{h}>\n" for h in found)
    flags = [f"-I{i}" for i in includes]
    out = subprocess.run(
        ["gcc", "-E", "-P", "-x", "c", *flags, "-"],
        input=source, capture_output=True, text=True, check=True,
    )  # fmt: skip
    text = re.sub(
        r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)", "", out.stdout
    )
    return source, flags, re.sub(r"\s+", " ", text)


def prototypes(text):
    pattern = (
        r"(?:^|[;}]) ?((?:extern )?[A-Za-z_][\w ]*?[\w\*] ?\*?) ?("
        + PREFIX
        + r"\w*) ?\(((?:[^()]|\([^()]*\))*)\) ?(?=;)"
    )
    found = {}
    for result, name, arguments in re.findall(pattern, text):
        if "typedef" in result or "return" in result or name in NOT_FUNCTIONS:
            continue
        result = re.sub(r"\b(extern|static|inline|__inline__)\b", "", result).strip()
        found.setdefault(name, (result, arguments))
    return found


def split_arguments(text):
    if text.strip() in ("", "void"):
        return []
    return [a.strip() for a in re.split(r",(?![^()]*\))", text)]


class Type:
    """One parameter: its base type, number of stars, whether it is const or an array."""

    def __init__(self, text):
        text = re.sub(r"=.*", "", text)
        self.function = "(" in text
        self.array = "[" in text
        text = re.sub(r"\[[^\]]*\]", "", text)
        match = re.match(r"(.*?[\s\*])(\w+)$", text)
        basic = {"int", "long", "size_t", "char", "unsigned", "double", "float"}
        if match and match[2] not in basic and match[1].strip() not in (
            "const", "struct", "enum", "const struct", "const enum",
        ):  # fmt: skip
            text = match[1]
        self.const = "const" in text
        self.stars = text.count("*")
        base = re.sub(r"\bconst\b|\*", "", text)
        self.tagged = " ".join(base.split())
        self.base = re.sub(r"^(struct|enum|union) ", "", self.tagged)


def measure(source, flags, types):
    """sizeof and kind of each type: {type: (size, kind)}, kind being one of p, i, f, s."""
    body = "".join(
        f'printf("%s\\t%zu\\t%d\\n", "{t}", sizeof({t}), __builtin_classify_type(*({t}*)p));\n'
        for t in types
    )
    program = f"{source}#include <stdio.h>\nint main(void){{static char p[1<<20];{body}return 0;}}"
    folder = tempfile.TemporaryDirectory()
    binary = os.path.join(folder.name, "sizes")
    while True:
        out = subprocess.run(
            ["gcc", "-w", "-x", "c", *flags, "-", "-o", binary],
            input=program, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if out.returncode == 0:
            break
        bad = set(re.findall(r"‘([^’]+)’", out.stderr))
        lines = program.split("\n")
        wrong = {int(n) for n in re.findall(r"<stdin>:(\d+):", out.stderr)}
        kept = [l for i, l in enumerate(lines, 1) if i not in wrong or "printf" not in l]
        if len(kept) == len(lines):
            sys.exit(f"cannot measure types: {out.stderr[:2000]} {bad}")
        program = "\n".join(kept)
    text = subprocess.run([binary], capture_output=True, text=True, check=True).stdout
    kinds = {1: "i", 2: "i", 3: "i", 4: "i", 5: "p", 8: "f", 9: "f", 12: "s", 13: "s"}
    return {
        t: (int(size), kinds.get(int(kind), "s"))
        for t, size, kind in (line.split("\t") for line in text.splitlines())
    }


def parameter(kind_of, type_, name):
    if type_.stars or type_.array or type_.function:
        return f"void *{name}"
    size, kind = kind_of.get(type_.tagged, (4, "i"))
    if kind == "p":
        return f"void *{name}"
    if kind == "f":
        return f"{'float' if size == 4 else 'double'} {name}"
    if kind == "s":
        if type_.base in ("cuComplex", "cuDoubleComplex", "cuFloatComplex"):
            return f"double {name}" if size == 8 else f"stub_complex {name}"
        return f"stub_{size} {name}"
    return f"{'int' if size <= 4 else 'long'} {name}"


def actions(kind_of, name, types):
    out = []
    destroys = re.search("Destroy|Free[A-Z]|Unload", name) is not None
    if types and destroys and parameter(kind_of, types[0], "").startswith("void *"):
        out.append("FREE(a0)")
    for i, t in enumerate(types):
        var = f"a{i}"
        if t.base in STREAMS and t.stars == 0 and not QUIET.search(name):
            out.append(f"WORK({var})")
        if i == 0 and t.base in LIBRARY_HANDLES and t.stars == 0 and not QUIET.search(name):
            out.append(f"LIBRARY({var})")
        if t.function or t.array or t.const:
            continue
        size, kind = kind_of.get(t.tagged, (0, "s"))
        if t.stars == 1 and t.base not in NUMBERS:
            if kind == "p" and size == 8:
                out.append(f"HANDLE({var})" if CREATES.search(name) else f"ZERO({var}, 8)")
            elif size and "RuntimeTag" not in t.base:
                out.append(f"ZERO({var}, {size})")
        elif t.stars == 2 and t.base == "void" and re.search("Alloc|Get|Create", name):
            out.append(f"ZERO({var}, 8)")
    return out


def workspace_of(name):
    if name.startswith("cudnn"):
        return "cudnn_reserve" if "Reserve" in name else "cudnn"
    return re.match("cu(solver|sparse|fft)", name)[0]


def line_of(name, returns, parameters, does):
    """A STUB line, or a SIZE_STUB one: its output is the last, or the last but one where the next is
    a size of host memory."""
    outputs = [i for i, action in enumerate(does) if re.fullmatch(r"ZERO\(a\d+, [48]\)", action)]
    if not SIZES.search(name) or not outputs:
        return f"STUB({name}, {returns}, ({parameters}), {' '.join(does)})"
    has_host = name.startswith("cusolverDnX") and len(outputs) > 1
    at = outputs[-2] if has_host else outputs[-1]
    _, variable, width = re.findall(r"\w+", does[at])
    # The older functions of cuSOLVER count elements: S, D, C, Z.
    counts = re.match(r"cusolverDn([SDCZ])", name) if width == "4" else None
    unit = {"S": 4, "D": 8, "C": 8, "Z": 16}[counts[1]] if counts else 1
    # The lengths that cuFFT is given are no outputs, though its prototypes do not say const.
    others = [] if name.startswith("cufft") else does[:at] + does[at + 1 :]
    answer = f"{workspace_of(name)}, {variable}, {width}, {unit}"
    return f"SIZE_STUB({name}, ({parameters}), {answer}, {' '.join(others)})"


def result_type(kind_of, text):
    if "char" in text and "*" in text:
        return "const char *", ["TEXT"]
    if "*" in text:
        return "void *", []
    if text == "void":
        return "void", []
    size, kind = kind_of.get(text, (4, "i"))
    if kind == "f":
        return "double" if size == 8 else "float", []
    return ("int" if size <= 4 else "long"), []


def defined_by_hand(folder):
    names = set()
    for path in sorted(pathlib.Path(folder).glob("*.c")):
        text = path.read_text()
        names |= set(re.findall(r"\bCUDA_ENTRY\([^,()]*(?:\([^()]*\))?[^,()]*, (\w+)\)", text))
        names |= set(re.findall(r"^(?:LAUNCH|PLAN|EXECUTE)_ENTRY\((\w+)", text, re.MULTILINE))
    return names


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--include", action="append", required=True)
    options.add_argument("--imports", required=True)
    options.add_argument("--sources", required=True)
    args = options.parse_args()
    source, flags, text = preprocess(args.include)
    hand = defined_by_hand(args.sources)
    found = {n: p for n, p in prototypes(text).items() if n not in hand}
    parsed = {n: (r, [Type(a) for a in split_arguments(a)]) for n, (r, a) in found.items()}
    types = sorted({t.tagged for _, ts in parsed.values() for t in ts} | {r for r, _ in parsed.values()})
    types = [t for t in types if re.fullmatch(r"[\w ]+", t) and t != "void"]
    kind_of = measure(source, flags, types)
    lines = {}
    for name, (result, ts) in parsed.items():
        returns, extra = result_type(kind_of, result)
        parameters = ", ".join(parameter(kind_of, t, f"a{i}") for i, t in enumerate(ts)) or "void"
        lines[name] = line_of(name, returns, parameters, actions(kind_of, name, ts) + extra)
    for line in pathlib.Path(args.imports).read_text().splitlines():
        name = line.split()[0] if line and not line.startswith("#") else ""
        if name and name not in hand and name not in lines:
            lines[name] = f"STUB({name}, int, (void), )"
    print("/* SPDX-License-Identifier: MIT */")
    print("/* Made by make_table.py: one line per CUDA function that is answered by guess. */")
    for name in sorted(lines):
        print(lines[name])
    for name in sorted(set(lines) | hand):
        plain = re.sub(r"_v\d$", "", name)
        if plain != name and re.match(r"cu[A-Z]", name) and plain not in lines and plain not in hand:
            newest = max(n for n in set(lines) | hand if re.fullmatch(plain + r"_v\d", n))
            if newest == name:
                print(f"ALIAS({plain}, {name})")


main()
