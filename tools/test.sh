#!/usr/bin/env bash
# Installs what is missing, builds Heddle with warnings as errors, and runs every test.
#
#   tools/test.sh [--preset release|debug|asan|tsan|portable] [--compiler g++|clang] [--no-run] [-- CTEST-ARGUMENTS]
#
#   --no-run     build only
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=release
compiler=
run=yes
while (($#)); do
  case $1 in
    --preset | --compiler)
      (($# > 1)) || { echo "test.sh: $1 needs a value" >&2; exit 2; }
      if [[ $1 == --preset ]]; then preset=$2; else compiler=$2; fi
      shift
      ;;
    --no-run) run=no ;;
    --) shift; break ;;
    -h | --help) sed -n '2,6s/^# \?//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) echo "test.sh: unknown argument '$1'; try --help" >&2; exit 2 ;;
  esac
  shift
done

setup=()
case $compiler in
  '') ;;
  g++) export CXX=g++ ;;
  clang | clang++)
    setup=(--clang)
    case $preset in
      release) preset=clang ;;
      debug | asan | tsan) preset=clang-$preset ;;
      clang*) ;;
      *) echo "test.sh: preset '$preset' has no clang form" >&2; exit 2 ;;
    esac
    ;;
  *) echo "test.sh: unknown compiler '$compiler'; it is g++ or clang" >&2; exit 2 ;;
esac
[[ $preset != clang* ]] || setup=(--clang)

jobs=$(nproc)
tools/setup.sh "${setup[@]}"
cmake --preset "$preset" -DHEDDLE_WERROR=ON
cmake --build --preset "$preset" --parallel "$jobs"
[[ $run == no ]] || exec ctest --preset "$preset" --parallel "$jobs" "$@"
