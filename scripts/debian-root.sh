# shellcheck shell=bash
# debian-root.sh: functions for scripts that run something in a Debian root of their own. Source it after lib.sh.
#
# Roots are made with debootstrap. DEVICE_TIDY_DEBIAN_MIRROR names another mirror.

mirror=${DEVICE_TIDY_DEBIAN_MIRROR:-http://deb.debian.org/debian}
mounted=()

# makeRoot RELEASE ROOT: does nothing when the root is there.
makeRoot() {
  local release=$1 root=$2
  [[ ! -d $root ]] || return 0
  command -v debootstrap >/dev/null || [[ -x /usr/sbin/debootstrap ]] ||
    die "debootstrap is not installed" "run scripts/install-deps.sh --all first"
  say "making a Debian root of $release in $root"
  # Made under another name, so that an interrupted run never looks like a finished root.
  asRoot rm -rf "$root.new"
  mkdir -p "$(dirname "$root")"
  asRoot env PATH="$PATH:/usr/sbin:/sbin" debootstrap --variant=minbase --include=ca-certificates \
    "$release" "$root.new" "$mirror" >&2 ||
    die "debootstrap failed; its log is $root.new/debootstrap/debootstrap.log" \
      "check the network, or name another mirror in DEVICE_TIDY_DEBIAN_MIRROR"
  # The security archive holds LLVM 22.
  asRoot tee "$root.new/etc/apt/sources.list" >/dev/null <<SOURCES
deb $mirror $release main
deb $mirror $release-updates main
deb ${mirror%/debian}/debian-security $release-security main
SOURCES
  asRoot mv "$root.new" "$root"
}

unmountAll() {
  local i
  for ((i = ${#mounted[@]} - 1; i >= 0; --i)); do asRoot umount "${mounted[i]}" || true; done
}

# mountInRoot ROOT TYPE PLACE
mountInRoot() {
  local target=$1/$3
  mountpoint -q "$target" && return 0
  asRoot mkdir -p "$target"
  asRoot mount -t "$2" "$2" "$target" ||
    die "/$3 cannot be mounted in $1" \
      "run this where mounts are allowed (a privileged container, or a VM)"
  mounted+=("$target")
}

# enterRoot ROOT: mounts what programs in the root need until this script ends.
enterRoot() {
  trap unmountAll EXIT
  mountInRoot "$1" proc proc
  mountInRoot "$1" devpts dev/pts # terminals, for the tests that press Ctrl-C
  local file
  for file in /etc/resolv.conf /etc/hosts; do
    [[ ! -e $file ]] || asRoot cp -L "$file" "$1$file"
  done
}

# runInRoot ROOT DIRECTORY COMMAND [ARGUMENTS...]: in an environment of its own, proxies excepted.
runInRoot() {
  local root=$1 name
  shift
  local environment=(HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin)
  for name in http_proxy https_proxy no_proxy; do
    [[ -z ${!name:-} ]] || environment+=("$name=${!name}")
  done
  # shellcheck disable=SC2016 # expanded by the inner shell
  asRoot chroot "$root" /usr/bin/env -i "${environment[@]}" bash -c 'cd "$1" && shift && exec "$@"' bash "$@"
}
