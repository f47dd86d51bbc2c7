package adapter

import (
	"slices"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// RelayTokenVariable is where codex finds the relay's token. The commands that
// codex runs do not get it.
const RelayTokenVariable = "HAYWARD_RELAY_TOKEN"

// The sandbox modes of codex.
const (
	codexReadOnly       = "read-only"
	codexWorkspaceWrite = "workspace-write"
	codexFullAccess     = "danger-full-access"
)

// codex runs codex exec. Its settings are in the configuration file of its home;
// those that a project's file must not change, and the relay's address, are given
// as arguments, which win.
func codex(r Request) (Setup, *events.Error) {
	s := newSetup(r)
	s.Env = map[string]string{"CODEX_HOME": r.Home}
	sandbox, err := codexSandbox(r)
	if err != nil {
		return Setup{}, err
	}
	if r.RequireNoDenials && !r.Confined {
		return Setup{}, events.Errorf(events.CodeUnsupported, events.LayerGate, "codex does not tell of the calls that it denies, so require_no_denials cannot hold").
			WithRemedy("use a sandbox profile, in which codex denies nothing, or the agent claude")
	}
	if r.Hooks != nil {
		return Setup{}, events.Errorf(events.CodeUnsupported, events.LayerGate, "codex does not run the hooks of an agent type").
			WithRemedy("use the agent claude, or a type without hooks")
	}
	s.Argv = append(s.Argv, "exec")
	if r.Resume != "" {
		s.Argv = append(s.Argv, "resume")
	}
	s.Argv = append(s.Argv, "--json", "--skip-git-repo-check")
	s.override("sandbox_mode", tomlString(sandbox))
	s.override("approval_policy", tomlString("never"))
	if model := r.Model; model != "" && model != "inherit" {
		s.Argv = append(s.Argv, "-m", model)
	}
	if r.Effort != "" {
		s.codexEffort(r.Effort)
	}
	if r.Relay != (Relay{}) {
		s.override("model_provider", tomlString("hayward"))
		s.override("model_providers.hayward.base_url", tomlString(r.Relay.URL+"/v1"))
		s.Env[RelayTokenVariable] = r.Relay.Token
		s.Unset = []string{"CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"}
	}
	s.codexTools(r)
	if r.MaxTurns > 0 {
		s.warn("codex has no limit of turns, so max_turns %d has no effect", r.MaxTurns)
	}
	config, err := codexConfig(r)
	if err != nil {
		return Setup{}, err
	}
	s.Files = append(s.Files, File{Path: fileCodexConfig, Data: config})
	if r.OutputSchema != nil {
		s.Argv = append(s.Argv, "--output-schema", s.file(r, fileOutputSchema, []byte(r.OutputSchema)))
	}
	if r.SystemPrompt != "" && r.ReplaceSystemPrompt {
		s.override("model_instructions_file", tomlString(s.file(r, fileSystemPrompt, []byte(r.SystemPrompt))))
	}
	if r.Resume != "" {
		s.Argv = append(s.Argv, r.Resume)
	}
	s.Argv = append(s.Argv, "-")
	return s, nil
}

func (s *Setup) override(key, value string) { s.Argv = append(s.Argv, "-c", key+"="+value) }

// codexSandbox is the sandbox mode that codex runs in. Its bubblewrap cannot nest
// in Landlock, so in a sandbox of Hayward's there is only that one. codex reads
// and writes by commands, so what it may not do must be what that sandbox does not
// let it do.
func codexSandbox(r Request) (string, *events.Error) {
	readOnly := r.CapabilityMode == capabilityReadOnly || r.CapabilityMode == capabilityExecute || r.PermissionMode == modePlan
	switch {
	case r.CapabilityMode == capabilityReadWrite:
		return "", events.Errorf(events.CodeUnsupported, events.LayerGate, "codex works by running commands, which capability mode read-write does not allow").
			WithRemedy("use capability mode all in a sandbox, or the agent claude")
	case r.Confined && readOnly && !r.ReadOnlyFiles:
		return "", events.Errorf(events.CodeUnsupported, events.LayerGate, "codex changes files by commands, which only the sandbox can keep from it").
			WithRemedy("use the sandbox profile read-only, or the agent claude")
	case r.Confined:
		return codexFullAccess, nil
	case readOnly:
		return codexReadOnly, nil
	case r.PermissionMode == modeBypass:
		return codexFullAccess, nil
	}
	return codexWorkspaceWrite, nil
}

func (s *Setup) codexEffort(effort string) {
	switch effort {
	case "none", "minimal", "low", "medium", "high", "xhigh":
		s.override("model_reasoning_effort", tomlString(effort))
	case "max":
		s.override("model_reasoning_effort", tomlString("xhigh"))
	default:
		s.warn("codex has no effort %s and uses its own", effort)
	}
}

// codexTools switches off what of codex's tools has a switch.
func (s *Setup) codexTools(r Request) {
	has := func(names ...string) bool {
		denied := slices.ContainsFunc(names, func(n string) bool { return slices.Contains(r.DisallowedTools, n) })
		listed := slices.ContainsFunc(names, func(n string) bool {
			return slices.ContainsFunc(r.Tools, func(rule string) bool { return rule == n || strings.HasPrefix(rule, n+"(") })
		})
		return !denied && (r.Tools == nil || listed)
	}
	if !has("Bash", "shell") {
		s.override("features.shell_tool", "false")
	}
	if !has("WebSearch", "web_search") {
		s.override("web_search", tomlString("disabled"))
	}
	if len(r.Tools) > 0 || len(r.DisallowedTools) > 0 {
		s.warn("codex has no list of tools: only its shell and its web search can be switched off")
	}
}

// codexConfig is the configuration of a private home.
func codexConfig(r Request) ([]byte, *events.Error) {
	var b strings.Builder
	b.WriteString("check_for_update_on_startup = false\n")
	b.WriteString("cli_auth_credentials_store = \"file\"\n")
	if r.SystemPrompt != "" && !r.ReplaceSystemPrompt {
		b.WriteString("developer_instructions = " + tomlString(r.SystemPrompt) + "\n")
	}
	b.WriteString("\n[analytics]\nenabled = false\n")
	b.WriteString("\n[history]\npersistence = \"none\"\n")
	b.WriteString("\n[shell_environment_policy]\nexclude = [" + tomlString(RelayTokenVariable) + "]\n")
	if r.Relay != (Relay{}) {
		b.WriteString("\n[model_providers.hayward]\nname = \"Hayward\"\nwire_api = \"responses\"\n")
		b.WriteString("env_key = " + tomlString(RelayTokenVariable) + "\nsupports_websockets = false\n")
		// The waits double from 200 ms on: long enough for the relay to come back.
		b.WriteString("request_max_retries = 10\nstream_max_retries = 10\n")
	}
	for _, m := range r.MCPServers {
		table, err := codexMCP(m)
		if err != nil {
			return nil, err
		}
		b.WriteString("\n" + table)
	}
	return []byte(b.String()), nil
}
