package events

import (
	"strconv"
	"strings"
)

// DedupeID names one end of one run: equal for every delivery of it.
func DedupeID(id string, run int) string { return id + "." + strconv.Itoa(run) }

// ValidDedupeID reports whether s is what [DedupeID] returns for some run.
func ValidDedupeID(s string) bool {
	id, run, ok := strings.Cut(s, ".")
	n, err := strconv.Atoi(run)
	return ok && err == nil && n >= 0 && strconv.Itoa(n) == run && ValidID(id)
}
