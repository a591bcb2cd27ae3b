#!/usr/bin/env bash
# Installs what is missing, builds the demo and the heddle command, and runs the demo: the sum of every row
# of a matrix, from a C++ lambda to a checked result, at every stage. Arguments go to the demo (--help
# lists them).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/setup.sh
cmake --preset release >/dev/null
cmake --build --preset release --parallel "$(nproc)" --target demo heddle_command
exec build/release/tools/demo "$@"
