package outputschema

import (
	"fmt"
	"regexp/syntax"
)

// maxPatterns bounds the size of all patterns of a schema together, in instructions
// of their programs. Package regexp alone takes three million for each of them, 128 MB,
// which forty bytes can ask for.
const maxPatterns = 20_000

// patterns adds up the patterns of a schema.
type patterns struct{ size int }

// add refuses a pattern that is none, and the one with which they are too large.
func (p *patterns) add(pattern string) error {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return fmt.Errorf("%.80q is no pattern that can be used: %w", pattern, err)
	}
	if p.size += instructions(re); p.size > maxPatterns {
		return fmt.Errorf("its patterns are too large together: over %d instructions with %.80q; repeat less", maxPatterns, pattern)
	}
	return nil
}

// instructions estimates from above the size of the program of re, which is not made
// yet: a parsed expression holds each repetition once.
func instructions(re *syntax.Regexp) int {
	n := 2 + len(re.Rune)
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= 1 + max(re.Min, re.Max)
	}
	return min(n, maxPatterns+1)
}
