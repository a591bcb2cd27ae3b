#!/usr/bin/env bash
# Measures what including Heddle costs a compile, and prints it as JSON.
#
#   tools/bench/compile_time.sh [KERNEL-FILE]
#
# Each figure is the least processor time (user and system) of five runs of `-fsyntax-only`, in
# seconds; "kernel" is compiled to an object file at -O2. Abseil's StatusOr stands beside ours because
# it is most of what heddle.h costs. CXX chooses the compiler (g++). Headers that are not there are left out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
kernel=${1:-kernels/row_sum.cc}
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
: >"$scratch/empty.cc"
figures+=("\"empty\": $(fastest -fsyntax-only "$scratch/empty.cc")")
for header in absl/status/statusor.h heddle/dsl/dsl.h heddle/heddle.h; do
  if [[ $header != heddle/* || -e $scratch/include/$header ]]; then
    echo "#include \"$header\"" >"$scratch/use.cc"
    figures+=("\"$header\": $(fastest -fsyntax-only "$scratch/use.cc")")
  fi
done
if [[ -e $kernel ]]; then
  figures+=("\"kernel\": $(fastest -O2 -c -o "$scratch/kernel.o" "$kernel")" "\"kernel_file\": \"$kernel\"")
fi

processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n1)
printf '{\n  "benchmark": "compile_time",\n  "date": "%s",\n  "compiler": "%s",\n  "processor": "%s",\n' \
  "$(date -u +%F)" "$("$compiler" --version | head -n1)" "$processor"
printf '  "unit": "s",\n  "runs": %d' "$runs"
printf ',\n  %s' "${figures[@]}"
printf '\n}\n'
