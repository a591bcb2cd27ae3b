#!/usr/bin/env bash
# Checks which folder includes which, what stands at the top level, that ops' operands have names, and how long
# files are.
#
#   layering.sh REPOSITORY
set -uo pipefail
cd "$1" || exit 2
failures=0
files=0

fail() {
  printf '%s\n' "$*"
  failures=$((failures + 1))
}

# allowed FILE: the folders that FILE may include from.
allowed() {
  case $1 in
    ir/*) echo ir ;;
    codegen/*) echo codegen ir ;;
    # Proxies hold ids, so that a kernel's author does not pay for the IR's headers; who extends the compiler does.
    dsl/*_internal.h | dsl/*.cc | dsl/extend/*) echo dsl ir ;;
    dsl/*) echo dsl ;;
    # The typed launch and the typed host function join both sides, and the umbrella shows both.
    runtime/launch.h | runtime/operation/host_function.h | runtime/dtype.h | runtime/heddle.h) echo runtime codegen ir dsl ;;
    runtime/*) echo runtime codegen ir ;;
    kernels/*) echo kernels dsl runtime heddle.h ;;
    tools/* | tests/*) echo dsl ir codegen runtime kernels tools tests heddle.h heddle_c.h testing.h ;;
  esac
}

while IFS= read -r file; do
  files=$((files + 1))
  permitted=" $(allowed "$file") "
  while IFS=: read -r number line; do
    [[ $line =~ [\<\"]heddle/([^/\">]+)(/[^\">]*)? ]] || continue
    target=${BASH_REMATCH[1]}
    path=$target${BASH_REMATCH[2]}
    # A launch's extents and shape, what a call returns and the names of ops are the same for all folders;
    # they include nothing else of ours.
    [[ $path == ir/dim3.h || $path == ir/launch/launch_shape.h || $path == ir/status.h ||
      $path == ir/ops.def ]] && continue
    [[ $permitted == *" $target "* ]] ||
      fail "$file:$number: $path is out of reach here; this file may include from:$permitted"
    if [[ $file == *.h && $file != tests/* && $file != *_internal.h && $path == *_internal.h ]]; then
      fail "$file:$number: $path is internal; a public header may not lead to it"
    fi
  done < <(grep -nE '^[[:space:]]*#[[:space:]]*include' "$file")

  # The oracle judges the folder and the interpreter, so it shares no code with them: of the compiler it may
  # have the kernel's storage and what rows of ops.def say, and nothing that computes.
  if [[ $file == tests/fuzz/oracle* && $file != *_test.cc ]]; then
    while IFS= read -r line; do
      fail "$file: the oracle may share no code with what it judges: $line"
    done < <(grep -nE '#include "heddle/|(number_of|bits_mask|constant_int|value_bits|float_bits|literal_to)[(]' "$file" |
      grep -vE '"heddle/ir/(kernel|op_info|rounding)[.]h"')
  fi

  # Operands are asked for by their names in ops.def, op.view(), not by their numbers.
  while IFS=: read -r number line; do
    fail "$file:$number: write the operand's name, as in op.view(), not its number:$line"
  done < <(grep -nE '(\)|op|def|loop|node|owner)(\.|->)operands\[[0-9]' "$file")

  # A file of ours is always named from the root, so that it is found the same way when installed.
  case $file in
    tools/* | tests/*) ;;
    *)
      while IFS=: read -r number line; do
        [[ $line =~ \"(heddle|absl|gtest|gmock|nlohmann)/ ]] ||
          fail "$file:$number: write #include \"heddle/<folder>/<file>\" for a file of this project, <...> for others"
      done < <(grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$file")
      ;;
  esac

  # What is longer has a second idea. Data that programs write is in other kinds of files.
  lines=$(wc -l <"$file")
  if [[ $file == *.h || $file == *.cc ]] && ((lines >= 600)); then
    fail "$file: has $lines lines, and files stay below 600; give a part that is an idea of its own a file"
  fi

  if [[ $file == *.h ]] && ! grep -qx '#pragma once' "$file"; then
    fail "$file: has no #pragma once"
  fi
done < <(find dsl ir codegen runtime kernels tools tests -name '*.h' -o -name '*.cc' -o -name '*.def' | sort)

for entry in *; do
  case $entry in
    dsl | ir | codegen | runtime | kernels | tools | tests) ;;
    CMakeLists.txt | CMakePresets.json | README.md | CHANGELOG.md | ARCHITECTURE.md | CONTRIBUTING.md | LICENSE | build*) ;;
    *) fail "$entry: does not belong at the top level" ;;
  esac
done

((files)) || fail "found no source file below $PWD"
printf '%d files checked, %d faults\n' "$files" "$failures"
exit $((failures != 0))
