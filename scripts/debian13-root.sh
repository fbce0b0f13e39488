#!/usr/bin/env bash
# debian13-root.sh [COMMAND [ARGUMENTS...]]
#
# Runs a command in a copy of this repository inside a Debian 13 root, by default scripts/test.sh.
# The root is made once, with debootstrap, in ${XDG_CACHE_HOME:-~/.cache}/device-tidy-debian13, and the
# copy keeps its own build folder there. DEVICE_TIDY_DEBIAN_MIRROR names another mirror.

set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1:-} in
  -h | --help) usage "$0" && exit 0 ;;
esac
[[ $# -gt 0 ]] || set -- scripts/test.sh

root=${XDG_CACHE_HOME:-$HOME/.cache}/device-tidy-debian13
mirror=${DEVICE_TIDY_DEBIAN_MIRROR:-http://deb.debian.org/debian}
copy=/src/device-tidy

makeRoot() {
  command -v debootstrap >/dev/null || [[ -x /usr/sbin/debootstrap ]] ||
    die "debootstrap is not installed" "run scripts/install-deps.sh --all first"
  say "making a Debian 13 root in $root"
  # Made under another name, so that an interrupted run never looks like a finished root.
  asRoot rm -rf "$root.new"
  mkdir -p "$(dirname "$root")"
  asRoot env PATH="$PATH:/usr/sbin:/sbin" debootstrap --variant=minbase --include=ca-certificates \
    trixie "$root.new" "$mirror" >&2 ||
    die "debootstrap failed; its log is $root.new/debootstrap/debootstrap.log" \
      "check the network, or name another mirror in DEVICE_TIDY_DEBIAN_MIRROR"
  # The security archive holds LLVM 22.
  asRoot tee "$root.new/etc/apt/sources.list" >/dev/null <<SOURCES
deb $mirror trixie main
deb $mirror trixie-updates main
deb ${mirror%/debian}/debian-security trixie-security main
SOURCES
  asRoot mv "$root.new" "$root"
}

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

mounted=()
unmount() {
  local i
  for ((i = ${#mounted[@]} - 1; i >= 0; --i)); do asRoot umount "${mounted[i]}" || true; done
}

# mountInRoot TYPE PLACE
mountInRoot() {
  local target=$root/$2
  mountpoint -q "$target" && return 0
  asRoot mkdir -p "$target"
  asRoot mount -t "$1" "$1" "$target" ||
    die "/$2 cannot be mounted in $root" \
      "run this where mounts are allowed (a privileged container, or a VM)"
  mounted+=("$target")
}

[[ -d $root ]] || makeRoot
trap unmount EXIT
mountInRoot proc proc
mountInRoot devpts dev/pts # terminals, for the tests that press Ctrl-C
for file in /etc/resolv.conf /etc/hosts; do
  [[ ! -e $file ]] || asRoot cp -L "$file" "$root$file"
done
copyTree

environment=(HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin)
for name in http_proxy https_proxy no_proxy; do
  [[ -z ${!name:-} ]] || environment+=("$name=${!name}")
done
say "Debian 13: $*"
# shellcheck disable=SC2016 # expanded by the inner shell
asRoot chroot "$root" /usr/bin/env -i "${environment[@]}" \
  bash -c 'cd "$1" && shift && exec "$@"' bash "$copy" "$@"
