package adapter

import (
	"bytes"
	"fmt"
	"path"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hayward-dev/hayward/events"
)

// newSetup begins the command of a request.
func newSetup(r Request) Setup {
	argv := r.Command
	if len(argv) == 0 {
		argv = []string{r.Agent}
	}
	return Setup{
		Argv: append([]string(nil), argv...), Stdin: r.Prompt,
		Adapter: events.AdapterSpec{Agent: r.Agent, RequireNoDenials: r.RequireNoDenials, SessionUsage: r.SessionUsage},
	}
}

// file adds a file of the home and returns where the agent finds it.
func (s *Setup) file(r Request, name string, data []byte) string {
	s.Files = append(s.Files, File{Path: name, Data: data})
	return path.Join(r.Home, name)
}

func (s *Setup) warn(format string, args ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...))
}

// mcpJSON is the file that claude reads its servers from.
func mcpJSON(servers []MCPServer) ([]byte, *events.Error) {
	var b bytes.Buffer
	enc := jsontext.NewEncoder(&b, jsontext.WithIndent("  "))
	write := func(tokens ...jsontext.Token) error {
		for _, t := range tokens {
			if err := enc.WriteToken(t); err != nil {
				return err
			}
		}
		return nil
	}
	err := write(jsontext.BeginObject, jsontext.String("mcpServers"), jsontext.BeginObject)
	for _, m := range servers {
		if err == nil {
			err = write(jsontext.String(m.Name))
		}
		if err == nil {
			err = enc.WriteValue(m.Config)
		}
		if err != nil {
			return nil, mcpError(m, err)
		}
	}
	if err == nil {
		err = write(jsontext.EndObject, jsontext.EndObject)
	}
	if err != nil {
		return nil, events.Errorf(events.CodeInternal, events.LayerCoordinator, "write the MCP servers: %w", err)
	}
	return b.Bytes(), nil
}

func mcpError(m MCPServer, err error) *events.Error {
	return events.Errorf(events.CodeInvalidRequest, events.LayerGate, "MCP server %s: %w", m.Name, err)
}
