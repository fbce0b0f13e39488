#!/usr/bin/env bash
# test.sh [--all] [--no-install]
#
# Installs what is missing, builds, and runs the tests.
#   --all         also the slow suites, LLVM 19, the sanitizers, the Debian packages,
#                 LibTorch 2.13 of PyTorch's wheel with Python, and a Debian 13 root with its LibTorch
#   --no-install  take the installed packages as they are

set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

all=0
install=1
for argument in "$@"; do
  case $argument in
    --all) all=1 ;;
    --no-install) install=0 ;;
    -h | --help) usage "$0" && exit 0 ;;
    *) die "unknown option '$argument'" "see scripts/test.sh --help" ;;
  esac
done

failed=()
dir=$(buildDir default)

# tier NAME COMMAND...: runs one tier of --all and remembers whether it failed.
tier() {
  local name=$1
  shift
  say "$name"
  "$@" || failed+=("$name")
}

# suites PRESET [CTEST ARGUMENTS...]
suites() {
  local preset=$1
  shift
  "$repoRoot/scripts/build.sh" --preset "$preset" &&
    ctest --test-dir "$(buildDir "$preset")" --parallel "$jobCount" --output-on-failure --no-tests=error "$@"
}

# LLVM is not instrumented, so a container it filled looks overflowed to code that is, and memory it took from an
# allocator looks untouched. An exit code of its own, for findings are exit code 1.
sanitizerSuites() {
  ASAN_OPTIONS=detect_container_overflow=0:allow_user_poisoning=0:exitcode=86 UBSAN_OPTIONS=print_stacktrace=1 \
    LSAN_OPTIONS=suppressions=$repoRoot/test/sanitizers/leaks.txt:print_suppressions=0 suites asan -LE slow
}

# runtimeSanitizers NAME SUITES: the runtime, built with sanitizers, and those of its suites whose names match.
# LibTorch is not instrumented; test/sanitizers says what that means for each of them.
# Where virtual GPUs are preloaded, a symbolizer would get them, too, and cannot run with an instrumented library:
# ThreadSanitizer gives offsets, for llvm-symbolizer by hand.
runtimeSanitizers() {
  local name=$1 suites=$2 build=$repoRoot/build-runtime-${1//,/-} rules=$repoRoot/test/sanitizers
  cmake -S "$repoRoot/runtime-shim" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O1 \
    -DCMAKE_CXX_COMPILER="$(sanitizerCompiler)" -DDEVICE_TIDY_SANITIZE="$name" -DRUNTIME_SHIM_SYSTEMS=OFF >/dev/null &&
    cmake --build "$build" --parallel "$jobCount" &&
    ASAN_OPTIONS=detect_container_overflow=0 LSAN_OPTIONS=suppressions=$rules/leaks.txt \
      UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=suppressions=$rules/threads.txt:ignore_noninstrumented_modules=1:symbolize=0 \
      ctest --test-dir "$build" -R "$suites" -LE slow --output-on-failure --no-tests=error
}

# The runtime of clang's sanitizers is part of the program, so that an instrumented library can be preloaded.
sanitizerCompiler() {
  command -v clang++-22 || command -v clang++-19 || command -v clang++ ||
    die "clang is not installed" "run scripts/install-deps.sh first"
}

# The runtime, the five systems, in C++ and in Python, and the labelled cases with the LibTorch of PyTorch's wheel for the
# CPU, in C++20 as its own CMake package asks for.
libTorch213() {
  local build=$repoRoot/build-torch-2.13 torch
  torch=$("$repoRoot/scripts/torch-wheel.sh" 2.13.0 "$build/venv") &&
    cmake -S "$repoRoot/runtime-shim" -B "$build" -G Ninja -DTORCH_ROOT="$torch" -DCMAKE_CXX_STANDARD=20 >/dev/null &&
    cmake --build "$build" --parallel "$jobCount" &&
    ctest --test-dir "$build" -LE slow --output-on-failure --no-tests=error &&
    ctest --test-dir "$build" -R executed --output-on-failure --no-tests=error &&
    "$repoRoot/test/packaging/wheel.py" --torch-python "$build/venv/bin/python3" &&
    "$repoRoot/test/cases/run_cases.py" --tool "$dir/bin/device-tidy" -j "$jobCount" --torch "$torch" \
      --compile-arg=-std=c++20
}

slowSuites() { ctest --test-dir "$dir" -N -L slow | sed -n 's/^ *Test *#[0-9]*: *//p'; }

printLeftOut() {
  echo "Left out here, run by scripts/test.sh --all:"
  slowSuites | sed 's/^/  - suite /'
  echo "  - the build and the tests with LLVM 19"
  echo "  - the build and the tests with AddressSanitizer and UndefinedBehaviorSanitizer"
  echo "  - the Debian packages, installed in a clean root"
  echo "  - the wheel of device-tidy, installed in a fresh virtual environment"
  echo "  - virtual GPUs, device-run and device_shim with AddressSanitizer and UndefinedBehaviorSanitizer"
  echo "  - device_shim with ThreadSanitizer"
  echo "  - the runtime, virtual GPUs for Python, the five systems and the labelled cases with LibTorch 2.13, of PyTorch's wheel"
  echo "  - the five systems in Python, with their libraries from PyPI"
  echo "  - the build and the tests in a Debian 13 root, with its newer LibTorch"
}

if [[ $install -eq 1 ]]; then
  options=()
  [[ $all -eq 0 ]] || options+=(--all)
  "$repoRoot/scripts/install-deps.sh" ${options[@]+"${options[@]}"}
fi

if [[ $all -eq 0 ]]; then
  suites default -LE slow || failed+=("the short tier")
  [[ ! -f $dir/CTestTestfile.cmake ]] || printLeftOut
else
  tier "default build, all suites" suites default
  tier "LLVM 19" suites llvm19 -LE slow
  tier "AddressSanitizer and UndefinedBehaviorSanitizer" sanitizerSuites
  tier "Debian packages in a clean root" "$repoRoot/scripts/test-packages.sh"
  tier "the wheel of device-tidy" "$repoRoot/test/packaging/tidy_wheel.py"
  tier "the runtime with AddressSanitizer and UndefinedBehaviorSanitizer" runtimeSanitizers address,undefined .
  tier "device_shim with ThreadSanitizer" runtimeSanitizers thread '^device_shim'
  tier "LibTorch 2.13" libTorch213
  tier "Debian 13" "$repoRoot/scripts/debian13-root.sh" scripts/test.sh
fi

if [[ ${#failed[@]} -gt 0 ]]; then
  for name in "${failed[@]}"; do printf 'failed: %s\n' "$name" >&2; done
  exit 1
fi
echo "All tests passed."
