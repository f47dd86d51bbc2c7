#!/bin/sh
# As root: runs a command as an ordinary user with a home of its own, in a fresh
# clone of this commit, without the network. It leaves nothing behind.
#
#   scripts/as-ordinary-user.sh COMMAND [ARGUMENT]...
set -eu
cd "$(dirname "$0")/.."
uid=64322 # nobody's

if [ "$(id -u)" -ne 0 ]; then
	echo "as-ordinary-user: only root can become another user" >&2
	exit 1
fi
go=$(command -v go || echo /usr/local/go/bin/go)
base=/home # not in a temporary directory, which sandboxed children may write
[ -d "$base" ] || base=/opt
home=$(mktemp -d "$base/hayward-user.XXXXXX")
leave() {
	if [ -x "$home/src/bin/hayward" ]; then
		user "$home/src/bin/hayward" shutdown --kill >/dev/null 2>&1 || true
	fi
	chmod -R u+w "$home" && rm -rf "$home"
}
user() {
	setpriv --reuid "$uid" --regid "$uid" --clear-groups env -i -C "$home/src" \
		HOME="$home" PATH="$PATH:$(dirname "$go")" LANG=C.UTF-8 \
		GOMODCACHE="$home/mod" GOCACHE="$home/cache" GOPROXY=off GOTOOLCHAIN=local "$@"
}

# The module cache is read only by permission, so it can be shared by copy; the
# build cache is copied because compiling it all again takes minutes.
trap leave EXIT
git -c safe.directory='*' clone -q --no-hardlinks . "$home/src"
"$go" mod download
cp -a --reflink=auto "$("$go" env GOMODCACHE)" "$home/mod"
cp -a --reflink=auto "$("$go" env GOCACHE)" "$home/cache"
# So are the caches that sandboxed children may write.
sandboxed="${HAYWARD_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/hayward}"
if [ -d "$sandboxed" ]; then
	mkdir "$home/.cache"
	cp -a --reflink=auto "$sandboxed" "$home/.cache/hayward"
fi
chown -R "$uid:$uid" "$home"

user "$@"
