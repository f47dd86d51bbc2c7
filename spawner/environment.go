package spawner

import (
	"sort"

	"github.com/hayward-dev/hayward/events"
)

// baseEnvironment is what a command gets if the client sends nothing. The
// daemon's own environment never reaches a command.
var baseEnvironment = map[string]string{
	"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	"LANG": "C.UTF-8",
}

// path is the PATH in which the command of a client's environment runs.
func path(env map[string]string) string {
	if p, ok := env["PATH"]; ok {
		return p
	}
	return baseEnvironment["PATH"]
}

// environment is the command's: the base, then what the sandbox sets (TMPDIR,
// caches), then the client's, then ours.
func (c *child) environment() []string {
	env := make(map[string]string, len(c.spec.Request.Env)+16)
	env["HOME"] = c.s.cfg.Home
	for _, layer := range []map[string]string{baseEnvironment, c.plan.Env, c.spec.Request.Env} {
		for k, v := range layer {
			env[k] = v
		}
	}
	c.agentEnvironment(env)
	env[events.VariableSubagent] = c.spec.ID
	c.doorEnvironment(env)
	if !c.runsAgent() {
		env[sessionVariable] = c.stateDir()
	}
	env["HAYWARD_SANDBOX_PROFILE"] = c.plan.Profile().Name()
	env["HAYWARD_SANDBOX_NETWORK"] = string(c.plan.Network)
	if t := c.spec.Trace; t != nil && env["TRACEPARENT"] == "" {
		env["TRACEPARENT"] = t.Child
		if t.State != "" {
			env["TRACESTATE"] = t.State
		}
	}
	for name, id := range c.spec.Request.Inputs {
		env["HAYWARD_INPUT_"+name] = c.inputPath(name, id)
	}
	list := make([]string, 0, len(env))
	for k, v := range env {
		list = append(list, k+"="+v)
	}
	sort.Strings(list)
	return list
}

// childSpec is what the supervisor is told through its descriptor.
func (c *child) childSpec(prompt string) events.ChildSpec {
	req := c.spec.Request
	maxRuntime := c.s.cfg.Deadlines.Run.Milliseconds()
	if req.MaxRuntimeMS != nil {
		maxRuntime = *req.MaxRuntimeMS
	}
	var idle int64
	if req.IdleTimeoutMS != nil {
		idle = *req.IdleTimeoutMS
	}
	spec := events.ChildSpec{
		ID:            c.spec.ID,
		Run:           c.spec.Run,
		Token:         c.token.token,
		Argv:          req.Command,
		Env:           c.environment(),
		Cwd:           c.space.cwd,
		Prompt:        prompt,
		Stdin:         req.Stdin,
		GraceMS:       c.s.cfg.Deadlines.Grace.Milliseconds(),
		KillProofMS:   c.s.cfg.Deadlines.KillProof.Milliseconds(),
		MaxRuntimeMS:  maxRuntime,
		IdleTimeoutMS: idle,
		HeartbeatMS:   c.s.cfg.Deadlines.Heartbeat.Milliseconds(),
		Profile:       c.plan.Profile().Name(),
		Enforced:      c.plan.Profile().Enforced(),
		Door:          c.door(),
		ItemsBefore:   c.itemsBefore,
	}
	c.asAgent(&spec)
	return spec
}
