package adapter

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hayward-dev/hayward/events"
)

// codexMCP is the table of an MCP server in codex's configuration.
func codexMCP(m MCPServer) (string, *events.Error) {
	dec := jsontext.NewDecoder(strings.NewReader(string(m.Config)))
	if dec.PeekKind() != '{' {
		return "", mcpError(m, errors.New("its configuration is no JSON object"))
	}
	var b strings.Builder
	b.WriteString("[mcp_servers." + tomlString(m.Name) + "]\n")
	if _, err := dec.ReadToken(); err != nil {
		return "", mcpError(m, err)
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return "", mcpError(m, err)
		}
		key := name.String()
		value, null, err := tomlValue(dec)
		switch {
		case err != nil:
			return "", mcpError(m, err)
		case null, key == "type": // codex tells the kinds apart by their members
			continue
		case key == "headers":
			key = "http_headers"
		}
		b.WriteString(tomlKey(key) + " = " + value + "\n")
	}
	return b.String(), nil
}

// tomlValue reads the next JSON value and writes it as TOML, which has no null.
func tomlValue(dec *jsontext.Decoder) (value string, null bool, err error) {
	tok, err := dec.ReadToken()
	if err != nil {
		return "", false, err
	}
	switch tok.Kind() {
	case 'n':
		return "", true, nil
	case 't', 'f', '0':
		return tok.String(), false, nil
	case '"':
		return tomlString(tok.String()), false, nil
	case '[':
		var items []string
		for dec.PeekKind() != ']' {
			item, null, err := tomlValue(dec)
			if err != nil {
				return "", false, err
			}
			if !null {
				items = append(items, item)
			}
		}
		_, err = dec.ReadToken()
		return "[" + strings.Join(items, ", ") + "]", false, err
	case '{':
		var items []string
		for dec.PeekKind() != '}' {
			name, err := dec.ReadToken()
			if err != nil {
				return "", false, err
			}
			key := tomlKey(name.String())
			item, null, err := tomlValue(dec)
			if err != nil {
				return "", false, err
			}
			if !null {
				items = append(items, key+" = "+item)
			}
		}
		_, err = dec.ReadToken()
		return "{" + strings.Join(items, ", ") + "}", false, err
	}
	return "", false, fmt.Errorf("unexpected %v", tok.Kind())
}

// tomlKey writes a key, bare where it may be.
func tomlKey(s string) string {
	bare := s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
	if bare {
		return s
	}
	return tomlString(s)
}

// tomlString writes a basic string in one line. What is not UTF-8 is replaced.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(s, string(utf8.RuneError)) {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
