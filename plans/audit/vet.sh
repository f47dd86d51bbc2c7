#!/bin/sh
# usage: vet.sh DIRECTORY
set -eu
. plans/audit/go.sh

if findings=$(go vet "./$1/..." 2>&1); then
	echo "ok: go vet finds nothing in $(go list "./$1/..." | wc -l) packages"
else
	echo "found: go vet"
	echo "$findings"
fi
