#!/usr/bin/env bash
# format.sh [--check]
#
# Formats the C++ files of the repository with clang-format; --check only says which would change.

set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

options=(-i)
case ${1:-} in
  "") ;;
  --check) options=(--dry-run --Werror) ;;
  -h | --help) usage "$0" && exit 0 ;;
  *) die "unknown option '$1'" "see scripts/format.sh --help" ;;
esac

# One version only: every release of clang-format lays out some code differently.
formatter=clang-format-22
command -v "$formatter" >/dev/null ||
  die "$formatter is not installed" "run scripts/install-deps.sh --lint first"

cd "$repoRoot"
# lit tests and the labelled cases match their findings by line, so they keep their own layout.
mapfile -d '' files < <(git ls-files -z --cached --others --exclude-standard -- '*.cpp' '*.h' \
  ':!test/lit' ':!test/cases')
existing=()
for file in "${files[@]}"; do [[ ! -f $file ]] || existing+=("$file"); done
[[ ${#existing[@]} -gt 0 ]] || exit 0
if ! "$formatter" "${options[@]}" "${existing[@]}"; then
  die "some files are not formatted" "run scripts/format.sh"
fi
