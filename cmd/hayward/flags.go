package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// checkSession refuses an empty --session: it would mean all of them, which is what
// a script with an unset variable does not mean.
func checkSession(cmd *cobra.Command) error {
	if f := cmd.Flags().Lookup("session"); f != nil && f.Changed && f.Value.String() == "" {
		return usage("--session is empty; leave it out or name one")
	}
	return nil
}

// parserWords are what the parsers of flag values add of their own names.
var parserWords = regexp.MustCompile(`strconv\.Parse(Int|Uint|Bool|Float): parsing ".*": (invalid syntax|value out of range)`)

// plainFlagError says what is wrong with the value of a flag in words of its own.
func plainFlagError(text string) string {
	return parserWords.ReplaceAllStringFunc(text, func(found string) string {
		switch {
		case strings.HasSuffix(found, "value out of range"):
			return "it is too large"
		case strings.HasPrefix(found, "strconv.ParseBool"):
			return "it is neither true nor false"
		case strings.HasPrefix(found, "strconv.ParseFloat"):
			return "it is not a number"
		}
		return "it is not a whole number"
	})
}
