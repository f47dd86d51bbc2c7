#!/bin/sh
# Lines of Go and C of each directory, tests apart.
set -eu

find . \( -name '*.go' -o -name '*.c' -o -name '*.h' \) ! -path '*/testdata/*' ! -path './.*' -exec wc -l {} + |
	awk '$2 != "total" {
		directory = $2
		sub(/^\.\//, "", directory); sub(/\/?[^\/]*$/, "", directory)
		if (directory == "") directory = "."
		if ($2 ~ /_test\.go$/) { tests[directory] += $1; test += $1 } else { lines[directory] += $1; source += $1 }
		seen[directory]
	}
	END {
		print "ok: " source + 0 " lines and " test + 0 " lines of tests"
		for (d in seen) printf "%7d %7d  %s\n", lines[d], tests[d], d | "sort -k3"
	}'
