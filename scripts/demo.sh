#!/usr/bin/env bash
# demo.sh [-p BUILD_DIR [OPTIONS] [FILES...]]
#
# Installs what is missing, builds, and shows what device-tidy finds: without arguments in the five
# training programs of test/systems, which then run on virtual GPUs, broken and fixed; with -p in your own code, whose compile_commands.json is in BUILD_DIR.
# Everything after -p BUILD_DIR goes to device-tidy, whose exit code is returned.

set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1:-} in
  -h | --help) usage "$0" && exit 0 ;;
  "") ;;
  -p)
    [[ $# -ge 2 ]] || die "-p needs the folder that holds compile_commands.json" \
      "with CMake, configure with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON and name the build folder"
    ;;
  -p?*) ;;
  *) die "unknown argument '$1'" "see scripts/demo.sh --help" ;;
esac

"$repoRoot/scripts/install-deps.sh"
"$repoRoot/scripts/build.sh" device-tidy >&2 # the tests and what they need take much longer to build
tool=$(buildDir default)/bin/device-tidy
[[ -x $tool ]] || die "the build made no $tool" "look at the messages of scripts/build.sh above"

# The user's paths are relative to where the script was called, so no cd before this.
[[ $# -eq 0 ]] || exec "$tool" "$@"

cd "$repoRoot"
shopt -s nullglob
database=$(buildDir default)

# analyse FILES...: prints the findings and returns device-tidy's exit code.
analyse() {
  local code=0
  "$tool" -p "$database" --quiet "$@" || code=$?
  [[ $code -le 1 ]] || die "device-tidy ended with exit code $code" "its message is above"
  return "$code"
}

missed=()
for folder in test/systems/*/broken; do
  name=$(basename "$(dirname "$folder")")
  say "$name, broken"
  ! analyse "$folder"/*.cpp || missed+=("$name: device-tidy found nothing in $folder")
  say "$name, fixed"
  if analyse "${folder%broken}"fixed/*.cpp; then
    echo "No findings in ${folder%broken}fixed."
  else
    missed+=("$name: device-tidy reported something in ${folder%broken}fixed")
  fi
done

if [[ ${#missed[@]} -gt 0 ]]; then
  printf 'unexpected: %s\n' "${missed[@]}" >&2
  exit 1
fi
echo
echo "Every broken program has its finding, every fixed one is silent. Now they run, on virtual GPUs."

"$repoRoot/scripts/build.sh" systems device-run virtual_cuda >&2

# run RANKS GPUS PROGRAM: runs it, shows the end of what it prints, and returns its exit code.
run() {
  local code=0 log
  log=$(mktemp)
  "$database/bin/device-run" -n "$1" --virtual-gpus "$2" --timeout 300 -- \
    "$database/bin/systems/system-$3" >"$log" 2>&1 || code=$?
  tail -n 12 "$log"
  rm -f "$log"
  return "$code"
}

for system in "qwen-finetune 2 2" "minicpm-zero3 2 2" "easyedit-memit 1 4" "glm4-loss 1 4" "qwen-lora 2 2"; do
  read -r name ranks gpus <<<"$system"
  say "$name, broken, on $gpus virtual GPUs"
  ! run "$ranks" "$gpus" "$name-broken" || missed+=("$name: the broken program ran")
  say "$name, fixed, on $gpus virtual GPUs"
  run "$ranks" "$gpus" "$name-fixed" || missed+=("$name: the fixed program failed")
done

if [[ ${#missed[@]} -gt 0 ]]; then
  printf 'unexpected: %s\n' "${missed[@]}" >&2
  exit 1
fi
echo
echo "Every broken program failed as its finding says, every fixed one trained."
