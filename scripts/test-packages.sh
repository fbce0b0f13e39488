#!/usr/bin/env bash
# test-packages.sh [PACKAGE_DIRECTORY]
#
# Makes the Debian packages of build/ (or takes those in PACKAGE_DIRECTORY), installs them in a clean root of this
# Debian release and uses what they bring. The root is made once, in ${XDG_CACHE_HOME:-~/.cache}, and copied.

set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=debian-root.sh
source "$(dirname "${BASH_SOURCE[0]}")/debian-root.sh"

case ${1:-} in
  -h | --help) usage "$0" && exit 0 ;;
esac
# shellcheck source=/dev/null
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
[[ -n $release ]] || die "/etc/os-release names no Debian release" "run this on Debian"
clean=${XDG_CACHE_HOME:-$HOME/.cache}/device-tidy-$release
root=$clean-packages
packages=${1:-}
if [[ -z $packages ]]; then
  packages=$(buildDir default)/packages
  rm -rf "$packages"
  say "making the packages"
  (cd "$(buildDir default)" && cpack -B "$packages" >/dev/null) ||
    die "cpack failed" "build everything first: scripts/build.sh"
fi

makeRoot "$release" "$clean"
asRoot rm -rf "$root"
asRoot cp -a "$clean" "$root"
enterRoot "$root"
asRoot mkdir -p "$root/packages" "$root/try"
asRoot cp "$packages"/*.deb "$root/packages"
asRoot cp -r "$repoRoot/test/lit/report/Inputs/torch" "$root/try"
asRoot tee "$root/try/sum.cpp" >/dev/null <<'SOURCE'
#include <torch/torch.h>
torch::Tensor sum(long n) {
  auto x = torch::ones({n}, torch::kCUDA);
  auto y = torch::randn({n});
  return x + y;
}
SOURCE
asRoot tee "$root/try/train.py" >/dev/null <<'SOURCE'
import torch
model = torch.nn.Linear(4, 3).cuda()
labels = torch.randint(3, (8,))
loss = torch.nn.functional.cross_entropy(model(torch.randn(8, 4, device="cuda")), labels)
loss.backward()
SOURCE
asRoot tee "$root/try/try.sh" >/dev/null <<'TRY'
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# Only what the package depends on, and a standard library for the code to be read.
apt-get install -y -qq --no-install-recommends /packages/device-tidy_*.deb g++ >/dev/null
device-tidy --version
code=0
device-tidy --no-cache sum.cpp -- -std=c++17 -isystem . >out.txt 2>&1 || code=$?
cat out.txt
[[ $code -eq 1 ]]
grep -q "sum.cpp:5:12: warning: '+' gets 'x' on cuda and 'y' on cpu \[device-mixed-op\]" out.txt
[[ -s /usr/share/man/man1/device-tidy.1 || -s /usr/share/man/man1/device-tidy.1.gz || ! -d /usr/share/man/man1 ]]
bash -n /usr/share/bash-completion/completions/device-tidy
device-run -n 2 -- /bin/sh -c 'echo rank $RANK of $WORLD_SIZE' | sort
# Virtual GPUs for Debian's Python and PyTorch.
apt-get install -y -qq --no-install-recommends /packages/device-tidy-virtual-gpu_*.deb python3-torch >/dev/null
device-run --virtual-gpus 2 -- python3 -c 'import torch; print(torch.ones(1, device="cuda:1"))'
code=0
device-run --virtual-gpus 2 -- python3 train.py >out.txt 2>&1 || code=$?
cat out.txt
[[ $code -eq 1 ]]
grep -q "change train.py:3: create it on cuda:0" out.txt
apt-get remove -y -qq device-tidy device-tidy-virtual-gpu >/dev/null
[[ ! -e /usr/bin/device-tidy && ! -e /usr/bin/device-run ]]
[[ -z $(find /usr/lib -name 'libvirtual_cuda*' -o -name virtual_cuda_python) ]]
TRY
say "in a clean root of $release"
runInRoot "$root" /try bash try.sh || die "the packages do not work in a clean Debian root" "its files are in $root"
unmountAll
mounted=()
asRoot rm -rf "$root"
echo "The packages work."
