package policy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// Custom is a profile of a sandbox.toml.
type Custom struct {
	// Name is as it was written, Extends the canonical name of a built-in one.
	Name, Extends string
	// RestrictNetwork is nil where the base decides.
	RestrictNetwork *bool
	// The lists hold paths and patterns as they were written.
	ReadOnly, ReadWrite, Deny             []Item
	AllowCredentials, AllowWrite, Sockets []Item
	// File is where the profile stands, Line its table's line, NetworkLine that
	// of restrict_network.
	File              string
	Line, NetworkLine int
	// Project is true for one that a project brought along.
	Project bool
}

// Item is one entry of a list and its line.
type Item struct {
	Text string
	Line int
}

// origin names the place of a line.
func (c *Custom) origin(line int) string {
	return fmt.Sprintf("profile %s (%s:%d)", c.Name, c.File, line)
}

// extend adds what c says to the capability set of its base.
func (c *Custom) extend(to *Capabilities, at Place) {
	add := func(list []Entry, items []Item, allow bool) []Entry {
		for _, i := range items {
			list = append(list, c.entry(i, at, allow))
		}
		return list
	}
	to.ReadOnly = add(to.ReadOnly, c.ReadOnly, true)
	to.ReadWrite = add(to.ReadWrite, c.ReadWrite, true)
	to.Deny = add(to.Deny, c.Deny, false)
	for _, i := range c.AllowCredentials {
		to.AllowCredentials = append(to.AllowCredentials, Entry{Path: i.Text, Origin: c.origin(i.Line)})
	}
	to.AllowWrite = add(to.AllowWrite, c.AllowWrite, true)
	to.Sockets = add(to.Sockets, c.Sockets, true)
	if c.RestrictNetwork != nil {
		to.RestrictNetwork, to.NetworkOrigin = *c.RestrictNetwork, c.origin(c.NetworkLine)
	}
}

func (c *Custom) entry(i Item, at Place, allow bool) Entry {
	text := i.Text
	if allow {
		text = trimTrailing(text)
	}
	return NewEntry(text, c.origin(i.Line), at)
}

// NewEntry makes an entry absolute: "~/" is the home directory, a relative one is
// below the workspace.
func NewEntry(text, origin string, at Place) Entry {
	e := Entry{Path: text, Pattern: IsPattern(text), Origin: origin}
	below := at.Workspace
	if rest, ok := strings.CutPrefix(text, "~/"); ok && at.Home != "" {
		text, below = rest, at.Home
	}
	relative := !strings.HasPrefix(text, "/")
	switch {
	case e.Pattern && relative:
		e.Path, e.Below = text, below
	case relative:
		e.Path = filepath.Join(below, text)
	case !e.Pattern:
		e.Path = filepath.Clean(text)
	}
	return e
}

// trimTrailing makes the directory of a pattern for what is below it: allowing
// /a/** is allowing /a.
func trimTrailing(text string) string {
	for _, suffix := range []string{"/**/*", "/**/", "/**", "/*"} {
		if rest, ok := strings.CutSuffix(text, suffix); ok && !IsPattern(rest) {
			if rest == "" {
				return "/"
			}
			return rest
		}
	}
	return text
}

// checkItem says what is wrong with an entry of a list.
func checkItem(text string, allow bool) error {
	switch {
	case text == "":
		return fmt.Errorf("is empty")
	case strings.TrimSpace(text) != text:
		return fmt.Errorf("%q begins or ends with a blank", text)
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("%q holds a control character", text)
	case len(text) > 4096:
		return fmt.Errorf("is over 4096 bytes")
	}
	if allow {
		text = trimTrailing(text)
	} else if err := checkCharacters(text); err != nil {
		// As a path it would deny nothing of what was meant.
		return fmt.Errorf("%q %w: write one entry for each name; one that really holds it is covered by naming its directory", text, err)
	}
	if !IsPattern(text) {
		return nil
	}
	if err := CheckPattern(strings.TrimPrefix(text, "~/")); err != nil {
		return fmt.Errorf("%q %w", text, err)
	}
	return nil
}

// CheckDeny says what is wrong with an entry to deny.
func CheckDeny(text string) error { return checkItem(text, false) }

// equal reports whether two definitions say the same, wherever they stand.
func (c *Custom) equal(o *Custom) bool {
	network := func(b *bool) string {
		if b == nil {
			return "base"
		}
		return fmt.Sprint(*b)
	}
	same := func(a, b []Item) bool {
		return slices.EqualFunc(a, b, func(x, y Item) bool { return x.Text == y.Text })
	}
	return c.Extends == o.Extends && network(c.RestrictNetwork) == network(o.RestrictNetwork) &&
		same(c.ReadOnly, o.ReadOnly) && same(c.ReadWrite, o.ReadWrite) && same(c.Deny, o.Deny) &&
		same(c.AllowCredentials, o.AllowCredentials) && same(c.AllowWrite, o.AllowWrite) && same(c.Sockets, o.Sockets)
}
