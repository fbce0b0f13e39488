# try_page.sh CHECK FOLDER PYTHON DEVICE-TIDY -- FLAGS...
# Fails unless device-tidy reports the bad example of the check's page and nothing in the good one.
set -eu
check=$1 folder=$2 python=$3 tool=$4
shift 5
here=$(dirname "$0")
headers=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
for kind in bad good; do
  file=$folder/$check-$kind.cpp
  "$python" "$here/page_example.py" "$here/../../../docs/checks/$check.md" "$kind" > "$file"
  if grep -q '<<<' "$file"; then
    mv "$file" "${file%.cpp}.cu"
    file=${file%.cpp}.cu
  fi
  status=0
  "$tool" --quiet --checks="$check" "$file" -- "$@" -DUSE_C10D_GLOO -isystem "$headers" || status=$?
  case $kind$status in
    bad1 | good0) ;;
    *) echo "the $kind example of $check: exit status $status" && exit 1 ;;
  esac
done
