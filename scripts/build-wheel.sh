#!/usr/bin/env bash
# build-wheel.sh [PYTHON [DIR]]
# build-wheel.sh --device-tidy [DIR]
#
# Makes a wheel of device-run with virtual GPUs for the PyTorch that PYTHON (python3) has, and puts it into DIR (dist).
# For a CUDA build of PyTorch it has no virtual GPUs: device-run --explain explains the errors of real ones.
#
#   --device-tidy  a wheel of device-tidy that reads Python, for any Python of this kind of machine. Nothing of LLVM is
#                  needed where it is installed; it is made with the LLVM that is here.

set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# makeWheel NAME PYTHON DIR SOURCES
makeWheel() {
  "$2" -m pip wheel --quiet --no-deps --wheel-dir "$3" "$4" ||
    die "pip cannot build the wheel" "its reason is above; scripts/install-deps.sh installs what it needs"
  ls "$3/$1"-*.whl
}

case ${1:-} in
  -h | --help) usage "$0" && exit 0 ;;
  --device-tidy)
    # What library functions do is lowered by the C++ front end once, here.
    build=$(buildDir default)
    [[ -f $build/build.ninja ]] || "$repoRoot/scripts/build.sh" dt_bodies
    cmake --build "$build" --parallel "$jobCount" --target dt_bodies >/dev/null ||
      die "the model bodies cannot be built" "the compiler's first error is above"
    DEVICE_TIDY_MODEL_BODIES=$build/generated makeWheel device_tidy python3 "${2:-$repoRoot/dist}" "$repoRoot"
    exit
    ;;
esac
python=${1:-python3} dist=${2:-$repoRoot/dist}
torch=$("$python" -c 'import importlib.util as u; s = u.find_spec("torch"); print(s.submodule_search_locations[0] if s else "")') ||
  die "$python does not run" "name the Python that has PyTorch: scripts/build-wheel.sh PYTHON"
[[ -n $torch ]] || die "$python has no PyTorch" "install its build for the CPU: $python -m pip install torch"
[[ ! -e $torch/lib/libtorch_cuda.so ]] ||
  say "the PyTorch in $torch is a CUDA build: the wheel is for device-run --explain, without virtual GPUs"
TORCH_ROOT=$torch makeWheel device_run "$python" "$dist" "$repoRoot/runtime-shim"
