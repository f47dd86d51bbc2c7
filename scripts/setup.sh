#!/bin/sh
# Checks what the build needs and names what is missing. As root on Debian or
# Ubuntu it installs that with apt-get; it never calls sudo. Everything there:
# no output, no change.
set -u
cd "$(dirname "$0")/.." || exit 1
go=${GO:-go}

missing=  # what is missing, for people
packages= # the same as Debian packages

need() { # need NAME PACKAGE
	missing="$missing $1"
	packages="$packages $2"
}

# The headers and libraries: a static program with libseccomp must link.
links() {
	printf '%s\n' "$1" >"$scratch/t.c" &&
		gcc -static -o "$scratch/t" "$scratch/t.c" $2 >/dev/null 2>&1
}

look() {
	missing= packages=
	command -v git >/dev/null || need git git
	if command -v gcc >/dev/null; then
		links 'int main(void) { return 0; }' '' || need libc.a libc6-dev
	else
		need gcc 'gcc libc6-dev'
	fi
	if command -v pkg-config >/dev/null; then
		if ! pkg-config --exists libseccomp; then
			need libseccomp-dev libseccomp-dev
		elif command -v gcc >/dev/null; then
			links '#include <seccomp.h>
int main(void) { return seccomp_api_get() == 0; }' "$(pkg-config --static --cflags --libs libseccomp)" || need libseccomp.a libseccomp-dev
		fi
	else
		need pkg-config 'pkg-config libseccomp-dev'
	fi
	# In this directory, go refuses to be older than go.mod asks for, or fetches
	# the release that it does ask for.
	"$go" env GOVERSION >/dev/null 2>&1 || need 'go (1.26 or later)' golang-1.26-go
}

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
look
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null && [ -z "${HAYWARD_NO_INSTALL:-}" ]; then
	echo "setup: missing:$missing; installing with apt-get:$packages" >&2
	apt-get update -qq >&2
	available=
	for p in $packages; do
		if apt-cache show "$p" >/dev/null 2>&1; then available="$available $p"; fi
	done
	[ -z "$available" ] ||
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $available >&2
	[ -x "$go" ] || command -v "$go" >/dev/null || [ ! -x /usr/lib/go-1.26/bin/go ] || go=/usr/lib/go-1.26/bin/go
	look
	[ -n "$missing" ] || exit 0
fi

echo "setup: missing:$missing" >&2
case $missing in
*'go (1.26'*)
	echo "setup: Go is at https://go.dev/dl/, unpack it to /usr/local/go" >&2
	;;
esac
packages=$(echo $packages | sed 's/ *golang-1.26-go//')
if [ -n "$packages" ]; then
	echo "setup: on Debian or Ubuntu, as root: apt-get install $packages" >&2
	echo "setup: elsewhere: git, gcc, pkg-config and the static libraries of libc and libseccomp" >&2
fi
exit 1
