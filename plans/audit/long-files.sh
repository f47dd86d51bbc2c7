#!/bin/sh
# Source files over 400 lines, tests apart.
set -eu

long=$(find . \( -name '*.go' -o -name '*.c' \) ! -name '*_test.go' ! -path '*/testdata/*' ! -path './.*' -exec wc -l {} + |
	awk '$2 != "total" && $1 > 400 { printf "%7d  %s\n", $1, $2 }' | sort -rn)
if [ -z "$long" ]; then
	echo "ok: no source file is over 400 lines"
else
	echo "found: $(echo "$long" | wc -l) source files are over 400 lines"
	echo "$long"
fi
