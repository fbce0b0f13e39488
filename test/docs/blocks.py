"""Every command block of the pages, by its first line: how it is tried, or why it is not.

  in       `clone`: a copy of this repository, whose folder build is the real one; `built`: one that makes its own, slowly;
           `project`: test/docs/project with a compile database, device-tidy and device-run on PATH
  exit     the exit code of each command; a single number stands for all. A string says why that command is not run
  saved    C++ and Python blocks of the page that are files there: {path: number of the block}
  program  True: `train`, a program that has a device error, lies there
  needs    programs without which the block is left out
  before   commands that the text around the block tells, in shell
  varies   parts of the output a page shows that are different on other machines
  any_order  True: ranks print their lines in any order
  slow     True: tried by the slow suite
  skip     why the block is not run at all
"""

TORCH_STEPS = "installs packages, builds all of the repository and runs its programs; this runs within scripts/test.sh"
OTHER_MACHINES = "needs a second machine"

TABLE = {
    "README.md": {
        "$ build/bin/device-tidy /tmp/train.cpp -- -std=c++17 -I/usr/include/torch/csrc/api/include": {
            "in": "clone",
            "saved": {"/tmp/train.cpp": 1},
            "exit": 1,
        },
        "scripts/demo.sh    # installs what is missing, builds, shows the bugs in the five programs of test/systems, and": {
            "skip": TORCH_STEPS,
        },
        "scripts/demo.sh -p BUILD_DIR                 # every source file of the database": {
            "in": "built",
            "slow": True,
            "exit": 1,
        },
        "build/bin/device-run --virtual-gpus 2 -- ./train": {
            "in": "clone",
            "slow": True,
            "program": True,
            "exit": [134, 1, 134],
        },
    },
    "docs/python.md": {
        "device-tidy train.py              # the script and the files of the project that it imports": {
            "skip": "the files are the reader's",
        },
        "$ device-tidy scaled.py": {"in": "project", "saved": {"scaled.py": 1}, "exit": 1},
    },
    "docs/quick-start.md": {
        "scripts/install-deps.sh          # Debian packages; needs root or sudo": {
            "in": "built",
            "slow": True,
            "exit": ["needs root where a package is missing", 0, 0, 0],
        },
        "$ device-tidy train.cpp -- -std=c++17 -I/usr/include/torch/csrc/api/include": {
            "in": "project",
            "saved": {"train.cpp": 1},
            "exit": 1,
        },
        "cmake -B build -DCMAKE_EXPORT_COMPILE_COMMANDS=ON": {"in": "project", "exit": 0},
        "make clean": {"in": "project", "needs": ["bear"], "exit": 0},
        "meson setup build": {"in": "project", "needs": ["meson"], "exit": 0},
        "bazel run @hedron_compile_commands//:refresh_all": {"skip": "needs Bazel, a workspace and the network"},
        "device-tidy -p build": {"in": "project", "exit": 1},
        "device-tidy -p build --fix src/train.cpp": {"in": "project", "exit": [1, 0]},
        "device-tidy -p build --changed-since=origin/main": {"in": "project", "exit": 0},
        "scripts/build.sh device-run virtual_cuda": {"in": "built", "slow": True, "exit": 0},
        "$ g++ -g -std=c++17 -isystem /usr/include/torch/csrc/api/include train.cpp -o train -ltorch -ltorch_cpu -lc10": {
            "in": "project",
            "slow": True,
            "saved": {"train.cpp": 1},
            "exit": [0, 1, 134],
        },
    },
    "docs/adding-a-check.md": {
        "python3 checks/generate.py --new device-discarded-cast": {"skip": "test/docs/follow.py follows the page"},
        "python3 checks/generate.py --docs    # updates docs/checks/index.md": {
            "skip": "test/docs/follow.py follows the page"
        },
        "python3 /usr/lib/llvm-22/bin/lit -v build/test --filter device-discarded-cast": {
            "skip": "test/docs/follow.py follows the page"
        },
    },
    "docs/adding-an-op.md": {
        "$ build/bin/device-tidy --stats train.cpp -- -std=c++17 -I/usr/include/torch/csrc/api/include": {
            "skip": "test/docs/follow.py follows the page"
        },
        "python3 analyzer/models/derive_aten_ops.py   # after a change of aten_overrides.csv": {
            "skip": "test/docs/follow.py follows the page"
        },
        "test/cases/run_cases.py --tool build/bin/device-tidy --filter ops": {
            "skip": "test/docs/follow.py follows the page"
        },
    },
    "docs/ci.md": {
        "device-tidy -p build --changed-since=origin/main": {"in": "project", "exit": 0},
        "device-tidy -p build --write-baseline=.device-tidy-baseline.json   # once; then commit the file": {
            "in": "project",
            "exit": 0,
        },
    },
    "docs/clang-tidy.md": {
        "clang-tidy-22 -load build/lib/libdevice-tidy-plugin.so -checks='-*,device-*' -p BUILD_DIR src/train.cpp": {
            "in": "clone",
            "needs": ["clang-tidy-22"],
            "exit": 1,  # the clone's own .clang-tidy makes warnings errors
        },
        'cmake -B build "-DCMAKE_CXX_CLANG_TIDY=clang-tidy-22;-load;/path/to/libdevice-tidy-plugin.so;-checks=-*,device-*"': {
            "in": "project",
            "exit": 0,
        },
    },
    "docs/configuration.md": {
        "device-tidy --dump-config src/train.cpp      # all values for the file, as YAML that --config-file takes": {
            "in": "project",
            "exit": 0,
        },
    },
    "docs/device-run.md": {
        "cmake -S runtime-shim/device-run -B build-device-run -DDEVICE_RUN_TESTS=OFF": {
            "in": "clone",
            "slow": True,
            "exit": 0,
        },
        "$ build/bin/device-run -n 2 -- sh -c 'echo rank $RANK of $WORLD_SIZE, port $MASTER_PORT'": {
            "in": "clone",
            "any_order": True,
            "exit": 0,
        },
        "$ cat > /tmp/zero.json <<'END'": {
            "in": "clone",
            # Whatever LibTorch, driver and NCCL there are, from Debian or from Python.
            "varies": [
                "warning  driver           no NVIDIA driver: programs run on the CPU or on virtual GPUs\n"
                "                          -> on a machine with GPUs install the driver, and start containers with access "
                "to them ...\n"
                "ok       libtorch         LibTorch 1.13.0 in /usr/lib/x86_64-linux-gnu, for the CPU\n",
                "1 problem, 3 warnings",
            ],
            "exit": [0, 1],
        },
        "python3 -m pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu": {
            "skip": "downloads PyTorch; scripts/torch-wheel.sh does the same",
        },
        "device-run --nnodes 2 --node-rank 0 --rdzv-endpoint gpu01:29400 -n 8 -- ./train    # on gpu01": {
            "skip": OTHER_MACHINES,
        },
        "cmake -S runtime-shim -B build-runtime -DTORCH_ROOT=/path/to/libtorch && cmake --build build-runtime": {
            "skip": "needs another LibTorch; the tier LibTorch 2.13 of scripts/test.sh --all builds this way"
        },
        "srun --ntasks 8 device-run -- ./train": {"skip": "needs SLURM and MPI"},
        "$ g++ -g -std=c++17 -isystem /usr/include/torch/csrc/api/include /tmp/train.cpp -o /tmp/train -ltorch -ltorch_cpu -lc10": {
            "in": "clone",
            "slow": True,
            "saved": {"/tmp/train.cpp": 1},
            "exit": [0, 134],
        },
    },
    "docs/device-shim.md": {
        "cmake -S runtime-shim/device-shim -B build-shim -DDEVICE_SHIM_TESTS=OFF    # -DTORCH_ROOT=PREFIX for another LibTorch": {
            "in": "clone",
            "slow": True,
            "exit": [0, 0, "/opt needs root; test/packaging installs into a folder"],
        },
    },
    "docs/fixes.md": {
        "mkdir fixes": {"in": "project", "exit": [0, 1, 0]},
    },
    "docs/gpu-validation.md": {
        "scripts/gpu-validate.sh                      # LibTorch of python3's PyTorch": {"skip": "needs a GPU"},
        "scripts/gpu-validate.sh --virtual 2 --torch /usr": {"skip": "the suite gpu-validation does the same"},
    },
    "docs/install.md": {
        "scripts/build-wheel.sh --device-tidy        # makes dist/device_tidy-*.whl": {
            "skip": "test/packaging/tidy_wheel.py makes the wheel and installs it",
        },
        "scripts/build.sh": {"skip": "builds everything; scripts/test-packages.sh makes the packages and installs them"},
        "cmake --install build --prefix ~/.local": {"in": "clone", "exit": 0},
    },
    "docs/performance.md": {
        "python3 test/bench/lsp/latency.py --tool build/bin/device-tidy": {"skip": "measures for minutes"},
        "ctest --test-dir build -R 'solve-growth|solve-scale' --output-on-failure": {
            "skip": "takes a long time, and the suites of that name are run with the others",
        },
        "test/bench/analyzer/bench.py --tool build/bin/device-tidy           # 1 and 20 units": {
            "in": "clone",
            "exit": ["takes half an hour", "takes hours", 0],
        },
    },
    "docs/reports.md": {
        "device-tidy -p build --format=html --output=findings.html": {"in": "project", "exit": 1},
        "device-tidy -p build --graph=train_epoch --output=train_epoch.svg": {
            "in": "project",
            "exit": [0, "needs Graphviz"],
        },
    },
    "docs/scale-out.md": {
        "device-tidy -p build --emit-facts=main.facts src/main.cpp": {"in": "project", "exit": [0, 0, 1]},
        "device-tidy --link shard1.facts shard2.facts shard3.facts shard4.facts": {
            "in": "project",
            "before": "for i in 1 2 3 4; do device-tidy -p build --shard=$i/4 --emit-facts=shard$i.facts; done",
            "exit": 1,
        },
    },
}
