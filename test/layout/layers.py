"""Which room may use which. A room is a folder with sources; it may always use itself.

"analyzer/report/*" among the rooms that may be used stands for each room there. A room named "a/**" is the folder "a"
with all folders below it. check_layers.py explains what is checked.
"""

TREES = ["analyzer", "checks", "runtime-shim"]

ROOMS = {
    # What a program does, what LibTorch does, and how source code becomes facts.
    "analyzer/facts": [],
    "analyzer/models": ["analyzer/facts"],
    "analyzer/models/bodies": ["analyzer/facts", "analyzer/models"],
    "analyzer/models/bodies/lower": ["analyzer/facts", "analyzer/frontend", "analyzer/models"],
    "analyzer/models/bodies/std": ["analyzer/models/bodies"],
    "analyzer/models/bodies/torch": ["analyzer/models/bodies"],
    "analyzer/frontend": ["analyzer/facts", "analyzer/models"],
    "analyzer/frontend/absent": ["analyzer/facts", "analyzer/frontend"],
    "analyzer/python": ["analyzer/facts", "analyzer/models"],

    # The solver, from the bottom to the top.
    "analyzer/solve/solution": ["analyzer/facts", "analyzer/models"],
    "analyzer/solve/domain": ["analyzer/facts", "analyzer/models", "analyzer/solve/solution"],
    "analyzer/solve/engine": [
        "analyzer/facts", "analyzer/models", "analyzer/models/bodies", "analyzer/solve/solution",
        "analyzer/solve/domain"],
    "analyzer/solve/library/std": [
        "analyzer/facts", "analyzer/models", "analyzer/solve/domain", "analyzer/solve/engine"],
    "analyzer/solve/library/torch": [
        "analyzer/facts", "analyzer/models", "analyzer/solve/domain", "analyzer/solve/engine",
        "analyzer/solve/library/std"],
    "analyzer/solve/library/python": [
        "analyzer/facts", "analyzer/models", "analyzer/solve/domain", "analyzer/solve/engine",
        "analyzer/solve/library/std", "analyzer/solve/library/torch"],
    "analyzer/solve/library/config": [
        "analyzer/facts", "analyzer/models", "analyzer/solve/domain", "analyzer/solve/engine",
        "analyzer/solve/library/std"],
    "analyzer/solve/library": [
        "analyzer/facts", "analyzer/models", "analyzer/solve/engine", "analyzer/solve/library/*"],
    "analyzer/solve/questions": [
        "analyzer/facts", "analyzer/models", "analyzer/solve/solution", "analyzer/solve/domain",
        "analyzer/solve/engine", "analyzer/solve/library/*"],
    "analyzer/solve": ["analyzer/facts", "analyzer/models", "analyzer/models/bodies", "analyzer/solve/*"],

    # From findings to text.
    "analyzer/report/source": ["analyzer/facts", "analyzer/models"],
    "analyzer/report/finding": [
        "analyzer/facts", "analyzer/solve/solution", "analyzer/solve/questions", "analyzer/report/source"],
    "analyzer/report/fix": [
        "analyzer/facts", "analyzer/models", "analyzer/report/finding", "analyzer/report/source"],
    "analyzer/report/graph": [
        "analyzer/facts", "analyzer/solve/solution", "analyzer/report/finding", "analyzer/report/source"],
    "analyzer/report/diagnostic": [
        "analyzer/facts", "analyzer/models", "analyzer/solve/solution", "analyzer/report/finding", "analyzer/report/source",
        "analyzer/report/fix",
        "analyzer/report/graph"],
    "analyzer/report/formats": ["analyzer/facts", "analyzer/solve/solution", "analyzer/report/*"],
    "checks": ["analyzer/facts", "analyzer/models", "analyzer/solve/solution", "analyzer/report/finding"],

    # What holds for a file, and what earlier runs learned.
    "analyzer/config": ["analyzer/solve/solution", "analyzer/report/finding", "checks"],
    "analyzer/cache": ["analyzer/facts"],

    # From a command line to findings.
    "analyzer/driver/support": [],
    "analyzer/driver/input": ["analyzer/facts", "analyzer/cache", "analyzer/config", "analyzer/driver/support"],
    "analyzer/driver/input/absent": ["analyzer/driver/input"],
    "analyzer/driver/options": [
        "analyzer/facts", "analyzer/models", "analyzer/models/bodies", "analyzer/config", "analyzer/frontend",
        "analyzer/solve", "analyzer/solve/solution", "analyzer/report/finding", "analyzer/driver/input",
        "analyzer/driver/support"],
    "analyzer/driver/programs": [
        "analyzer/facts", "analyzer/cache", "analyzer/frontend", "analyzer/python", "analyzer/driver/options",
        "analyzer/driver/input", "analyzer/driver/support"],
    "analyzer/driver/gate": [
        "analyzer/facts", "analyzer/config", "analyzer/report/*", "checks", "analyzer/driver/options",
        "analyzer/driver/support"],
    "analyzer/driver/commands": [
        "analyzer/facts", "analyzer/models", "analyzer/models/bodies", "analyzer/cache", "analyzer/config",
        "analyzer/solve", "analyzer/solve/solution", "analyzer/solve/domain",
        "analyzer/report/*", "checks", "analyzer/driver/*"],

    # What people call, and what others load.
    "analyzer/lsp": [
        "analyzer/facts", "analyzer/cache", "analyzer/config", "analyzer/frontend", "analyzer/python", "analyzer/solve",
        "analyzer/solve/solution",
        "analyzer/report/*", "checks", "analyzer/driver/support", "analyzer/driver/input", "analyzer/driver/options",
        "analyzer/driver/programs", "analyzer/driver/commands"],
    "analyzer/plugin": [
        "analyzer/facts", "analyzer/config", "analyzer/frontend", "analyzer/solve", "analyzer/solve/solution",
        "analyzer/report/*", "checks",
        "analyzer/driver/support", "analyzer/driver/input"],
    "analyzer/tools/device-tidy": ["analyzer/driver/commands", "analyzer/lsp"],

    # The runtime: none of it knows the analyzer, and its parts do not know each other.
    # What is preloaded knows nothing of the devices, which it loads; the Python half is linked with them.
    "runtime-shim/virtual-cuda/preload": [],
    "runtime-shim/virtual-cuda": ["runtime-shim/virtual-cuda/preload"],
    "runtime-shim/virtual-cuda/python": ["runtime-shim/virtual-cuda"],
    "runtime-shim/virtual-cuda/tests": ["runtime-shim/virtual-cuda"],
    "runtime-shim/cuda-stubs/include/**": [],
    "runtime-shim/cuda-stubs/src": ["runtime-shim/cuda-stubs/include/**"],
    "runtime-shim/cuda-stubs/tests": ["runtime-shim/cuda-stubs/include/**"],
    "runtime-shim/gpu-validation": ["runtime-shim/device-shim/include/device_shim", "runtime-shim/virtual-cuda/tests"],

    # device-run.
    "runtime-shim/device-run/base": [],
    "runtime-shim/device-run/records": ["runtime-shim/device-run/base"],
    "runtime-shim/device-run/process": ["runtime-shim/device-run/base"],
    "runtime-shim/device-run/launch": [
        "runtime-shim/device-run/base", "runtime-shim/device-run/records", "runtime-shim/device-run/process"],
    "runtime-shim/device-run/doctor": ["runtime-shim/device-run/base"],
    "runtime-shim/device-run": ["runtime-shim/device-run/*"],
    "runtime-shim/device-run/tests": ["runtime-shim/device-run/*"],

    # device_shim. Its public headers are a room of their own, which includes nothing of the library.
    "runtime-shim/device-shim/include/device_shim": [],
    "runtime-shim/device-shim/src/base": ["runtime-shim/device-shim/include/device_shim"],
    "runtime-shim/device-shim/src/comm": [
        "runtime-shim/device-shim/include/device_shim", "runtime-shim/device-shim/src/base"],
    "runtime-shim/device-shim/src/autograd": [
        "runtime-shim/device-shim/include/device_shim", "runtime-shim/device-shim/src/base"],
    "runtime-shim/device-shim/src/params": [
        "runtime-shim/device-shim/include/device_shim", "runtime-shim/device-shim/src/autograd",
        "runtime-shim/device-shim/src/comm", "runtime-shim/device-shim/src/base"],
    "runtime-shim/device-shim/src/stages": ["runtime-shim/device-shim/include/device_shim"],
    "runtime-shim/device-shim/src/ddp": [
        "runtime-shim/device-shim/include/device_shim", "runtime-shim/device-shim/src/params",
        "runtime-shim/device-shim/src/stages", "runtime-shim/device-shim/src/autograd",
        "runtime-shim/device-shim/src/comm", "runtime-shim/device-shim/src/base"],
    "runtime-shim/device-shim/src/sharded": [
        "runtime-shim/device-shim/include/device_shim", "runtime-shim/device-shim/src/params",
        "runtime-shim/device-shim/src/stages", "runtime-shim/device-shim/src/autograd",
        "runtime-shim/device-shim/src/comm", "runtime-shim/device-shim/src/base"],
    "runtime-shim/device-shim/src/files": ["runtime-shim/device-shim/include/device_shim"],
    "runtime-shim/device-shim/src/adapters": [
        "runtime-shim/device-shim/include/device_shim", "runtime-shim/device-shim/src/params",
        "runtime-shim/device-shim/src/files"],
    "runtime-shim/device-shim/src/checkpoint": [
        "runtime-shim/device-shim/include/device_shim", "runtime-shim/device-shim/src/sharded",
        "runtime-shim/device-shim/src/adapters", "runtime-shim/device-shim/src/params",
        "runtime-shim/device-shim/src/comm", "runtime-shim/device-shim/src/files",
        "runtime-shim/device-shim/src/base"],
    "runtime-shim/device-shim/src/dispatch": [
        "runtime-shim/device-shim/include/device_shim", "runtime-shim/device-shim/src/stages",
        "runtime-shim/device-shim/src/params", "runtime-shim/device-shim/src/comm",
        "runtime-shim/device-shim/src/base"],
    "runtime-shim/device-shim/src/checking": ["runtime-shim/device-shim/include/device_shim"],
    "runtime-shim/device-shim/src": [
        "runtime-shim/device-shim/include/device_shim", "runtime-shim/device-shim/src/*"],
    "runtime-shim/device-shim/tests": [
        "runtime-shim/device-shim/include/device_shim", "runtime-shim/device-shim/src/*"],
    "runtime-shim/device-shim/tests/consumer": ["runtime-shim/device-shim/include/device_shim"],
    "runtime-shim/device-shim/tests/schedulers": ["runtime-shim/device-shim/include/device_shim"],
}

# Names of libraries, which a room may not hold in string literals. Only the models and the solver know libraries: what
# the report needs of them is in analyzer/models/Spelling.h.
LIBRARY_NAMES = r"\b(?:at|torch|c10|c10d|std)::"
ROOMS_WITHOUT_LIBRARIES = ["analyzer/report/*", "analyzer/config", "analyzer/driver/*", "analyzer/lsp"]

# Where the #include lines of a tree are looked for; those of all other trees begin at the root of the repository. The
# first tree that holds a file decides.
INCLUDE_FOLDERS = {
    "analyzer/models/bodies/std": ["analyzer/models/bodies"],
    "analyzer/models/bodies/torch": ["analyzer/models/bodies"],
    "runtime-shim/virtual-cuda": ["runtime-shim/virtual-cuda"],
    "runtime-shim/cuda-stubs": ["runtime-shim/cuda-stubs/include", "runtime-shim/cuda-stubs/src"],
    "runtime-shim/gpu-validation": ["runtime-shim/device-shim/include", "runtime-shim/virtual-cuda/tests"],
    "runtime-shim/device-run": ["runtime-shim/device-run"],
    "runtime-shim/device-shim": ["runtime-shim/device-shim/src", "runtime-shim/device-shim/include"],
}
