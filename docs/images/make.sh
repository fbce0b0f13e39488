#!/usr/bin/env bash
# make.sh [DIR]
#
# Makes the pictures of docs/reports.md: the page and the graph of example.cpp, in headless Chromium (Debian package
# chromium). They are written to DIR, by default the folder of this script. Needs build/bin/device-tidy and LibTorch
# in /usr/include, which scripts/install-deps.sh installs.

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repoRoot=$(cd "$here/../.." && pwd)
out=${1:-$here}

command -v chromium >/dev/null || {
  echo "make.sh: chromium is not installed; on Debian: apt-get install chromium" >&2
  exit 2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

analyse() {
  "$repoRoot/build/bin/device-tidy" --quiet --no-cache --source-root="$here" "$@" "$here/example.cpp" -- \
    -std=c++17 -I/usr/include/torch/csrc/api/include || [[ $? -eq 1 ]]
}

# shoot PAGE PICTURE WIDTH HEIGHT
shoot() {
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" \
    --window-size="$3,$4" --screenshot="$2" "file://$1" 2>/dev/null
}

analyse --format=html --output="$work/report.html"
shoot "$work/report.html" "$out/report.png" 900 1300
analyse --graph=train_epoch --output="$work/graph.svg"
read -r width height < <(sed -n '1s/.* width="\([0-9]*\)" height="\([0-9]*\)".*/\1 \2/p' "$work/graph.svg")
shoot "$work/graph.svg" "$out/graph.png" "$width" "$height"
