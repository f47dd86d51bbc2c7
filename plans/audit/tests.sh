#!/bin/sh
# usage: tests.sh DIRECTORY
# Builds the test programs of a directory and lists what is in them.
set -eu
. plans/audit/go.sh

if ! list=$(go test -vet=off -list . "./$1/..." 2>&1); then
	echo "found: the tests do not build"
	echo "$list"
	exit
fi
count() { echo "$list" | grep -c "^$1[A-Z]" || true; }
tests=$(count Test)
verdict=ok
[ "$tests" -gt 0 ] || verdict=found
echo "$verdict: $tests tests, $(count Fuzz) fuzz targets, $(count Benchmark) benchmarks, $(count Example) examples"
echo "$list" | sed -n 's/^?[[:space:]]*\([^[:space:]]*\).*/\1: no test files/p'
