#!/usr/bin/env bash
# build.sh [--preset NAME] [TARGET...]
#
# Configures and builds. Presets are in CMakePresets.json; `default` builds in build/, NAME in build-NAME/.

set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

preset=default
targets=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --preset)
      [[ $# -ge 2 ]] || die "--preset needs a name" "the names are: $(sed -n 's/^ *"name": "\(.*\)",$/\1/p' \
        "$repoRoot/CMakePresets.json" | tr '\n' ' ')"
      preset=$2
      shift
      ;;
    -h | --help) usage "$0" && exit 0 ;;
    -*) die "unknown option '$1'" "see scripts/build.sh --help" ;;
    *) targets+=(--target "$1") ;;
  esac
  shift
done

for tool in cmake ninja; do
  command -v "$tool" >/dev/null || die "$tool is not installed" "run scripts/install-deps.sh first"
done

cd "$repoRoot"
dir=$(buildDir "$preset")
say "configuring ${dir#"$repoRoot"/}"
cmake --preset "$preset" --log-level=NOTICE >/dev/null ||
  die "CMake could not configure the preset '$preset'" \
    "if a package is missing, run scripts/install-deps.sh" \
    "if ${dir#"$repoRoot"/} is from another setup, delete it"
say "building with $jobCount jobs"
cmake --build "$dir" --parallel "$jobCount" ${targets[@]+"${targets[@]}"} ||
  die "the build failed" "the compiler's first error is above"
