#!/usr/bin/env bash
# Installs the packages that building and testing Heddle needs and that this Debian machine lacks. It
# changes nothing where nothing is missing. tools/demo.sh and tools/test.sh call it.
#
#   tools/setup.sh [--clang]     --clang: clang++ as well, even where g++ is enough
#
# CUDA's ptxas, cuda.h, NVTX, nvdisasm and the archive of the PTX compiler come from an installed toolkit, else
# from NVIDIA's pip wheels, unpacked into build/cuda, else Heddle builds without them. HEDDLE_NO_DOWNLOAD=1
# leaves pip alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly cuda_tree=build/cuda
# A failed download is not tried again for a day: every run would wait for the same time-outs.
readonly unreachable=$cuda_tree/.unreachable

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# at_least PROGRAM VERSION: PROGRAM is on the PATH and reports VERSION or later.
at_least() {
  local found
  have "$1" || return 1
  case $1 in
    *++) found=$("$1" -dumpversion 2>/dev/null) ;;
    *) found=$("$1" --version 2>/dev/null | grep -oEm1 '[0-9]+(\.[0-9]+)+') ;;
  esac
  [[ $(printf '%s\n' "$2" "$found" | sort -V | head -n1) == "$2" ]]
}

as_root() {
  if [[ $(id -u) == 0 ]]; then
    env DEBIAN_FRONTEND=noninteractive "$@"
  elif have sudo; then
    sudo env DEBIAN_FRONTEND=noninteractive "$@"
  else
    die "installing packages needs root or sudo; have somebody install: ${packages[*]}"
  fi
}

install_packages() {
  (($#)) || return 0
  have apt-get || die "this is no Debian machine; install by hand what Debian calls: $*"
  say "installing $*"
  as_root apt-get update -qq
  as_root apt-get install -y -qq --no-install-recommends "$@"
}

# Prints the Debian packages that are missing, given whether clang++ is wanted.
missing_packages() {
  at_least g++ 12 || { [[ $1 == no ]] && at_least clang++ 14; } || echo g++
  [[ $1 == no ]] || at_least clang++ 14 || echo clang
  at_least cmake 3.25 || echo cmake
  have ninja || echo ninja-build
  have ccache || echo ccache
  have doxygen || echo doxygen
  local libraries=(libabsl-dev libgtest-dev libgmock-dev libbenchmark-dev libcli11-dev libdtl-dev libmpfr-dev
    nlohmann-json3-dev libxxhash-dev)
  if have dpkg-query; then
    local installed
    installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${libraries[@]}" 2>/dev/null || true)
    local library
    for library in "${libraries[@]}"; do
      grep -qx "$library installed" <<<"$installed" || echo "$library"
    done
  fi
}

# in_cuda FILE: prints where FILE (such as bin/ptxas) is: in a toolkit or in build/cuda; a program may also be
# on the PATH, and what is in lib may be in lib64.
in_cuda() {
  local root
  for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /usr/local/cuda-* "$cuda_tree"; do
    [[ -n $root && -e $root/$1 ]] && echo "$root/$1" && return 0
  done
  if [[ $1 == lib/* ]]; then in_cuda "lib64/${1#lib/}"; return; fi
  [[ $1 == bin/* ]] && command -v "${1#bin/}"
}

readonly ptx_library=lib/libnvptxcompiler.so
readonly ptx_archive=lib/libnvptxcompiler_static.a
# Makes the library of the archive. Without it, assembling takes a process.
make_ptx_library() {
  local archive
  ! in_cuda "$ptx_library" >/dev/null && archive=$(in_cuda "$ptx_archive") || return 0
  mkdir -p "$cuda_tree/lib"
  tools/ptx_library.sh "$archive" "$cuda_tree/$ptx_library" ||
    say "$archive cannot be linked: going on without assembling in process"
  rm -f "$cuda_tree/$ptx_archive"
}

# fetch_wheel WHEEL==VERSION FILE: unpacks FILE of an NVIDIA wheel into build/cuda.
fetch_wheel() {
  local folder status=0
  folder=$(mktemp -d)
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --timeout 10 --retries 1 --dest "$folder" "$1" 2>"$folder/log" &&
    python3 -m zipfile -e "$folder"/*.whl "$folder" &&
    mkdir -p "$cuda_tree/$(dirname "$2")" &&
    mv "$folder"/nvidia/cu13/"$2" "$cuda_tree/$2.part" || status=1
  if ((status == 0)); then
    [[ $2 == bin/* ]] && chmod +x "$cuda_tree/$2.part"
    mv "$cuda_tree/$2.part" "$cuda_tree/$2"
    say "$2 from $1 is in $cuda_tree"
  fi
  rm -rf "$folder"
  return $status
}

# Downloads what no toolkit here provides. The build does not need it, so a failure prints one line.
fetch_cuda() {
  local wheel file use row missing=() absent=() uses=() try=yes
  local table=(
    "nvidia-cuda-nvcc==13.0.88|bin/ptxas|assembling PTX"
    "nvidia-cuda-runtime==13.0.96|include/cuda.h|running on a GPU"
    "nvidia-nvtx==13.0.85|include/nvtx3|showing ranges in profilers"
    "nvidia-nvptxcompiler==13.0.88|$ptx_archive|assembling in process"
    "nvidia-cuda-nvdisasm==13.2.86|bin/nvdisasm|showing SASS"
  )
  for row in "${table[@]}"; do
    IFS='|' read -r wheel file use <<<"$row"
    in_cuda "$file" >/dev/null || { [[ $file == "$ptx_archive" ]] && in_cuda "$ptx_library" >/dev/null; } ||
      missing+=("$row")
  done
  ((${#missing[@]})) || return 0

  [[ -z ${HEDDLE_NO_DOWNLOAD:-} && -z $(find "$unreachable" -mmin -1440 2>/dev/null) ]] || try=no
  if [[ $try == yes ]] && ! python3 -m pip --version >/dev/null 2>&1; then
    packages=(python3-pip)
    (install_packages "${packages[@]}") || try=no
  fi
  for row in "${missing[@]}"; do
    IFS='|' read -r wheel file use <<<"$row"
    if [[ $try == yes ]] && fetch_wheel "$wheel" "$file"; then continue; fi
    if [[ $try == yes ]]; then
      try=no
      mkdir -p "$cuda_tree"
      touch "$unreachable"
    fi
    absent+=("${file#*/}")
    uses+=("$use")
  done
  ((${#absent[@]})) || return 0
  local names works
  printf -v names '%s, ' "${absent[@]}"
  printf -v works '%s, ' "${uses[@]}"
  say "no ${names%, }: going on without ${works%, } (install a CUDA toolkit; or, where pip works, rm -f $unreachable and run this again)"
}

clang=no
for argument in "$@"; do
  case $argument in
    --clang) clang=yes ;;
    *) die "unknown argument '$argument'; it takes --clang or nothing" ;;
  esac
done

mapfile -t packages < <(missing_packages "$clang")
install_packages "${packages[@]}"
fetch_cuda
make_ptx_library
