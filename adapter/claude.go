package adapter

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hayward-dev/hayward/events"
)

// The permission modes, as package agents has them, and the capability modes.
const (
	modeDefault     = "default"
	modePlan        = "plan"
	modeAcceptEdits = "acceptEdits"
	modeBypass      = "bypassPermissions"
	modeDontAsk     = "dontAsk"

	capabilityReadOnly  = "read-only"
	capabilityReadWrite = "read-write"
	capabilityExecute   = "execute"
)

// Files of a home.
const (
	fileSystemPrompt = "hayward/system-prompt.md"
	fileMCP          = "hayward/mcp.json"
	fileSettings     = "settings.json"
	fileCodexConfig  = "config.toml"
	fileOutputSchema = "hayward/output-schema.json"
)

// What of claude's own tools changes files, and what runs commands.
var (
	claudeEdits    = []string{"Edit", "MultiEdit", "NotebookEdit", "Write"}
	claudeCommands = []string{"Bash", "Monitor", "PowerShell"}
)

// claudeDefaults are the user's settings of a private home: its sessions are not
// cleaned up, for a later run may resume one, and its own sandbox stays off.
const claudeDefaults = `{
  "cleanupPeriodDays": 36500,
  "includeCoAuthoredBy": false,
  "sandbox": {"enabled": false},
  "skipDangerousModePermissionPrompt": true
}
`

// claudeSettings are the defaults with the hooks of the request.
func claudeSettings(r Request) ([]byte, *events.Error) {
	if r.Hooks == nil {
		return []byte(claudeDefaults), nil
	}
	rest, _ := strings.CutSuffix(claudeDefaults, "\n}\n")
	settings := jsontext.Value(rest + ",\n  \"hooks\": " + string(r.Hooks) + "\n}\n")
	if err := settings.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "the hooks are not JSON: %w", err)
	}
	return settings, nil
}

// claude runs claude -p.
func claude(r Request) (Setup, *events.Error) {
	s := newSetup(r)
	s.Argv = append(s.Argv, "-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config")
	s.Env = map[string]string{
		"CLAUDE_CONFIG_DIR":                        r.Home,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		"CLAUDE_CODE_DISABLE_TERMINAL_TITLE":       "1",
		"DISABLE_AUTOUPDATER":                      "1",
		"DISABLE_ERROR_REPORTING":                  "1",
		"DISABLE_TELEMETRY":                        "1",
	}
	settings, err := claudeSettings(r)
	if err != nil {
		return Setup{}, err
	}
	s.Files = append(s.Files, File{Path: fileSettings, Data: settings})
	if r.Relay != (Relay{}) {
		s.Env["ANTHROPIC_BASE_URL"], s.Env["ANTHROPIC_AUTH_TOKEN"] = r.Relay.URL, r.Relay.Token
		s.Unset = []string{
			"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_USE_VERTEX",
		}
	}
	if r.Confined {
		// Without it claude does not switch its prompts off for uid 0.
		s.Env["IS_SANDBOX"] = "1"
	}
	if r.Resume != "" {
		s.Argv = append(s.Argv, "--resume", r.Resume)
	}
	if !r.TrustedProject {
		// The project's settings name hooks, servers and variables.
		s.Argv = append(s.Argv, "--setting-sources", "user")
	}
	if r.SystemPrompt != "" {
		flag := "--append-system-prompt-file"
		if r.ReplaceSystemPrompt {
			flag = "--system-prompt-file"
		}
		s.Argv = append(s.Argv, flag, s.file(r, fileSystemPrompt, []byte(r.SystemPrompt)))
	}
	if model := r.Model; model != "" && model != "inherit" {
		s.Argv = append(s.Argv, "--model", model)
	}
	s.claudeEffort(r.Effort)
	if r.OutputSchema != nil {
		s.Argv = append(s.Argv, "--json-schema", string(r.OutputSchema))
	}
	if r.MaxTurns > 0 {
		s.Argv = append(s.Argv, "--max-turns", strconv.Itoa(r.MaxTurns))
	}
	if err = s.claudeMCP(r); err != nil {
		return Setup{}, err
	}
	mode, err := s.claudeMode(r)
	if err != nil {
		return Setup{}, err
	}
	s.Argv = append(s.Argv, "--permission-mode", mode)
	s.claudeTools(r)
	return s, nil
}

func (s *Setup) claudeEffort(effort string) {
	switch {
	case effort == "":
	case slices.Contains([]string{"low", "medium", "high", "xhigh", "max"}, effort):
		s.Argv = append(s.Argv, "--effort", effort)
	case isNumber(effort):
		s.Env["MAX_THINKING_TOKENS"] = effort
	default:
		s.warn("claude has no effort %s and uses its own", effort)
	}
}

func (s *Setup) claudeMCP(r Request) *events.Error {
	if len(r.MCPServers) == 0 {
		return nil
	}
	body, err := mcpJSON(r.MCPServers)
	if err != nil {
		return err
	}
	s.Argv = append(s.Argv, "--mcp-config", s.file(r, fileMCP, body))
	return nil
}

// claudeMode is the permission mode that claude runs in. In an active sandbox the
// default asks nothing, for the sandbox is what bounds it. Where a rule of the
// tools bounds more than the name of a tool, what is not allowed is denied.
func (s *Setup) claudeMode(r Request) (string, *events.Error) {
	mode := r.PermissionMode
	if mode == "" {
		mode = modeDefault
	}
	if mode == modeDefault && r.Confined {
		mode = modeBypass
	}
	if mode == modeBypass && boundsCalls(r) {
		return modeDontAsk, nil
	}
	switch {
	case mode == modeBypass && !r.Confined && r.UID == 0:
		return "", events.Errorf(events.CodeUnsupported, events.LayerGate,
			"claude does not run without its permission prompts as uid 0 outside of a sandbox").
			WithRemedy("use a sandbox profile, another permission_mode, or another user")
	case mode != modeBypass && mode != modePlan && !r.Confined:
		s.warn("the sandbox is off, so claude's own permission prompts stay on: what it would ask is denied, for nobody answers")
	}
	return mode, nil
}

// boundsCalls reports whether the tools are bounded by more than their names, or
// by names of MCP tools: then claude has to check each call.
func boundsCalls(r Request) bool {
	if r.Tools == nil {
		return false
	}
	return len(r.MCPServers) > 0 || slices.ContainsFunc(r.Tools, func(rule string) bool {
		return strings.Contains(rule, "(") || strings.HasPrefix(rule, mcpPrefix)
	})
}

const mcpPrefix = "mcp__"

// claudeTools says which of its tools claude has and which calls are allowed.
func (s *Setup) claudeTools(r Request) {
	if r.Tools != nil {
		names := []string{}
		for _, rule := range r.Tools {
			name, _, _ := strings.Cut(rule, "(")
			if name = strings.TrimSpace(name); !strings.HasPrefix(name, mcpPrefix) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		s.Argv = append(s.Argv, "--tools="+strings.Join(names, ","))
		if len(r.Tools) > 0 {
			s.Argv = append(s.Argv, "--allowedTools="+strings.Join(r.Tools, ","))
		}
	}
	denied := slices.Clone(r.DisallowedTools)
	switch r.CapabilityMode {
	case capabilityReadOnly:
		denied = append(append(denied, claudeEdits...), claudeCommands...)
	case capabilityReadWrite:
		denied = append(denied, claudeCommands...)
	case capabilityExecute:
		denied = append(denied, claudeEdits...)
	}
	if len(denied) > 0 {
		s.Argv = append(s.Argv, "--disallowedTools="+strings.Join(denied, ","))
	}
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
