# How lit runs test/lit.
#
# Substitutions besides lit's own: %device-tidy, %python, %torch-flags (what compiles torch.h),
# %compile (`-- -std=c++17` for files that need no LibTorch), %torch (`-- ` and %torch-flags).
# FileCheck, not, count and split-file are on PATH.
# Features: plugin (and the clang-tidy that loads it), llvm-22, torch, torch-1 or torch-2, torch-2.6 and the like; git,
# pre-commit.

import os
import re
import shutil
import sys

import lit.formats

config.name = "device-tidy"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".cpp", ".cc", ".cu", ".test", ".facts"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.join(config.sourceRoot, "lit")
config.test_exec_root = os.path.join(config.binaryRoot, "lit")

sys.path.insert(0, config.sourceRoot)
from environment import clean_environment  # noqa: E402

config.environment = clean_environment()
config.environment["PATH"] = os.pathsep.join([config.toolDir, config.llvmToolsDir, os.environ["PATH"]])


def torchVersion(include):
    """The version that torch/version.h of an include folder defines, as (major, minor)."""
    header = os.path.join(include, "torch/csrc/api/include/torch/version.h")
    if not include or not os.path.exists(header):
        return None
    with open(header, encoding="utf-8") as stream:
        text = stream.read()
    found = [re.search(rf"define TORCH_VERSION_{part} (\d+)", text) for part in ("MAJOR", "MINOR")]
    return tuple(match.group(1) for match in found) if all(found) else None


config.available_features.add("llvm-" + config.llvmMajor)
for program in ("git", "pre-commit"):
    if shutil.which(program):
        config.available_features.add(program)
if config.pluginPath and os.path.exists(os.path.join(config.llvmToolsDir, "clang-tidy")):
    config.available_features.add("plugin")
torchFlags = "-std=c++17"
version = torchVersion(config.torchInclude)
if version:
    config.available_features.update(["torch", "torch-" + version[0], "torch-" + ".".join(version)])
    torchFlags += " -isystem " + os.path.join(config.torchInclude, "torch/csrc/api/include")
    if config.torchInclude != "/usr/include":
        torchFlags += " -isystem " + config.torchInclude

# lit replaces in this order, so a name that begins another comes after it.
config.substitutions += [
    ("%device-tidy", os.path.join(config.toolDir, "device-tidy")),
    ("%python", '"%s"' % config.pythonPath),
    ("%torch-flags", torchFlags),
    ("%torch", "-- " + torchFlags),
    ("%compile", "-- -std=c++17"),
]
