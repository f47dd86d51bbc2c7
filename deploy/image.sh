#!/bin/sh
# The steps of the image, also for a scratch root: image.sh [ROOT]
set -eu
root=${1:-}
uid=1000

for file in passwd group; do
	if grep -q '^hayward:' "$root/etc/$file"; then
		echo "image: $root/etc/$file has hayward already" >&2
		exit 1
	fi
done
echo "hayward:x:$uid:$uid::/var/lib/hayward:/usr/sbin/nologin" >>"$root/etc/passwd"
echo "hayward:x:$uid:" >>"$root/etc/group"

# The daemon refuses a directory that others could change.
for dir in var/lib/hayward run/hayward var/cache/hayward; do
	mkdir -p "$root/$dir"
	chmod 0700 "$root/$dir"
	chown "$uid:$uid" "$root/$dir"
done
mkdir -p "$root/work" "$root/etc/hayward"
chown "$uid:$uid" "$root/work"
chmod 0755 "$root/usr/local/bin/hayward"
