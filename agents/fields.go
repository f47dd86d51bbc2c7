package agents

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/hayward-dev/hayward/events"
)

// The keys whose values are more than a scalar or a list.

func (d *decoder) name(n *yaml.Node) error {
	s, err := scalar(n)
	if err != nil {
		return err
	}
	d.def.Name, err = validName(s)
	return err
}

// validName returns a type's name in the one spelling that it is kept in.
func validName(s string) (string, error) {
	if !events.ValidName(s) {
		return "", fmt.Errorf("%q is not 1 to 64 of A-Z a-z 0-9 _ . - beginning with a letter or digit", s)
	}
	if strings.EqualFold(s, TypeCommand) {
		return "", fmt.Errorf("%q is the type that runs a command as it is", s)
	}
	return strings.ToLower(s), nil
}

// command is the argv; a text is one word, never a line for a shell.
func (d *decoder) command(n *yaml.Node) (err error) {
	if n.Kind != yaml.SequenceNode {
		return errors.New(`has to be a list of arguments, as in ["sh", "-c", "make"]`)
	}
	for _, c := range n.Content {
		if c.Kind != yaml.ScalarNode || isNull(c) {
			return errors.New("has an argument that is not a text")
		}
		d.def.Command = append(d.def.Command, c.Value)
	}
	if len(d.def.Command) == 0 || d.def.Command[0] == "" {
		return errors.New("is empty")
	}
	return nil
}

func (d *decoder) env(n *yaml.Node) (err error) {
	if d.def.Env, err = textMap(n); err != nil {
		return err
	}
	// The rules are those of a spawn.
	if bad := (events.Spawn{ParentSessionID: "s", Env: d.def.Env}).Validate(); bad != nil {
		return bad
	}
	return nil
}

func (d *decoder) hooks(n *yaml.Node) (err error) {
	if d.def.Hooks, err = plain(n, 0); err != nil {
		return err
	}
	if _, err := d.def.HookSettings(); err != nil {
		e := d.given["hooks"]
		d.add(SeverityWarning, e.line, e.key, "%v; a spawn of this type is refused", err)
	}
	return nil
}

// outputSchema keeps a JSON Schema as it is written, as a table or as JSON in a
// text; a spawn checks it.
func (d *decoder) outputSchema(n *yaml.Node) error {
	v, err := plain(n, 0)
	if err != nil {
		return err
	}
	if text, ok := v.(string); ok {
		d.def.OutputSchema = []byte(text)
	} else if d.def.OutputSchema, err = events.MarshalRecord(v); err != nil {
		return err
	}
	if bad := (events.Spawn{ParentSessionID: "s", OutputSchema: d.def.OutputSchema}).Validate(); bad != nil {
		return bad
	}
	return nil
}

// mcpInheritance reads all, none, {named: [...]} or {except: [...]}.
func (d *decoder) mcpInheritance(n *yaml.Node) error {
	bad := errors.New("is none of all, none, {named: [...]}, {except: [...]}")
	if n.Kind == yaml.ScalarNode {
		switch s := strings.ToLower(strings.TrimSpace(n.Value)); s {
		case "all", "none":
			d.def.MCP = MCPInheritance{Mode: s}
			return nil
		}
		return bad
	}
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		return bad
	}
	mode := n.Content[0].Value
	if mode != "named" && mode != "except" {
		return bad
	}
	names, err := stringList(n.Content[1])
	d.def.MCP = MCPInheritance{Mode: mode, Names: names}
	return err
}

// mcpServers reads a list of names and of tables {name: config}, or one table.
func (d *decoder) mcpServers(n *yaml.Node) error {
	d.def.MCPServers = []MCPServer{}
	add := func(table *yaml.Node) error {
		for i := 0; i+1 < len(table.Content); i += 2 {
			config, err := plain(table.Content[i+1], 0)
			if err != nil {
				return err
			}
			d.def.MCPServers = append(d.def.MCPServers, MCPServer{table.Content[i].Value, config})
		}
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		return add(n)
	case yaml.SequenceNode:
		for _, c := range n.Content {
			switch {
			case c.Kind == yaml.MappingNode:
				if err := add(c); err != nil {
					return err
				}
			case c.Kind == yaml.ScalarNode && !isNull(c):
				d.def.MCPServers = append(d.def.MCPServers, MCPServer{Name: c.Value})
			default:
				return errors.New("has an element that is neither a name nor a table")
			}
		}
		return nil
	}
	names, err := stringList(n)
	for _, name := range names {
		d.def.MCPServers = append(d.def.MCPServers, MCPServer{Name: name})
	}
	return err
}
