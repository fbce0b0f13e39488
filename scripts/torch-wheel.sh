#!/usr/bin/env bash
# torch-wheel.sh VERSION DIR
#
# Installs PyTorch's wheel of that version and NumPy into a virtual environment in DIR, and prints the folder of its
# LibTorch.

set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1:-} in
  "" | -h | --help) usage "$0" && exit 0 ;;
esac
[[ $# -eq 2 ]] || die "a version and a folder are needed" "see scripts/torch-wheel.sh --help"
version=$1 venv=$2

[[ -x $venv/bin/python3 ]] || python3 -m venv "$venv" >&2 ||
  die "python3 cannot make a virtual environment in $venv" "run scripts/install-deps.sh --all first"
"$venv/bin/python3" -m pip install --quiet numpy "torch==$version" >&2 ||
  die "pip cannot install torch $version" "pip's reason is above; the wheel must fit $(python3 --version)"
torch=$("$venv/bin/python3" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch
[[ ! -e $torch/lib/libtorch_cuda.so ]] || die "pip's torch $version for this machine is a CUDA build" \
  "name an index that has CPU builds: PIP_INDEX_URL=https://download.pytorch.org/whl/cpu"
echo "$torch"
