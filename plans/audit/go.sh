# Read by the checks that use the go command.
PATH="$PATH:/usr/local/go/bin:/usr/lib/go-1.26/bin"
GOFLAGS="${GOFLAGS:+$GOFLAGS }-buildvcs=false"
export PATH GOFLAGS
module=$(go list -m)
