# Read by the checks that use the go command.
PATH="$PATH:/usr/local/go/bin:/usr/lib/go-1.26/bin"
# Without paths in it, what one clone compiled serves the next.
GOFLAGS="${GOFLAGS:+$GOFLAGS }-buildvcs=false -trimpath"
export PATH GOFLAGS
module=$(go list -m)
