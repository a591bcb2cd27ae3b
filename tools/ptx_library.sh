#!/usr/bin/env bash
# Makes a shared library of NVIDIA's PTX compiler, which NVIDIA gives out as an archive, so that Heddle
# assembles in process: libnvptxcompiler.so. tools/setup.sh calls it.
#
#   tools/ptx_library.sh ARCHIVE OUT
#
#   ARCHIVE: libnvptxcompiler_static.a of a CUDA toolkit, or of the wheel nvidia-nvptxcompiler
#   OUT: libnvptxcompiler.so. Put it into lib64 or lib of the toolkit, into a folder `cuda/lib` beside the
#   program, or name it by HEDDLE_PTX_LIBRARY.
set -euo pipefail

[[ $# == 2 && $1 != -* ]] || { sed -n '2,9s/^# \?//p' "$0"; exit 2; }
archive=$1 out=$2
[[ -r $archive ]] || { echo "ptx_library.sh: there is no $archive" >&2; exit 1; }

# What Heddle calls (codegen/toolchain/ptx_library.cc), and what that needs.
functions=(GetVersion Create Destroy Compile GetCompiledProgramSize GetCompiledProgram
  GetErrorLogSize GetErrorLog GetInfoLogSize GetInfoLog)
part=$out.$$.part
trap 'rm -f "$part" "$part".*' EXIT
# A program may end while a thread is in the library: what it would free then it leaves to the system.
echo 'int __cxa_atexit(void (*f)(void*), void* a, void* d) { (void)f; (void)a; (void)d; return 0; }' >"$part.c"
"${CC:-cc}" -c -fPIC -o "$part.o" "$part.c"
echo '{ global: nvPTXCompiler*; local: *; };' >"$part.map"
# Its own functions alone, whatever others of the same name the program has.
"${CC:-cc}" -shared -o "$part" "${functions[@]/#/-Wl,-u,nvPTXCompiler}" "$part.o" "$archive" \
  -Wl,--gc-sections -Wl,-Bsymbolic "-Wl,--version-script=$part.map" -Wl,--strip-debug \
  "-Wl,-soname,libnvptxcompiler.so" -lpthread -ldl -lm
mv "$part" "$out"
