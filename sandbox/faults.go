package sandbox

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/sandbox/policy"
)

// Fault is what is wrong at one place of a sandbox.toml.
type Fault = policy.Fault

// readingProfiles begins the error of [LoadProfiles].
const readingProfiles = "read the sandbox profiles: "

// Faults are the faults of a sandbox.toml that [LoadProfiles] refused, by line, if
// err is that, here or as a coordinator tells it.
func Faults(err error) []Fault {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return toldFaults(err)
	}
	var out []Fault
	for _, e := range joined.Unwrap() {
		f, ok := e.(Fault)
		if !ok {
			return toldFaults(err) // joined with another error on its way
		}
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b Fault) int { return a.Line - b.Line })
	return out
}

// toldFaults reads faults back from the message of an error that came over the
// wire.
func toldFaults(err error) []Fault {
	e := new(events.Error)
	if !errors.As(err, &e) {
		return nil
	}
	_, text, ok := strings.Cut(e.Message, readingProfiles)
	if !ok {
		return nil
	}
	var out []Fault
	place := regexp.MustCompile(`^(.+?):([0-9]+): (.+)$`)
	for line := range strings.SplitSeq(text, "\n") {
		part := place.FindStringSubmatch(line)
		if part == nil {
			return nil
		}
		number, err := strconv.Atoi(part[2])
		if err != nil {
			return nil
		}
		out = append(out, Fault{File: part[1], Line: number, Message: part[3]})
	}
	slices.SortStableFunc(out, func(a, b Fault) int { return a.Line - b.Line })
	return out
}
