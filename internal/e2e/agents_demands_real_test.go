package e2e

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/hayward-dev/hayward/internal/modelstub"
)

// verdict is what the agents are to answer in structured form.
const verdict = `{"verdict":"good","faults":[]}`

// demandTurns are the turns of the tasks that ask something of the result.
func demandTurns(agent, what, dir string) []modelstub.Turn {
	switch {
	case what == "structure" && agent == "claude":
		return []modelstub.Turn{{Tools: []modelstub.ToolCall{{Name: "StructuredOutput", Input: []byte(verdict)}}}}
	case what == "structure":
		return []modelstub.Turn{{Text: verdict}}
	case what == "misfit":
		return []modelstub.Turn{{Text: `{"verdict":"good"}`, Repeat: true}}
	case what == "hook":
		return []modelstub.Turn{{Tools: shellCall(agent, "echo said")}}
	case what == "ask" && agent == "claude":
		return []modelstub.Turn{{Tools: []modelstub.ToolCall{{Name: "Write", Input: encoded(map[string]any{"file_path": filepath.Join(dir, "made.txt"), "content": "x"})}}}}
	}
	return nil
}

// demands shows what is asked of results: structure, no denials, hooks and skills.
func (w *realWorld) demands() {
	const schema = `{"type":"object","required":["verdict","faults"],"properties":{"verdict":{"type":"string"},"faults":{"type":"array","items":{"type":"string"}}},"additionalProperties":false}`
	ids, _ := w.spawn("structure", "structure", "--output-schema", schema)
	for agent, s := range w.ended(ids) {
		result, _ := s["agent"].(map[string]any)
		got, _ := result["structured"].(map[string]any)
		w.shown.of(w, "default", agent).check("structured result by output_schema", s["status"] == "completed" && got["verdict"] == "good", s["status"], s["error"], result)
	}
	ids, _ = w.spawn("misfit", "misfit", "--output-schema", schema)
	for agent, s := range w.ended(ids) {
		failure, _ := s["error"].(map[string]any)
		w.shown.of(w, "default", agent).check("a misfit is output_mismatch", s["status"] == "failed" && failure["code"] == "output_mismatch", s["status"], failure)
	}

	u := w.u
	skill := filepath.Join(u.home, ".config/hayward/skills/weigh")
	if err := os.MkdirAll(skill, 0o755); err != nil {
		w.t.Fatal(err)
	}
	u.file(filepath.Join(skill, "SKILL.md"), "Use the golden scales.\n", 0o644)
	u.agentType("hooked", "hooks:\n  PostToolUse:\n    - matcher: Bash\n      hooks: [{type: command, command: 'env > hooked.txt'}]\n")
	u.agentType("skilled", "skills: [weigh]\n")

	id, dir := w.one("claude", "hook", "hook", "--type", "hooked")
	s := u.await(id)[0]
	seen := w.text(filepath.Join(dir, "hooked.txt"))
	w.shown.of(w, "default", "claude").check("a hook of its type runs in the sandbox",
		s["status"] == "completed" && strings.Contains(seen, "HAYWARD_SUBAGENT_ID="+id) && !containsAny(seen, anthropicKey, openaiKey), s["status"], s["error"], seen)

	for _, agent := range realAgents {
		id, _ := w.one(agent, "skill", "skill"+agent, "--type", "skilled")
		s := u.await(id)[0]
		asked := false
		for _, r := range w.model.Requests() {
			asked = asked || strings.Contains(r.Body, "round=skill"+agent) && strings.Contains(r.Body, "golden scales")
		}
		w.shown.of(w, "default", agent).check("has the skills of its type", s["status"] == "completed" && asked, s["status"], s["error"])
	}

	// With the sandbox off claude's own prompts are on, and nobody answers them.
	id, _ = w.one("claude", "ask", "ask", "--type", "general-purpose", "--sandbox", "off", "--require-no-denials")
	s = u.await(id)[0]
	result, _ := s["agent"].(map[string]any)
	denials, _ := result["denials"].([]any)
	failure, _ := s["error"].(map[string]any)
	holds := len(denials) == 1 && denials[0].(map[string]any)["origin"] == "no_approver"
	w.shown.of(w, "off", "claude").check("an ask is denied at once: no_approver", holds, result, s["error"])
	w.shown.of(w, "off", "claude").check("and fails where there may be none", failure["code"] == "tool_denied", failure)
}

// one starts one agent with a task, which does not wait for the other.
func (w *realWorld) one(agent, what, round string, flags ...string) (id, dir string) {
	w.t.Helper()
	w.alone(round)
	dir = w.directory(round + "-" + agent)
	return w.u.detach(append(append([]string{"--cwd", dir, "--workspace", dir, "--max-runtime", "4m", "--prompt", prompt(what, round, dir)}, flags...), "--", agent)...), dir
}
