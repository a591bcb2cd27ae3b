#!/usr/bin/env bash
# Checks that every source file is as clang-format would write it. Exit status 77 means skipped.
#
#   format.sh REPOSITORY [--fix]
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

mapfile -t files < <(find dsl ir codegen runtime kernels tools tests -name '*.h' -o -name '*.cc' | sort)
((${#files[@]})) || { echo "found no source file below $PWD"; exit 1; }
if [[ ${2:-} == --fix ]]; then
  exec "$formatter" -i "${files[@]}"
fi

report=$("$formatter" --dry-run --Werror "${files[@]}" 2>&1) && exit 0
echo "these files are not formatted; tests/house/format.sh . --fix repairs them:"
sed -nE 's/^([^: ]+):[0-9]+:[0-9]+: error: .*/  \1/p' <<<"$report" | sort | uniq -c | sort -rn
exit 1
