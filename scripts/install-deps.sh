#!/usr/bin/env bash
# install-deps.sh [--llvm N] [--lint] [--all]
#
# Installs the Debian packages the project needs and does nothing, network included, when all are there.
#   --llvm N   LLVM major to install for (default: 22 where the release has it, else 19)
#   --lint     also what scripts/format.sh and the linters need
#   --all      also what scripts/test.sh --all needs: LLVM 19, libc++, sanitizer runtimes, debootstrap, schedulers, Bazel

set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

llvm=
lint=0
all=0
while [[ $# -gt 0 ]]; do
  case $1 in
    --llvm)
      [[ $# -ge 2 ]] || die "--llvm needs a version" "say --llvm 22 or --llvm 19"
      llvm=$2
      shift
      ;;
    --lint) lint=1 ;;
    --all) all=1 ;;
    -h | --help) usage "$0" && exit 0 ;;
    *) die "unknown option '$1'" "see scripts/install-deps.sh --help" ;;
  esac
  shift
done

installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

hasCandidate() {
  local candidate
  candidate=$(apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p')
  [[ -n $candidate && $candidate != "(none)" ]]
}

updated=0
updateLists() {
  [[ $updated -eq 0 ]] || return 0
  updated=1
  say "apt-get update"
  asRoot apt-get update -qq ||
    die "apt-get update failed" "check the network and /etc/apt/sources.list*, then run this script again"
}

pickLlvm() {
  for major in 22 19; do
    if installed "libclang-$major-dev" || hasCandidate "libclang-$major-dev"; then
      echo "$major"
      return
    fi
  done
}

missingOf() {
  for package in "$@"; do installed "$package" || echo "$package"; done
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  die "this system has no apt, so packages cannot be installed automatically" \
    "install these and run scripts/build.sh: clang 22 with its development files, lit, FileCheck," \
    "cmake 3.25, ninja, fmt, nlohmann-json, toml++, GoogleTest, LibTorch 1.13 or newer, python 3.9"
fi

if [[ -z $llvm ]]; then
  llvm=$(pickLlvm)
  # Lists from before LLVM 22 came offer 19, or nothing.
  if [[ $llvm != 22 ]] && ! installed "libclang-${llvm:-22}-dev"; then
    updateLists
    llvm=$(pickLlvm)
  fi
  [[ -n $llvm ]] || die "neither LLVM 22 nor 19 is in the package lists of this system" \
    "Debian 12 has LLVM 22 in its security archive: add 'bookworm-security' to /etc/apt/sources.list" \
    "elsewhere, take the packages from https://apt.llvm.org"
fi

packages=(
  "clang-$llvm" "llvm-$llvm-dev" "libclang-$llvm-dev" "llvm-$llvm-tools"
  "clang-tidy-$llvm" # the plugin is tested in it
  ccache cmake g++ libfmt-dev libgloo-dev libgtest-dev libjemalloc-dev libtomlplusplus-dev libtorch-dev make ninja-build
  nlohmann-json3-dev
  python3
  libpython3-dev pybind11-dev # the programs under test embed Python
  python3-torch               # the PyTorch of virtual GPUs for Python
  git pre-commit python3-yaml # the hook and the templates for CI are run
  neovim                      # its client tests the language server
)
if [[ $lint -eq 1 ]]; then
  packages+=("clang-format-$llvm" shellcheck)
fi
if [[ $all -eq 1 ]]; then
  packages+=("libclang-rt-$llvm-dev" "libc++-$llvm-dev" "clangd-$llvm" clang-19 clang-tidy-19 llvm-19-dev libclang-19-dev
    llvm-19-tools debootstrap libbenchmark-dev valgrind chromium python3-venv
    slurmctld slurmd slurm-client munge openmpi-bin mpich # start ranks in the suite schedulers
    bazel-bootstrap)                                      # builds with docs/bazel
  command -v npm >/dev/null || packages+=(nodejs npm) # the VS Code extension and its host
fi

mapfile -t missing < <(missingOf "${packages[@]}")
[[ ${#missing[@]} -gt 0 ]] || exit 0

for package in "${missing[@]}"; do
  hasCandidate "$package" || updateLists
done
for package in "${missing[@]}"; do
  hasCandidate "$package" || die "no package '$package' in the package lists of this system" \
    "add an archive that has it to /etc/apt/sources.list, then run this script again"
done

say "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
install=(apt-get install -y -qq --no-install-recommends "${missing[@]}")
if ! asRoot "${install[@]}" >/dev/null; then
  [[ $updated -eq 0 ]] ||
    die "apt-get install failed" "fix what apt-get says above, then run this script again"
  updateLists # the lists may name versions the mirror has already replaced
  asRoot "${install[@]}" >/dev/null ||
    die "apt-get install failed" "fix what apt-get says above, then run this script again"
fi
