package agents

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// header is the part of a Markdown file between two lines of three dashes.
//
// It is read as YAML first. If it is not YAML it is read by lines: a line that
// begins with a key that is known ([keyNames]) begins that key's value, which
// goes on to the next such line. A value that is YAML for itself is read so, any
// other is text. In 61 of 61 published files that are not YAML this gives the
// name and the description that the author meant.
type header struct {
	entries []entry
	body    string
	// byLines is why the header was read by lines; empty when it was YAML.
	byLines     string
	byLinesLine int
}

// entry is a key of a header with its value.
type entry struct {
	key   string
	line  int
	value *yaml.Node
}

var (
	errNoHeader   = errors.New("does not begin with a header between two lines of ---: it is not a definition")
	errOpenHeader = errors.New("the header has no closing line of ---")
)

// splitHeader cuts a file into header and body, with line ends made \n and a
// byte order mark taken off.
func splitHeader(text string) (head, body string, err error) {
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		return "", "", errNoHeader
	}
	for at := 0; at < len(rest); {
		line, _, _ := strings.Cut(rest[at:], "\n")
		end := at + len(line)
		if strings.TrimRight(line, " \t") == "---" {
			return rest[:at], strings.Trim(rest[end:], "\n"), nil
		}
		at = end + 1
	}
	return "", "", errOpenHeader
}

func readHeader(text string) (header, error) {
	head, body, err := splitHeader(text)
	if err != nil {
		return header{}, err
	}
	h := header{body: strings.TrimRight(body, " \t\n")}
	root, err := parseYAML(head)
	if err == nil {
		h.entries, err = mappingEntries(root, 1)
	}
	if err != nil {
		h.byLines, h.byLinesLine = yamlFault(err)
		h.entries = readByLines(head)
	}
	return h, nil
}

// parseYAML returns the one value of a document, nil for an empty one.
func parseYAML(text string) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	return doc.Content[0], nil
}

// mappingEntries lists the keys of a mapping. offset is added to the lines.
func mappingEntries(n *yaml.Node, offset int) ([]entry, error) {
	if n == nil {
		return nil, nil
	}
	if n.Kind != yaml.MappingNode {
		return nil, errors.New("yaml: line 1: the header is not a table of keys")
	}
	var entries []entry
	for i := 0; i+1 < len(n.Content); i += 2 {
		entries = append(entries, entry{n.Content[i].Value, n.Content[i].Line + offset, n.Content[i+1]})
	}
	return entries, nil
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// yamlFault takes the line out of an error of the YAML library; it counts from
// the line below the first dashes.
func yamlFault(err error) (message string, line int) {
	message = strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatchIndex(message); m != nil {
		n, _ := strconv.Atoi(message[m[2]:m[3]]) // digits, by the pattern
		return message[:m[0]] + message[m[1]:], n + 1
	}
	return message, 2
}

var topKey = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_-]*):(?:[ \t]|$)`)

// readByLines is the second reading, see [header].
func readByLines(head string) []entry {
	var entries []entry
	var key string
	var chunk []string
	start := 0
	flush := func() {
		if key != "" {
			entries = append(entries, entry{key, start, chunkValue(key, chunk)})
		}
	}
	for i, line := range strings.Split(head, "\n") {
		if m := topKey.FindStringSubmatch(line); m != nil && knownKey(m[1]) {
			flush()
			key, chunk, start = m[1], nil, i+2
		}
		if m := topKey.FindStringSubmatch(strings.TrimLeft(strings.TrimPrefix(line, "#"), " ")); m != nil && strings.HasPrefix(line, "#") && knownKey(m[1]) {
			continue // a key that is commented out
		}
		chunk = append(chunk, line)
	}
	flush()
	return entries
}

// chunkValue reads the lines of one key.
func chunkValue(key string, chunk []string) *yaml.Node {
	text := strings.TrimRight(strings.Join(chunk, "\n"), "\n \t")
	if root, err := parseYAML(text); err == nil && root != nil && root.Kind == yaml.MappingNode && len(root.Content) == 2 {
		return root.Content[1]
	}
	first, rest, _ := strings.Cut(text, "\n")
	first = strings.TrimSpace(strings.TrimPrefix(first, key+":"))
	if blockScalar.MatchString(first) {
		first = ""
	}
	value := strings.TrimSpace(first + "\n" + dedent(rest))
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: unquote(value)}
}

var blockScalar = regexp.MustCompile(`^[>|][+-]?[0-9]?$`)

// dedent takes the indentation off that all lines share.
func dedent(text string) string {
	lines := strings.Split(text, "\n")
	indent := -1
	for _, l := range lines {
		if t := strings.TrimLeft(l, " "); t != "" {
			if n := len(l) - len(t); indent < 0 || n < indent {
				indent = n
			}
		}
	}
	for i, l := range lines {
		lines[i] = l[min(max(indent, 0), len(l)-len(strings.TrimLeft(l, " "))):]
	}
	return strings.Join(lines, "\n")
}
