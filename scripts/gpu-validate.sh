#!/usr/bin/env bash
# gpu-validate.sh [--torch PREFIX] [--out DIR] [--virtual N] [--quick] [--jobs N]
#
# Builds device_shim on a CUDA LibTorch and holds it, the five systems and the rule table against real GPUs.
# Needs CMake, a C++17 compiler, Python 3.9 and a driver; no LLVM, no network. Writes gpu-validation.json and
# gpu-validation.md. Exit code: 0 all as expected, 1 something was not, 2 it could not run.
#   --torch PREFIX  LibTorch's folder, the one with include/ and lib/ (default: that of python3's torch)
#   --out DIR       where to build and to write the reports (default: build-gpu-validation/ in the repository)
#   --virtual N     on N virtual GPUs and a CPU LibTorch: tests this script, and says nothing about real GPUs
#   --quick         small sizes and few steps, for trying it out
#   --jobs N        compile jobs (default: one per processor)

set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

torch=
out=$repoRoot/build-gpu-validation
virtual=0
options=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --torch | --out | --virtual | --jobs)
      [[ $# -ge 2 ]] || die "$1 needs a value" "see scripts/gpu-validate.sh --help"
      case $1 in
        --torch) torch=$2 ;;
        --out) out=$2 ;;
        --virtual) virtual=$2 ;;
        --jobs) jobCount=$2 ;;
      esac
      shift
      ;;
    --quick) options+=(--quick) ;;
    -h | --help) usage "$0" && exit 0 ;;
    *) die "unknown option '$1'" "see scripts/gpu-validate.sh --help" ;;
  esac
  shift
done
[[ $virtual =~ ^[0-9]+$ && $jobCount =~ ^[1-9][0-9]*$ ]] ||
  die "--virtual and --jobs take a number" "see scripts/gpu-validate.sh --help"

for tool in cmake python3; do
  command -v "$tool" >/dev/null || die "$tool is not installed" "install it (apt install cmake g++ python3)"
done

# The folder of the PyTorch wheel, without importing it.
torchOfPython() {
  python3 -c 'import importlib.util as u; s = u.find_spec("torch"); print(s.submodule_search_locations[0] if s else "")'
}

if [[ -z $torch ]]; then
  torch=${TORCH_ROOT:-$(torchOfPython)}
  if [[ -z $torch && $virtual -gt 0 ]]; then torch=/usr; fi
  [[ -n $torch ]] || die "no LibTorch was found" "name it: --torch PREFIX, the folder with include/ and lib/" \
    "or install PyTorch for CUDA, whose package holds it"
fi
torch=$(cd "$torch" 2>/dev/null && pwd) || die "--torch names no folder" "name the one with include/ and lib/"
cudaLibrary=$(find "$torch/lib" -maxdepth 2 -name 'libtorch_cuda.so' -print -quit 2>/dev/null || true)

gpuCount() {
  { nvidia-smi -L 2>/dev/null || true; } | grep -c '^GPU ' || true
}
gpus=$(gpuCount)
if [[ $virtual -eq 0 ]]; then
  [[ $gpus -gt 0 ]] || die "no NVIDIA GPU is reachable (nvidia-smi lists none): nothing can be validated here" \
    "run this on a machine with a GPU and its driver" \
    "or test the script itself: scripts/gpu-validate.sh --virtual 2 --torch /usr"
  [[ -n $cudaLibrary ]] || die "$torch is a LibTorch for the CPU: it cannot use the $gpus GPUs here" \
    "name a CUDA build with --torch, such as the folder torch/ of the PyTorch wheel"
elif [[ -n $cudaLibrary ]]; then
  die "$torch is a CUDA build, which virtual GPUs do not work with" "name a CPU build: --torch /usr"
fi

mkdir -p "$out"
out=$(cd "$out" && pwd)
generator=()
if command -v ninja >/dev/null; then generator=(-G Ninja); fi
say "configuring in $out/build"
begin=$SECONDS
configure=(cmake -S "$repoRoot/runtime-shim" -B "$out/build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release
  -DRUNTIME_SHIM_TESTS=OFF -DDEVICE_TIDY_WERROR=OFF -DSYSTEMS_DEVICE_LIST=ON "-DTORCH_ROOT=$torch")
"${configure[@]}" >"$out/configure.log" 2>&1 ||
  die "CMake could not configure; its output is $out/configure.log" "$(grep -m1 -A9 'CMake Error' "$out/configure.log" | tr -s ' \n' ' ')"
# Over Gloo the ranks would train as well, and nothing be said about NCCL.
withoutNccl=$(sed -n 's/^DEVICE_SHIM_WITHOUT_NCCL:INTERNAL=//p' "$out/build/CMakeCache.txt")
[[ $virtual -gt 0 || -z $withoutNccl ]] || die "NCCL cannot be compiled in: $withoutNccl"
targets=(device_shim gpu_validation systems)
if [[ $virtual -gt 0 ]]; then targets+=(virtual_cuda); fi
if grep -q '^RUNTIME_SHIM_HAS_DEVICE_RUN:INTERNAL=ON$' "$out/build/CMakeCache.txt"; then targets+=(device-run); fi
say "building ${targets[*]} with $jobCount jobs"
for target in "${targets[@]}"; do
  cmake --build "$out/build" --parallel "$jobCount" --target "$target" >"$out/build.log" 2>&1 ||
    die "the build of $target failed; its output is $out/build.log" "$(grep -m1 'error' "$out/build.log" || true)"
  if [[ $target == device_shim ]]; then shimSeconds=$((SECONDS - begin)); fi
done
say "built in $((SECONDS - begin)) s, device_shim in $shimSeconds s"

if [[ $virtual -gt 0 ]]; then
  options+=(--virtual "$virtual" --virtual-cuda "$out/build/lib/libvirtual_cuda.so")
fi
exec python3 "$repoRoot/runtime-shim/gpu-validation/validate.py" --programs "$out/build/bin" --out "$out" \
  --torch "$torch" --build-seconds "$((SECONDS - begin))" --shim-seconds "$shimSeconds" ${options[@]+"${options[@]}"}
