package events

import (
	"regexp"
	"strings"
	"testing"
)

// The patterns mean the expressions that document them.
func TestPatternsEqualTheirExpressions(t *testing.T) {
	for _, c := range []struct {
		name  string
		match func(string) bool
		expr  string
	}{
		{"id", ValidID, `^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`},
		{"scope", scopePattern.MatchString, `^[A-Za-z0-9_.:-]{1,128}$`},
		{"name", namePattern.MatchString, `^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`},
		{"env", envPattern.MatchString, `^[A-Za-z_][A-Za-z0-9_]{0,255}$`},
		{"label", labelPattern.MatchString, `^[A-Za-z0-9][A-Za-z0-9_./-]{0,62}$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			expr := regexp.MustCompile(c.expr)
			id := NewID()
			inputs := []string{"", id, strings.ToUpper(id), id + "\n", id[:35], id + "0", strings.Replace(id, "-", "0", 1)}
			for b := range 256 {
				s := string([]byte{byte(b)})
				inputs = append(inputs, s, "a"+s, s+"a", "a"+s+"a", id[:35]+s, s+id[1:])
			}
			for _, n := range []int{1, 2, 62, 63, 64, 65, 127, 128, 129, 255, 256, 257} {
				inputs = append(inputs, strings.Repeat("a", n))
			}
			for _, s := range inputs {
				if got, want := c.match(s), expr.MatchString(s); got != want {
					t.Errorf("%q: got %v, the expression says %v", s, got, want)
				}
			}
		})
	}
}
