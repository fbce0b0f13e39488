"""What a validation ran on: GPUs, driver, LibTorch, NCCL."""

import datetime
import platform
import re
import shutil
import subprocess
from pathlib import Path


def output_of(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
    except OSError:
        return ""


def gpus():
    """One entry per GPU that the driver lists."""
    if not shutil.which("nvidia-smi"):
        return []
    table = output_of(["nvidia-smi", "--query-gpu=name,memory.total,compute_cap,driver_version",
                       "--format=csv,noheader"])
    names = ("name", "memory", "compute_capability", "driver")
    rows = [[cell.strip() for cell in row.split(",")] for row in table.splitlines()]
    return [dict(zip(names, row)) for row in rows if len(row) == len(names)]


def torch_version(prefix):
    """LibTorch's version, from the wheel, the archive or the headers."""
    for file, pattern in ((prefix / "version.py", r"__version__ = '([^']+)'"), (prefix / "build-version", r"(\S+)")):
        if file.is_file() and (found := re.search(pattern, file.read_text(encoding="utf-8"))):
            return found[1]
    header = prefix / "include/torch/csrc/api/include/torch/version.h"
    if header.is_file():
        numbers = dict(re.findall(r"define TORCH_VERSION_(\w+) (\d+)", header.read_text(encoding="utf-8")))
        return ".".join(numbers.get(part, "0") for part in ("MAJOR", "MINOR", "PATCH"))
    return "unknown"


def nccl_version(prefix):
    """Of the NCCL package beside the wheel."""
    for folder in sorted(prefix.parent.glob("nvidia_nccl_cu*.dist-info")):
        return folder.name.split("-", 1)[1].removesuffix(".dist-info")
    return "unknown"


def describe(prefix, virtual):
    prefix = Path(prefix)
    found = [] if virtual else gpus()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "kind": "virtual" if virtual else "real",
        "gpus": [{"name": "virtual GPU"}] * virtual if virtual else found,
        "driver": found[0]["driver"] if found else "none",
        "system": f"{platform.system()} {platform.machine()}",
        "libtorch": torch_version(prefix),
        "nccl": "none" if virtual else nccl_version(prefix),
    }
