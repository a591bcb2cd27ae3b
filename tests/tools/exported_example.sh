#!/usr/bin/env bash
# Builds softmax ahead of time and runs the example on it: tools/example/host.c, as its first lines say.
#
#   exported_example.sh HEDDLE LIBCUDA HOST.c FOLDER
set -euo pipefail
heddle=$1 libcuda=$2 host=$3 folder=$4

rm -rf "$folder"
"$heddle" build softmax --shape 4x1000 --arch sm_80,sm_90a --tvm-ffi -o "$folder"
grep -q ' T __tvm_ffi_softmax$' <<< "$(nm -D "$folder/libsoftmax.so")"
cc -std=c99 -Wall -Wextra -Wpedantic -Werror -I"$folder" "$host" "$folder/softmax.c" "$folder/softmax_tvm_ffi.c" -ldl -lpthread -lm -o "$folder/host"
said=$(HEDDLE_CUDA_LIBRARY=$libcuda "$folder/host")
echo "$said"
grep -qF 'row 3 adds up to' <<< "$said"
grep -qF 'there is no code for rows=5, columns=1000: it was built for rows=4, columns=1000' <<< "$said"
