#!/usr/bin/env bash
# Checks the relative links and pictures of every *.md below ROOT: the file is there, and so is the heading
# that a #fragment names. ROOT is the source tree or the folder of installed documents.
#
#   tests/house/links.sh ROOT
set -euo pipefail
cd "$1"

failures=0
links=0
fail() {
  printf '%s\n' "$*"
  failures=$((failures + 1))
}

# The fragments that GitHub makes of a document's headings; lines within ``` are none.
fragments() {
  awk '/^ *```/ { code = !code } !code && /^#+ / { sub(/^#+ /, ""); print tolower($0) }' "$1" |
    sed -E 's/[^[:alnum:]_ -]//g; s/ /-/g'
}

# The line number and target of each link, out of code.
targets() {
  awk '/^ *```/ { code = !code }
    !code {
      gsub(/`[^`]*`/, "")
      while (match($0, /\]\([^)]*\)/)) {
        print NR, substr($0, RSTART + 2, RLENGTH - 3)
        $0 = substr($0, RSTART + RLENGTH)
      }
    }' "$1"
}

while read -r document; do
  while read -r line target; do
    [[ $target == *://* || $target == @ref* ]] && continue  # Doxygen checks its own
    links=$((links + 1))
    path=${target%%#*}
    file=$document
    [[ -z $path ]] || file=$(dirname "$document")/$path
    if [[ ! -e $file ]]; then
      fail "$document:$line: links to $target, but there is no $file"
    elif [[ $target == *#* ]] && ! fragments "$file" | grep -qxF -- "${target#*#}"; then
      fail "$document:$line: links to $target, but $file has no such heading"
    fi
  done < <(targets "$document")
done < <(find . -name '*.md' -not -path './build*' -not -path './.*/*' | sort)

((links)) || fail "found no link below $PWD"
printf '%d links checked, %d faults\n' "$links" "$failures"
exit $((failures != 0))
