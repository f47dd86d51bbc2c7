#!/bin/sh
# usage: tests.sh DIRECTORY
# Lists the tests of a directory by package. It only reads them: go vet, a check
# of its own, type-checks them, and linking them all takes minutes.
set -eu
. plans/audit/go.sh

list=$(go list -f '{{$p := .ImportPath}}{{$d := .Dir}}{{range .TestGoFiles}}{{$p}} {{$d}}/{{.}}
{{end}}{{range .XTestGoFiles}}{{$p}} {{$d}}/{{.}}
{{end}}' "./$1/...")
names=$(echo "$list" | while read -r package file; do
	[ -z "$file" ] || sed -nE "s|^func ((Test\|Fuzz\|Benchmark\|Example)[A-Z0-9_][A-Za-z0-9_]*)\(.*|$package \1|p" "$file"
done)
count() { echo "$names" | grep -c " $1" || true; }
tests=$(count Test)
verdict=ok
[ "$tests" -gt 0 ] || verdict=found
echo "$verdict: $tests tests, $(count Fuzz) fuzz targets, $(count Benchmark) benchmarks, $(count Example) examples"
for package in $(go list "./$1/..."); do
	n=$(echo "$names" | grep -c "^$package Test" || true)
	printf '%5d  %s\n' "$n" "${package#"$module"/}"
done
