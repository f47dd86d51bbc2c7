#!/bin/sh
# The import graph of our own packages, and the rule that it has to obey:
# events imports none of them, coordinator only events and the pure deadlines.
set -eu
. plans/audit/go.sh

all=$(go list -f '{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}' ./...)
graph=$(echo "$all" | awk -v m="$module/" 'index($1, m) == 1 && index($2, m) == 1 {
	print substr($1, length(m) + 1) " -> " substr($2, length(m) + 1)
}' | sort)
broken=$(echo "$graph" | awk '$1 == "events" || ($1 == "coordinator" && $3 != "events" && $3 != "internal/deadlines")')
if [ -n "$broken" ]; then
	echo "found: imports against the layering"
	echo "$broken"
else
	echo "ok: $(echo "$graph" | wc -l) imports between our packages, none against the layering"
fi
echo "$graph"
