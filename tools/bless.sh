#!/usr/bin/env bash
# Rewrites all goldens: the PTX of the library's kernels, and what follows `; check-exact:` in filetests. Look
# at what git says has changed.
#
#   tools/bless.sh [BUILD_FOLDER]          build/release by default
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
cmake --build "$build" --target test_ir test_kernels
HEDDLE_BLESS=1 ctest --test-dir "$build" --output-on-failure -R '^(Filetest\.|Library/KernelPtx)'
git status --short tests/filetests
