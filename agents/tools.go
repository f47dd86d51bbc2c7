package agents

import (
	"slices"
	"strings"
)

// splitList splits a list in one line at the commas that are in no brackets and
// no quotes. Brackets around the whole list are taken off.
func splitList(text string) []string {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		text = text[1 : len(text)-1]
	}
	items := []string{}
	depth, start := 0, 0
	var quote rune
	add := func(end int) {
		if item := unquote(strings.TrimSpace(text[start:end])); item != "" {
			items = append(items, item)
		}
	}
	for i, r := range text {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"', r == '\'':
			quote = r
		case r == '(', r == '[', r == '{':
			depth++
		case r == ')', r == ']', r == '}':
			depth = max(depth-1, 0)
		case r == ',' && depth == 0:
			add(i)
			start = i + 1
		}
	}
	add(len(text))
	return items
}

// unquote takes one pair of quotes off.
func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// splitRule splits Agent(a, b) into its name and its arguments; args is nil for a
// bare name.
func splitRule(rule string) (name string, args []string) {
	name, rest, found := strings.Cut(rule, "(")
	if !found || !strings.HasSuffix(rest, ")") {
		return strings.TrimSpace(rule), nil
	}
	return strings.TrimSpace(name), splitList(strings.TrimSuffix(rest, ")"))
}

// isAgentTool reports whether a tool is the one that spawns.
func isAgentTool(name string) bool { return name == "Agent" || name == "Task" }

func appendNames(to, names []string) []string {
	for _, n := range names {
		if n = strings.ToLower(n); !slices.Contains(to, n) {
			to = append(to, n)
		}
	}
	return to
}

func removeNames(from, names []string) []string {
	return slices.DeleteFunc(from, func(s string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, s) })
	})
}
