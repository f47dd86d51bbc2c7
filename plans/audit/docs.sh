#!/bin/sh
# Packages without a package comment and exported declarations without a comment.
set -eu

files() { find . -name '*.go' ! -name '*_test.go' ! -path '*/testdata/*' ! -path './.*'; }

packages=$(files | sed 's|/[^/]*$||' | sort -u | while read -r d; do
	awk 'FNR == 1 { previous = "" }
		/^package / && (previous ~ /^\/\// || previous ~ /\*\/$/) { found = 1 }
		{ previous = $0 }
		END { exit !found }' "$d"/*.go || echo "$d: no package comment"
done)
names=$(files | sort | while read -r f; do
	awk -v f="$f" '/^(func|type) [A-Z]/ || /^func \(([a-z]+ )?\*?[A-Z][A-Za-z]*(\[[^]]*\])?\) [A-Z]/ {
			if (previous !~ /^\/\// && !grouped) print f ":" FNR ": " $0
		}
		# Declarations of one line each share the comment above the first.
		{ grouped = (previous ~ /^\/\// || grouped) && /^(func|type) .*[})]$/ && !/{$/; previous = $0 }' "$f"
done)
if [ -z "$packages$names" ]; then
	echo "ok: every package and exported declaration has a comment"
else
	echo "found: $(printf '%s\n%s\n' "$packages" "$names" | grep -c .) without a comment"
	printf '%s\n%s\n' "$packages" "$names" | grep .
fi
