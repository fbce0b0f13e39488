# shellcheck shell=bash
# Shared by the other scripts; source it, do not run it.

repoRoot=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # for the scripts that source this file
jobCount=$(nproc)

say() { printf '== %s\n' "$*" >&2; }

# die CAUSE NEXT-STEP
die() {
  printf 'error: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '       %s\n' "$line" >&2; done
  exit 2
}

# Prints the comment block at the top of a script as its help text.
usage() { sed -n '2,/^$/s/^# \{0,1\}//p' "$1"; }

# Runs a command as root: directly, or through sudo for anyone else.
asRoot() {
  if [[ $(id -u) -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo --preserve-env=DEBIAN_FRONTEND,http_proxy,https_proxy,no_proxy,DEVICE_TIDY_DEBIAN_MIRROR "$@"
  else
    die "'$*' needs root and there is no sudo" "run this script as root"
  fi
}

# The build folder of a preset, as CMakePresets.json names it.
buildDir() {
  if [[ $1 == default ]]; then echo "$repoRoot/build"; else echo "$repoRoot/build-$1"; fi
}
