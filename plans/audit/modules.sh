#!/bin/sh
# The modules that our programs and tests are built of, and their licenses.
set -eu
. plans/audit/go.sh

license() {
	for f in "$1"/[Ll][Ii][Cc][Ee][Nn][CcSs][Ee]* "$1"/COPYING*; do
		[ -f "$f" ] || continue
		if grep -q 'Apache License' "$f"; then echo Apache-2.0
		elif grep -q 'Mozilla Public License' "$f"; then echo MPL-2.0
		elif grep -q 'Redistribution and use in source' "$f"; then echo BSD
		elif grep -q 'GNU LESSER GENERAL' "$f"; then echo LGPL
		elif grep -q 'GNU GENERAL' "$f"; then echo GPL
		elif grep -qi 'Permission is hereby granted, free of charge' "$f"; then echo MIT
		elif grep -q 'Permission to use, copy, modify' "$f"; then echo ISC
		else echo other; fi
		return
	done
	echo none
}

all=$(go list -deps -test -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./...)
modules=$(echo "$all" | awk NF | sort -u)
table=$(echo "$modules" | while read -r path version dir; do
	printf '%-12s %s %s\n' "$(license "$dir")" "$path" "$version"
done)
unclear=$(echo "$table" | grep -cE '^(none|other)' || true)
verdict=ok
[ "$unclear" -eq 0 ] || verdict=found
echo "$verdict: $(echo "$modules" | wc -l) modules, $unclear without a license that is known"
echo "$table"
