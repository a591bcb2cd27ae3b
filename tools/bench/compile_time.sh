#!/usr/bin/env bash
# Measures what including Heddle costs a compile, and prints it as JSON.
#
#   tools/bench/compile_time.sh
#
# Each figure is the least processor time (user and system) of five runs, in seconds: of `-fsyntax-only`
# for headers, of `-O2 -c` for files. Three headers of the standard library, which heddle.h includes,
# stand beside ours. CXX chooses the compiler (g++).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
compiler=${CXX:-g++}
readonly runs=5

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# The include tree of a build, made here so that no build is needed.
mkdir -p "$scratch/include/heddle"
for folder in dsl ir codegen runtime kernels; do ln -s "$PWD/$folder" "$scratch/include/heddle/$folder"; done
ln -s "$PWD/runtime/heddle.h" "$scratch/include/heddle/heddle.h"

# fastest FLAG... SOURCE: processor seconds of the cheapest run.
fastest() {
  local i TIMEFORMAT='%3U %3S'
  for ((i = 0; i < runs; ++i)); do
    { time "$compiler" -std=c++20 "-I$scratch/include" "$@" >&3 2>&4; } 2>&1
  done 3>&1 4>&2 | awk '{ t = $1 + $2 } NR == 1 || t < best { best = t } END { printf "%.3f", best }'
}

figures=()
# figure NAME FLAG... SOURCE
figure() {
  local name=$1
  shift
  figures+=("\"$name\": $(fastest "$@")")
}
header() {
  printf '#include <%s>\n' "$@" >"$scratch/use.cc"
  figure "$*" -fsyntax-only "$scratch/use.cc"
}
header cstddef
header string vector memory
header heddle/dsl/dsl.h
header heddle/heddle.h
figure "tests/downstream/main.cc" -O2 -c -o "$scratch/main.o" tests/downstream/main.cc
figure "kernels/row_sum.cc" -O2 -c -o "$scratch/kernel.o" kernels/row_sum.cc
echo '#include <heddle/heddle.h>' >"$scratch/all.h"
"$compiler" -std=c++20 "-I$scratch/include" -O2 -x c++-header -o "$scratch/all.h.gch" "$scratch/all.h"
figure "tests/downstream/main.cc, heddle.h precompiled" \
  -O2 -c -include "$scratch/all.h" -o "$scratch/main.o" tests/downstream/main.cc

processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n1)
printf '{\n  "benchmark": "compile_time",\n  "date": "%s",\n  "compiler": "%s",\n  "processor": "%s",\n' \
  "$(date -u +%F)" "$("$compiler" --version | head -n1)" "$processor"
printf '  "runs": %d,\n  "seconds": {\n    %s' "$runs" "${figures[0]}"
printf ',\n    %s' "${figures[@]:1}"
printf '\n  }\n}\n'
