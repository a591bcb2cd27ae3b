#!/usr/bin/env bash
# Checks that every source file is as clang-format would write it. Exit status 77 means skipped.
#
#   format.sh REPOSITORY
#
# To repair: find dsl ir codegen runtime kernels tools tests -name '*.h' -o -name '*.cc' | xargs clang-format -i
set -uo pipefail
cd "$1" || exit 2

# Releases differ in what they print, so one of them is the measure: Debian 12's.
readonly release=14
formatter=
for candidate in clang-format-$release clang-format; do
  if [[ $("$candidate" --version 2>/dev/null) == *"version $release."* ]]; then
    formatter=$candidate
    break
  fi
done
if [[ -z $formatter ]]; then
  echo "SKIPPED: there is no clang-format $release here, so formatting was not checked (apt-get install clang-format-$release)"
  exit 77
fi

find dsl ir codegen runtime kernels tools tests \( -name '*.h' -o -name '*.cc' \) -print0 |
  xargs -0 --no-run-if-empty "$formatter" --dry-run --Werror --ferror-limit=3
