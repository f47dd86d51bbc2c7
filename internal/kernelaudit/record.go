// Package kernelaudit reads what the kernel's audit log says of Landlock: which
// paths it refused to which sandbox. It reads only where audit is already on, and
// switches nothing on.
package kernelaudit

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// Denial is one refusal.
type Denial struct {
	// Path is what was refused, empty where the record names none. Blockers are the
	// rights that were missing, such as "fs.read_file".
	Path     string
	Blockers []string
}

// The record types of linux/audit.h.
const (
	typeAccess = 1423
	typeDomain = 1424
)

// record is one line of the log.
type record struct {
	domain string
	// denial is nil in a record about the domain itself.
	denial *Denial
	// pid is the process that made the domain, 0 where the record does not say.
	pid int
	// ended is true for the last record of a domain.
	ended bool
}

// parse reads the text of a record. It reports false for what is of no use here.
func parse(kind uint16, text string) (record, bool) {
	_, text, ok := strings.Cut(text, "): ")
	if !ok || kind != typeAccess && kind != typeDomain {
		return record{}, false
	}
	r := record{}
	d := Denial{}
	for name, value := range fields(text) {
		switch name {
		case "domain":
			r.domain = value
		case "blockers":
			d.Blockers = strings.Split(value, ",")
		case "path":
			d.Path = value
		case "pid":
			r.pid, _ = strconv.Atoi(value) // 0 is of no use
		case "status":
			r.ended = value == "deallocated"
		}
	}
	if kind == typeAccess {
		r.denial = &d
		r.pid, r.ended = 0, false // of the target, not of the domain
	}
	return r, r.domain != "" && (r.denial != nil || r.pid > 0 || r.ended)
}

// fields yields NAME=VALUE. A value stands in quotation marks, or in hexadecimal
// digits where it holds what the log could not show.
func fields(text string) func(yield func(name, value string) bool) {
	return func(yield func(name, value string) bool) {
		for text != "" {
			name, rest, ok := strings.Cut(strings.TrimLeft(text, " "), "=")
			if !ok {
				return
			}
			var value string
			if quoted, ok := strings.CutPrefix(rest, `"`); ok {
				value, text, _ = strings.Cut(quoted, `"`)
			} else {
				value, text, _ = strings.Cut(rest, " ")
				if raw, err := hex.DecodeString(value); err == nil && name == "path" {
					value = string(raw)
				}
			}
			if !yield(name, value) {
				return
			}
		}
	}
}
