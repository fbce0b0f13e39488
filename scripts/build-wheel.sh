#!/usr/bin/env bash
# build-wheel.sh [PYTHON [DIR]]
#
# Makes a wheel of device-run with virtual GPUs for the PyTorch that PYTHON (python3) has, and puts it into DIR (dist).
# For a CUDA build of PyTorch it has no virtual GPUs: device-run --explain explains the errors of real ones.

set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1:-} in
  -h | --help) usage "$0" && exit 0 ;;
esac
python=${1:-python3} dist=${2:-$repoRoot/dist}
torch=$("$python" -c 'import importlib.util as u; s = u.find_spec("torch"); print(s.submodule_search_locations[0] if s else "")') ||
  die "$python does not run" "name the Python that has PyTorch: scripts/build-wheel.sh PYTHON"
[[ -n $torch ]] || die "$python has no PyTorch" "install its build for the CPU: $python -m pip install torch"
[[ ! -e $torch/lib/libtorch_cuda.so ]] ||
  say "the PyTorch in $torch is a CUDA build: the wheel is for device-run --explain, without virtual GPUs"
TORCH_ROOT=$torch "$python" -m pip wheel --quiet --no-deps --wheel-dir "$dist" "$repoRoot/runtime-shim" ||
  die "pip cannot build the wheel" "its reason is above; scripts/install-deps.sh installs what it needs"
ls "$dist"/device_run-*.whl
