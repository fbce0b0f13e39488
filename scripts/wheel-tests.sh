#!/usr/bin/env bash
# wheel-tests.sh
#
# Virtual GPUs for Python with the newest PyTorch: makes an environment with its wheel for the CPU in build-wheel,
# builds the runtime against it and runs the suites of the Python half.

set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
case ${1:-} in
  "") ;;
  -h | --help) usage "$0" && exit 0 ;;
  *) die "unknown option '$1'" "see scripts/wheel-tests.sh --help" ;;
esac

torch=torch==2.13.0+cpu
build=$repoRoot/build-wheel
python=$build/venv/bin/python3
if ! [[ -x $python ]] || ! "$python" -c 'import torch' 2>/dev/null; then
  python3.11 -m venv "$build/venv"
  # PyPI has the CUDA build of it for x86-64; a mirror may have this one.
  "$python" -m pip install --quiet numpy "$torch" ||
    "$python" -m pip install --quiet numpy "$torch" --extra-index-url https://download.pytorch.org/whl/cpu
fi
package=$("$python" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
cmake -S "$repoRoot/runtime-shim" -B "$build" -G Ninja -DTORCH_ROOT="$package" -DRUNTIME_SHIM_SYSTEMS=OFF >/dev/null
cmake --build "$build" --parallel "$jobCount" --target virtual_cuda device-run
ctest --test-dir "$build" -R virtual_cuda_python --output-on-failure --no-tests=error
