#!/bin/bash
# Everything of matrix products that only a GPU shows, in parts of less than eight minutes each:
#
#   tools/bench/h200.sh BUILD_FOLDER OUT_FOLDER            runs the parts that are not done yet, in order
#   tools/bench/h200.sh BUILD_FOLDER OUT_FOLDER PART...    runs these again
#   tools/bench/h200.sh --list
#
# BUILD_FOLDER has tests/ and tools/, with peers in tools/peers. OUT_FOLDER gets a log of each part, JSON files,
# PART.done where a part came to its end, and summary.txt. A part that was cut short goes on where it stopped: products
# that have figures are not measured again. FILTER chooses GPU tests (default: those of matrix products), PARTS
# the parts that are run by default.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
parts=(${PARTS:-tests gemm_new gemm_bf16 gemm_rest triton product sanitizer tune tuned})
[ "${1:-}" = --list ] && { printf '%s\n' "${parts[@]}"; exit 0; }
[ $# -ge 2 ] || { sed -n '2,12s/^# \?//p' "$0" >&2; exit 2; }
bin=$1 out=$2; shift 2
[ -x "$bin/tests/test_kernels" ] && [ -x "$bin/tools/gemm_bench" ] || { echo "h200.sh: $bin has no tests/test_kernels or tools/gemm_bench" >&2; exit 2; }
filter=${FILTER:-*Gemm*:*Product*:*Mma*:*Tma*:*Pipeline*-*Mutation*}
limit=460 budget=430 shards=${SHARDS:-8} device=${DEVICE:-cuda:0}
mkdir -p "$out"
export HEDDLE_CACHE_DIR=$out/cache

# The shards of a test program beside each other: most of their time goes to ptxas.
sharded() {
  local name=$1 failed=0 jobs=(); shift
  for ((i = 0; i < shards; ++i)); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i timeout "$limit" "$@" > "$out/$name.$i.log" 2>&1 & jobs+=($!)
  done
  for job in "${jobs[@]}"; do wait "$job" || failed=1; done
  grep -hE '^\[  (FAILED|SKIPPED) |ERROR SUMMARY' "$out/$name".*.log
  return $failed
}

part_tests() {
  local failed=0
  for program in kernels dsl runtime; do
    limit=150 sharded "test_$program" "$bin/tests/test_$program" "--device=$device" "--gtest_filter=$filter" || failed=1
  done
  return $failed
}

# Products whose names a regular expression finds. After the program was ended by one, it goes on behind it.
gemm() {
  local end=$((SECONDS + limit)) status=1
  for attempt in 1 2 3 4 5; do
    local left=$((end - SECONDS))
    ((left > 60)) || break
    timeout "$left" "$bin/tools/gemm_bench" --device "$device" --json "$out/gemm.json" --resume --only "$1" --budget $((left - 60)) ${GEMM_OPTIONS:-}
    status=$?
    ((status == 0)) && break
  done
  ((status == 0)) && ! grep -q '"left_out"' "$out/gemm.json"
}
part_gemm_new() { gemm 'mma.sync|grouped|masked|scaled|gelu'; }
part_gemm_bf16() { gemm '^bf16'; }
part_gemm_rest() { gemm '.'; }
part_triton() { timeout "$limit" python3 "$here/gemm_groups_triton.py" "$out/gemm.json" --budget "$budget"; }
part_product() { timeout "$limit" "$bin/tools/product_bench" --device "$device" --json "$out/product.json" ${PRODUCT_OPTIONS:-}; }

part_sanitizer() { timeout "$limit" python3 "$here/sanitizers.py" "$bin/tests" "$out" --device "$device" --only "matrix products"; }

# Tunes, and runs what was tuned.
part_tune() {
  timeout "$limit" "$bin/tools/heddle" tune gemm --device "$device" --budget "$budget" --set dtype=bf16 --shape 4096x4096x4096 \
    --shape 8192x8192x8192 --shape 1536x1536x1536 --shape 16x4096x4096 --shape 32x4096x4096 --shape 16x8192x8192 &&
    "$bin/tools/heddle" tune --export "$out/tuned.json"
}
part_tuned() {
  "$bin/tools/heddle" tune --list && timeout "$limit" "$bin/tests/test_kernels" "--device=$device" '--gtest_filter=*GemmOperation*'
}

[ $# -gt 0 ] && { for part in "$@"; do rm -f "$out/$part.done"; done; parts=("$@"); }
for part in "${parts[@]}"; do
  declare -F "part_$part" > /dev/null || { echo "h200.sh: no part '$part'; there are: $("$0" --list | tr '\n' ' ')" >&2; exit 2; }
  [ -e "$out/$part.done" ] && continue
  begin=$SECONDS
  "part_$part" > "$out/$part.log" 2>&1
  status=$?
  ((status == 0)) && touch "$out/$part.done"
  echo "$part: status $status after $((SECONDS - begin)) s" | tee -a "$out/summary.txt"
done
