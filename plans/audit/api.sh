#!/bin/sh
# How many names each package exports, methods and fields not counted.
set -eu
. plans/audit/go.sh

all=$(go list -f '{{if ne .Name "main"}}{{.ImportPath}}{{end}}' ./...)
packages=$(echo "$all" | awk 'NF && !/\/internal\//')
total=0
table=
for p in $packages; do
	names=$(go doc -short "$p")
	n=$(echo "$names" | grep -c . || true)
	total=$((total + n))
	table="$table$(printf '%5d  %s' "$n" "${p#"$module"/}")
"
done
echo "ok: $total exported names in $(echo "$packages" | wc -l) packages"
printf '%s' "$table"
