package agents

// Narrow returns the definition as it counts when its project is not trusted:
// without hooks, without MCP servers of its own, without a sandbox or a
// permission mode that is wider than the default, without variables and without
// a command of its own. Each thing taken out is a fault.
func (d *Definition) Narrow() (Definition, []Fault) {
	n := *d
	f := &faults{file: d.Source.Path}
	drop := func(key, message string) {
		f.add(SeverityWarning, d.Lines[key], key, "%s: this project is not trusted (hayward trust)", message)
	}
	if d.Hooks != nil {
		n.Hooks = nil
		drop("hooks", "not used")
	}
	n.MCPServers = nil
	for _, s := range d.MCPServers {
		if s.Config != nil {
			drop("mcp_servers", s.Name+" is not started")
			continue
		}
		n.MCPServers = append(n.MCPServers, s)
	}
	if d.PermissionMode.widens() {
		n.PermissionMode = "default"
		drop("permission_mode", string(d.PermissionMode)+" reads as default")
	}
	switch fold(d.Sandbox) {
	case "", "workspace", "readonly", "strict":
	default:
		n.Sandbox = ""
		drop("sandbox", d.Sandbox+" is not used")
	}
	if d.Env != nil {
		n.Env = nil
		drop("env", "not used")
	}
	if d.Command != nil {
		n.Command, n.Runner = nil, "command"
		drop("command", "not run")
	}
	return n, f.list
}
