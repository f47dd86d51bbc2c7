package resume

import (
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// Models says how many tokens the context window of a model holds. A key is the name
// of a model, or its beginning followed by a star; 0 is a model that is gone.
type Models map[string]int64

// DefaultModels are the models that are known without a configuration. Each entry
// with the name of a runner is what it uses when nobody names a model.
func DefaultModels() Models {
	return Models{
		events.AgentClaude: 200_000,
		"claude-*":         200_000, "claude-1*": 0, "claude-2*": 0, "claude-instant*": 0,
		"opus*": 200_000, "sonnet*": 200_000, "haiku*": 200_000, "opusplan": 200_000, "default": 200_000,

		events.AgentCodex: 272_000,
		"gpt-*":           272_000, "codex-*": 200_000, "o3*": 200_000, "o4*": 200_000,
		"gpt-4.1*": 1_047_576, "gpt-4o*": 128_000, "gpt-oss*": 131_072,
	}
}

// With returns the models with others over them.
func (m Models) With(more Models) Models {
	all := make(Models, len(m)+len(more))
	for name, window := range m {
		all[name] = window
	}
	for name, window := range more {
		all[name] = window
	}
	return all
}

// million is how claude names the larger window of a model.
const million = "[1m]"

// Window returns the context window of a model, by its whole name, else by the
// longest beginning of it. Without a name it is that of the runner's own choice.
func (m Models) Window(runner, model string) (tokens int64, known bool) {
	if model == "" {
		model = runner
	}
	if tokens, ok := m[model]; ok {
		return tokens, tokens > 0
	}
	best := -1
	for name, window := range m {
		prefix, ok := strings.CutSuffix(name, "*")
		if ok && len(prefix) > best && strings.HasPrefix(model, prefix) {
			best, tokens = len(prefix), window
		}
	}
	if strings.HasSuffix(model, million) && tokens > 0 {
		tokens = 1_000_000
	}
	return tokens, best >= 0 && tokens > 0
}
