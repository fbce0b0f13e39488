#!/usr/bin/env bash
# debian13-root.sh [COMMAND [ARGUMENTS...]]
#
# Runs a command in a copy of this repository inside a Debian 13 root, by default scripts/test.sh.
# The root is made once, with debootstrap, in ${XDG_CACHE_HOME:-~/.cache}/device-tidy-debian13, and the
# copy keeps its own build folder there. DEVICE_TIDY_DEBIAN_MIRROR names another mirror.

set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=debian-root.sh
source "$(dirname "${BASH_SOURCE[0]}")/debian-root.sh"

case ${1:-} in
  -h | --help) usage "$0" && exit 0 ;;
esac
[[ $# -gt 0 ]] || set -- scripts/test.sh

root=${XDG_CACHE_HOME:-$HOME/.cache}/device-tidy-debian13
copy=/src/device-tidy

# The working tree as git sees it, untracked files included; the copy's build folders stay.
copyTree() {
  local target=$root$copy list
  list=$(mktemp)
  git -C "$repoRoot" ls-files -z --cached --others --exclude-standard >"$list" ||
    die "git cannot list the files of $repoRoot" "run this script in a clone"
  asRoot mkdir -p "$target"
  asRoot find "$target" -mindepth 1 -maxdepth 1 ! -name 'build*' -exec rm -rf {} +
  # A file that was deleted but is still in the index is no error.
  tar -C "$repoRoot" --null --ignore-failed-read --files-from "$list" -c 2>/dev/null |
    asRoot tar -C "$target" --no-same-owner -x
  rm -f "$list"
}

makeRoot trixie "$root"
enterRoot "$root"
copyTree
say "Debian 13: $*"
runInRoot "$root" "$copy" "$@"
