#!/bin/sh
# Go files that gofmt would change.
set -eu
PATH="$PATH:/usr/local/go/bin:/usr/lib/go-1.26/bin"

files=$(find . -name '*.go' ! -path '*/testdata/*' ! -path './.*' | sort)
findings=$(echo "$files" | xargs gofmt -l)
if [ -z "$findings" ]; then
	echo "ok: $(echo "$files" | wc -l) Go files are formatted"
else
	echo "found: $(echo "$findings" | wc -l) files that gofmt would change"
	echo "$findings"
fi
