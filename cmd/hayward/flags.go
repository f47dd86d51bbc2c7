package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// named are the flags that name something. Empty they would mean the default, or all
// of them, which is what a script with an unset variable does not mean.
var named = []string{
	"session", "parent-prompt", "sandbox", "profile", "isolation", "workspace", "cwd", "type", "model", "persona",
	"capability-mode", "output-schema", "name", "id",
}

// checkNamed refuses an empty value of them.
func checkNamed(cmd *cobra.Command) error {
	for _, name := range named {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.Type() == "string" && f.Value.String() == "" {
			return usage("--%s is empty; leave it out or name one", name)
		}
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
