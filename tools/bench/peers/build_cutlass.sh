#!/bin/bash
# Builds CUTLASS as a peer of the benchmarks, with nvcc, from a checkout of CUTLASS's sources:
#
#   tools/bench/peers/build_cutlass.sh CUTLASS_FOLDER [OUT_FOLDER [JOBS]]
#
# Writes OUT_FOLDER/peer_cutlass.so (by default build/peers), which needs no library of CUDA's, and beside it
# peer_cutlass.json: the seconds of processor time that nvcc took for each kernel. A kernel takes about half a minute.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '2,8s/^# \?//p' "$0" >&2; exit 2; }
cutlass=$1 out=${2:-$here/../../../build/peers} jobs=${3:-$(nproc)}
[ -f "$cutlass/include/cutlass/cutlass.h" ] || { echo "build_cutlass.sh: $cutlass has no include/cutlass/cutlass.h" >&2; exit 2; }
nvcc=${NVCC:-$(command -v nvcc || ls /usr/local/cuda*/bin/nvcc 2>/dev/null | sort -V | tail -1)}
[ -n "$nvcc" ] || { echo "build_cutlass.sh: nvcc is neither in PATH nor below /usr/local; set NVCC" >&2; exit 2; }
version=$("$nvcc" --version | sed -n 's/.*release [0-9.]*, V//p')
mkdir -p "$out/rows"
export nvcc here cutlass out

row() {
  local object=$out/rows/$1.o newest TIMEFORMAT="%U %S"
  newest=$(ls -t "$here"/cutlass_gemm.* "$object" 2>/dev/null | head -1 || true)
  if [ "$newest" = "$object" ]; then return; fi
  { time "$nvcc" -std=c++17 -O3 -DNDEBUG --expt-relaxed-constexpr -diag-suppress 20012 -Xcompiler -fPIC \
      -gencode=arch=compute_90a,code=sm_90a -I"$cutlass/include" -DHEDDLE_ROW="$1" \
      -c "$here/cutlass_gemm.cu" -o "$object.new" 2>&3; } 3>&2 2> "$out/rows/$1.times"
  mv "$object.new" "$object"
  awk '{ printf "%.1f\n", $1 + $2 }' "$out/rows/$1.times" > "$out/rows/$1.seconds"
  echo "kernel $1: $(cat "$out/rows/$1.seconds") s" >&2
}
export -f row

rows=$(sed -n 's/^SM[89]0[A-Z_]*(\([0-9]*\),.*/\1/p' "$here/cutlass_gemm.def")
echo "$rows" | xargs -P "$jobs" -I{} bash -c 'set -euo pipefail; row {}'
"$nvcc" -std=c++17 -O2 -DHEDDLE_NVCC_VERSION="\"$version\"" -Xcompiler -fPIC -I"$cutlass/include" \
  -c "$here/cutlass_peer.cc" -o "$out/rows/peer.o"
"$nvcc" -shared -cudart static -gencode=arch=compute_90a,code=sm_90a -Xlinker --exclude-libs=ALL -Xcompiler -static-libgcc \
  -Xcompiler -static-libstdc++ -o "$out/peer_cutlass.so" "$out/rows/peer.o" $(printf "$out/rows/%s.o " $rows)
{
  processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
  echo "{\"processor\": \"$processor\", \"date\": \"$(date +%F)\","
  echo "\"command\": \"tools/bench/peers/build_cutlass.sh CUTLASS_FOLDER\", \"nvcc\": \"$version\", \"processor_seconds\": {"
  for number in $rows; do
    [ -f "$out/rows/$number.seconds" ] || continue
    name=$(sed -n "s/^\(SM[89]0[A-Z_]*\)($number, \"\([^\"]*\)\", \([A-Za-z0-9]*\).*/\1 \3 \2/p" "$here/cutlass_gemm.def")
    echo "  \"$number: $name\": $(cat "$out/rows/$number.seconds"),"
  done | sed '$ s/,$//'
  echo "}}"
} > "$out/peer_cutlass.json"
echo "$out/peer_cutlass.so"
