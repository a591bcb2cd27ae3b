#!/usr/bin/env bash
# Checks that one source file is refused by the compiler, with the message that its author expects.
#
#   check.sh SOURCE COMPILER FLAG...
#
# The file says what is expected in comments (patterns are extended regular expressions, quotes in
# compiler messages are plain ones):
#
#   // expect-error: PATTERN          the output has it
#   x = y;  // expect-error: PATTERN  the same, and the output also names this line of this file
#   // expect-error(gcc): PATTERN     the same for g++ alone; expect-error(clang) for clang++
#   x = y;  // expect-first: PATTERN  the first error is reported at this line and has it, with at most
#                                     10 lines behind it: what a user sees of this mistake
#   // expect-ok                      the file compiles without a warning: the twin that proves
#                                     that its neighbour fails for the stated reason alone
set -uo pipefail
source_file=$1
compiler=$2
shift 2
export LC_ALL=C

# Without quoted source lines: they would show the expectation itself, which then always matches.
if "$compiler" --version | grep -q clang; then
  family=clang
  no_quotes='-fno-caret-diagnostics -ferror-limit=0'
else
  family=gcc
  no_quotes=-fno-diagnostics-show-caret
fi
output=$("$compiler" "$@" $no_quotes -fsyntax-only "$source_file" 2>&1)
status=$?
failures=0
expectations=0

fail() {
  printf '%s: %s\n' "${source_file##*/}" "$*"
  failures=$((failures + 1))
}

if grep -Eq '^[[:space:]]*// expect-ok[[:space:]]*$' "$source_file"; then
  expectations=1
  ((status == 0)) || fail "expected to compile"
  [[ -z $output ]] || fail "expected to compile without a warning"
fi

# first_error LINE: the first message of the errors at that line of the file, and the number of lines up to the
# next error elsewhere.
first_error() {
  awk -v place="${source_file##*/}:$1:" '
    / error: / && index($0, place) { inside = 1; if (!first) first = $0 }
    / error: / && !index($0, place) { inside = 0 }
    inside { ++lines }
    END { print lines + 0; print first }' <<<"$output"
}

check_first() {
  local lines first
  { read -r lines; read -r first; } < <(first_error "$1")
  [[ -n $first ]] || { fail "line $1: no error is reported at this line"; return; }
  grep -Eq -e "$2" <<<"$first" || fail "line $1: the first error lacks /$2/: $first"
  ((lines <= 11)) || fail "line $1: $((lines - 1)) lines behind the error"
}

number=0
while IFS= read -r line || [[ -n $line ]]; do
  number=$((number + 1))
  if [[ $line =~ //\ expect-first:\ *(.*)$ ]]; then
    expectations=$((expectations + 1))
    ((status != 0)) || fail "line $number: expected an error, but the file compiles"
    check_first "$number" "${BASH_REMATCH[1]}"
    continue
  fi
  [[ $line =~ //\ expect-error(\((gcc|clang)\))?:\ *(.*)$ ]] || continue
  only=${BASH_REMATCH[2]}
  pattern=${BASH_REMATCH[3]}
  [[ -z $only || $only == "$family" ]] || continue
  expectations=$((expectations + 1))
  ((status != 0)) || fail "line $number: expected an error, but the file compiles"
  grep -Eq -e "$pattern" <<<"$output" || fail "line $number: the output lacks /$pattern/"
  if [[ ! $line =~ ^[[:space:]]*// ]]; then
    grep -Fq -e "${source_file##*/}:$number:" <<<"$output" || fail "line $number: no message names this line"
  fi
done <"$source_file"

((expectations)) || fail "the file expects nothing from $family"
if ((failures)); then
  printf -- '---- output of %s (exit status %d)\n%s\n' "$compiler" "$status" "$output"
  exit 1
fi
