#!/bin/sh
# Prints the verdict of every check, which is the first line of its output, and
# then the rest of each.
set -eu

names=$(env | sed -n 's/^HAYWARD_INPUT_\([A-Za-z0-9_]*\)=.*/\1/p' | sort)
path() { eval "printf '%s' \"\$HAYWARD_INPUT_$1\""; }

found=0
for n in $names; do
	case $(head -n 1 "$(path "$n")") in found:*) found=$((found + 1)) ;; esac
done
echo "Audit of $(basename "$PWD"): $(echo "$names" | wc -l) checks, $found with findings"
echo
for n in $names; do
	printf '%-18s %s\n' "$n" "$(head -n 1 "$(path "$n")")"
done
for n in $names; do
	[ "$(wc -l <"$(path "$n")")" -gt 1 ] || continue
	printf '\n== %s\n' "$n"
	tail -n +2 "$(path "$n")"
done
