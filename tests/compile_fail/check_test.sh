#!/usr/bin/env bash
# Tests check.sh itself: a harness that accepts everything would hide every regression.
#
#   check_test.sh COMPILER
set -uo pipefail
check="$(dirname "${BASH_SOURCE[0]}")/check.sh"
compiler=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

# expect accepted|refused NAME <SOURCE
expect() {
  local verdict=refused output
  cat >"$folder/$2.cc"
  output=$("$check" "$folder/$2.cc" "$compiler" -std=c++20 -Wall) && verdict=accepted
  if [[ $verdict != "$1" ]]; then
    printf '%s: expected it to be %s, it was %s\n%s\n' "$2" "$1" "$verdict" "$output"
    failures=$((failures + 1))
  fi
}

expect accepted right_message <<<'static_assert(sizeof(int) == 3, "the cure");  // expect-error: the cure
// expect-error(gcc): error: static assertion failed: the cure
// expect-error(clang): error: .*the cure'
expect accepted in_a_template <<<'template <class T> void f() { static_assert(sizeof(T) == 3, "the cure"); }
void g() { f<int>(); }  // expect-error: the cure'
expect accepted first_message <<<'__attribute__((unavailable("the cure"))) void f();
void g() { f(); }  // expect-first: the cure'
expect refused second_message <<<'__attribute__((unavailable("the cure"))) void f();
void g() { h(); f(); }  // expect-first: the cure'
expect refused first_elsewhere <<<'template <class T> void f() { static_assert(sizeof(T) == 3, "the cure"); }
void g() { f<int>(); }  // expect-first: the cure'
expect refused much_noise <<<"$(for i in {1..12}; do echo "struct S$i {}; void f(S$i);"; done)
void g() { f(1); }  // expect-first: no matching function"
expect refused wrong_message <<<'static_assert(sizeof(int) == 3, "the cure");  // expect-error: another cure'
expect refused wrong_line <<<'static_assert(sizeof(int) == 3, "the cure");
int here;  // expect-error: the cure'
expect refused compiles <<<'int here;  // expect-error: .*'
expect refused expects_nothing <<<'static_assert(sizeof(int) == 3, "the cure");'
expect accepted ok <<<'// expect-ok
int here;'
expect refused ok_with_error <<<'// expect-ok
int here = "text";'
expect refused ok_with_warning <<<'// expect-ok
int missing_return() {}'
exit $((failures != 0))
