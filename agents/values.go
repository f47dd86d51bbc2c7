package agents

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"go.yaml.in/yaml/v3"

	"github.com/hayward-dev/hayward/events"
)

// maxDepth bounds the nesting of what is kept as it is written.
const maxDepth = 32

var errAlias = errors.New("anchors and aliases are not read")

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// scalar is the text of a scalar as it is written.
func scalar(n *yaml.Node) (string, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return strings.TrimSpace(n.Value), nil
	case yaml.AliasNode:
		return "", errAlias
	case yaml.MappingNode:
		return "", errors.New("is a table and has to be a text")
	}
	return "", errors.New("is a list and has to be a text")
}

// stringList reads a list of texts: a YAML list, or one line with commas. It is
// never nil.
func stringList(n *yaml.Node) ([]string, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return listOfText(n.Value), nil
	case yaml.AliasNode:
		return nil, errAlias
	case yaml.MappingNode:
		return nil, errors.New("is a table and has to be a list")
	}
	items := []string{}
	for _, c := range n.Content {
		s, err := scalar(c)
		if err != nil || isNull(c) {
			return nil, fmt.Errorf("line %d of the header has an element that is not a text", c.Line)
		}
		items = append(items, s)
	}
	return mendSplit(items), nil
}

// mendSplit joins what a flow list such as [Task(a, b), Read] splits inside
// brackets.
func mendSplit(items []string) []string {
	out := items[:0]
	open := 0
	for _, s := range items {
		if open > 0 {
			out[len(out)-1] += ", " + s
		} else {
			out = append(out, s)
		}
		open = max(open+strings.Count(s, "(")-strings.Count(s, ")"), 0)
	}
	return out
}

// listOfText reads a list out of text: lines that begin with a dash, or commas.
func listOfText(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	items := []string{}
	for _, l := range lines {
		item, dash := strings.CutPrefix(strings.TrimSpace(l), "- ")
		if !dash {
			return splitList(text)
		}
		items = append(items, unquote(strings.TrimSpace(item)))
	}
	return items
}

// plain turns a value into text, numbers, truth, lists and tables.
func plain(n *yaml.Node, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("is nested deeper than %d", maxDepth)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return nil, errAlias
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			v, err := plain(c, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.MappingNode:
		table := make(map[string]any)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if _, twice := table[key.Value]; key.Kind != yaml.ScalarNode || twice {
				return nil, fmt.Errorf("line %d of the header: the key is given twice or is not a text", key.Line)
			}
			v, err := plain(n.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			table[key.Value] = v
		}
		return table, nil
	}
	return plainScalar(n), nil
}

func plainScalar(n *yaml.Node) any {
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		if b, err := strconv.ParseBool(n.Value); err == nil {
			return b
		}
	case "!!int":
		if i, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
			return i
		}
	case "!!float":
		if f, err := strconv.ParseFloat(n.Value, 64); err == nil && f-f == 0 { // JSON has no infinity
			return f
		}
	}
	return n.Value
}

// textMap reads a table of texts.
func textMap(n *yaml.Node) (map[string]string, error) {
	if n.Kind != yaml.MappingNode {
		return nil, errors.New("is not a table")
	}
	m := make(map[string]string)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		s, err := scalar(n.Content[i+1])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if _, twice := m[key]; twice {
			return nil, fmt.Errorf("%s is given twice", key)
		}
		m[key] = s
	}
	return m, nil
}

func parseBool(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", s)
}

func parseCount(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 1_000_000 {
		return 0, fmt.Errorf("%q is not a whole number from 1 to 1000000", s)
	}
	return n, nil
}

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Millisecond || d.Milliseconds() > events.MaxDurationMS {
		return 0, fmt.Errorf(`%q is not a duration such as "90s" or "2h", up to a year`, s)
	}
	return d, nil
}

func parseSize(s string) (int64, error) {
	n, err := units.RAMInBytes(s)
	if err != nil || n < events.MinMemoryBytes || n > events.MaxMemoryBytes {
		return 0, fmt.Errorf(`%q is not a size such as "512M" or "2G"`, s)
	}
	return n, nil
}

func parseModel(s string) (string, error) {
	if len(s) > events.MaxWord {
		return "", fmt.Errorf("has more than %d bytes", events.MaxWord)
	}
	if strings.EqualFold(s, "inherit") {
		return "", nil
	}
	return s, nil
}

// codexSandboxes are the names that codex has for profiles.
var codexSandboxes = map[string]string{"workspace-write": "workspace", "danger-full-access": "off"}

func parseSandbox(s string) (string, error) {
	if s == "" || len(s) > events.MaxWord {
		return "", fmt.Errorf("has not 1 to %d bytes", events.MaxWord)
	}
	if own, ok := codexSandboxes[s]; ok {
		return own, nil
	}
	return s, nil
}

func parseRunner(s string) (string, error) {
	switch s {
	case "claude", "codex", "command":
		return s, nil
	}
	return "", fmt.Errorf("%q is none of claude, codex, command", s)
}
