package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/deadlines"
)

// The keys of the client.
var (
	Session = &Key{Name: "session", Kind: KindString, Scope: ScopeClient, Default: "default",
		Env: "HAYWARD_SESSION", Flag: "session", Verbs: "spawn, completions, outstanding, cancel, mcp",
		About: "the session that new subagents belong to and whose completions are read", check: scope}
	SandboxProfile = &Key{Name: "sandbox.profile", Kind: KindString, Scope: ScopeClient, Default: "workspace",
		Env: "HAYWARD_SANDBOX", Flag: "sandbox", Verbs: "spawn, mcp",
		About: "the sandbox profile of subagents that name none; also of those in a plan", check: word}
	SandboxBestEffort = &Key{Name: "sandbox.best_effort", Kind: KindBool, Scope: ScopeClient, Default: "false",
		Flag: "sandbox-best-effort", Verbs: "spawn, mcp",
		About: "whether a subagent starts when the kernel cannot enforce a part of its profile; what is missing is recorded"}
	SpawnMaxRuntime = &Key{Name: "spawn.max_runtime", Kind: KindDuration, Scope: ScopeClient,
		Env: "HAYWARD_MAX_RUNTIME", Flag: "max-runtime", Verbs: "spawn", Least: int64(time.Millisecond),
		About: "how long a subagent of `spawn` may run; without it deadlines.max_runtime of the daemon counts", check: duration}
	SpawnIdleTimeout = &Key{Name: "spawn.idle_timeout", Kind: KindDuration, Scope: ScopeClient,
		Env: "HAYWARD_IDLE_TIMEOUT", Flag: "idle-timeout", Verbs: "spawn", Least: int64(time.Millisecond),
		About: "how long a subagent of `spawn` may write nothing; without it a command may be silent", check: duration}
	SpawnMaxMemory = &Key{Name: "spawn.max_memory", Kind: KindSize, Scope: ScopeClient,
		Env: "HAYWARD_MAX_MEMORY", Flag: "max-memory", Verbs: "spawn", check: memory,
		About: "how much memory the processes of a subagent of `spawn` may use together; 0: no bound; without it limits.max_memory of the daemon counts"}
	SpawnIsolation = &Key{Name: "spawn.isolation", Kind: KindString, Scope: ScopeClient, Default: events.IsolationNone,
		Env: "HAYWARD_ISOLATION", Flag: "isolation", Verbs: "spawn", Values: []string{events.IsolationNone, events.IsolationWorktree},
		About: "the file space of subagents of `spawn`: the directory itself, or a working tree of its own"}
)

// The keys of the daemon, beside the deadlines.
var (
	LimitPerSession = limit("limits.per_session", "max-per-session", "32", "subagents of one session that run at once; more wait in the queue")
	LimitTotal      = limit("limits.total", "max-total", "256", "subagents that run at once")
	LimitQueue      = limit("limits.queue_length", "max-queued", "4096", "subagents that wait for a place; more are refused with code limit")
	LimitDepth      = limit("limits.depth", "max-depth", "1", "how deep subagents may be nested; 1: only clients may spawn")

	LimitPerType = &Key{Name: "limits.per_type", Kind: KindCounts, Scope: ScopeDaemon, Flag: "max-per-type", Verbs: "serve", Least: 1,
		About: "subagents of a type that run at once, over all sessions; a type that is not there has no bound of its own"}
	AtLimit = &Key{Name: "limits.at_limit", Kind: KindString, Scope: ScopeDaemon, Default: "queue", Flag: "at-limit", Verbs: "serve",
		Values: []string{"queue", "fail"}, About: "what becomes of a subagent for which there is no place: it waits, or it is refused with code limit"}
	LimitMemory = &Key{Name: "limits.max_memory", Kind: KindSize, Scope: ScopeDaemon, Flag: "max-memory", Verbs: "serve", check: memory,
		About: "memory of a subagent whose request names no bound; 0 or none: no bound"}

	KeepFinished = &Key{Name: "retention.per_session", Kind: KindInt, Scope: ScopeDaemon, Default: "1000", Flag: "keep-finished", Verbs: "serve", Least: 1,
		About: "finished subagents that a session keeps, the latest; what nobody has read is kept beyond it"}
	KeepFor = &Key{Name: "retention.age", Kind: KindDuration, Scope: ScopeDaemon, Default: "720h", Flag: "keep-for", Verbs: "serve", Least: int64(time.Second),
		About: "how long finished subagents are kept once somebody has read them", check: duration}

	WorktreeDir = &Key{Name: "worktree.dir", Kind: KindString, Scope: ScopeDaemon, check: absolute,
		About: "the directory of the working trees of isolation worktree; without it worktrees in the state directory"}
	WorktreeSetup = &Key{Name: "worktree.setup", Kind: KindString, Scope: ScopeDaemon,
		About: "a shell command that runs in each new working tree, inside the sandbox, before the subagent's own; where it fails the subagent does not start"}
	WorktreeSetupTimeout = &Key{Name: "worktree.setup_timeout", Kind: KindDuration, Scope: ScopeDaemon, Default: "5m", Least: int64(time.Second),
		About: "how long worktree.setup may run", check: duration}
	WorktreeMaxCount = &Key{Name: "worktree.max_count", Kind: KindInt, Scope: ScopeDaemon, Default: "500", Least: 1,
		About: "working trees there may be, those included that are kept after the end; more are refused with code limit"}
	WorktreeMaxTotal = &Key{Name: "worktree.max_total", Kind: KindSize, Scope: ScopeDaemon, Default: "0",
		About: "how much the working trees may take together; 0: no bound but the disk"}

	DaemonIdle = &Key{Name: "daemon.idle", Kind: KindDuration, Scope: ScopeDaemon, Default: "15m", Least: int64(time.Second),
		About: "how long a daemon that a verb started stays without a request and without a live subagent (`serve` itself leaves only with --idle)"}
	DaemonTCP = &Key{Name: "daemon.tcp", Kind: KindString, Scope: ScopeDaemon, Flag: "tcp", Verbs: "serve",
		About: "HOST:PORT to listen on as well, for other NATS clients", check: hostPort}
	DaemonHandover = &Key{Name: "daemon.handover", Kind: KindBool, Scope: ScopeDaemon, Default: "false", Flag: "handover", Verbs: "serve",
		About: "whether subagents go on when the daemon is ended by a signal, for the next daemon to take over"}
	DaemonLogLevel = &Key{Name: "daemon.log_level", Kind: KindString, Scope: ScopeDaemon, Default: "info", Flag: "log-level", Verbs: "serve",
		Values: []string{"debug", "info", "warn", "error"}, About: "the least important lines of the daemon's log"}
	MetricsListen = &Key{Name: "metrics.listen", Kind: KindString, Scope: ScopeDaemon, Flag: "metrics", Verbs: "serve", check: metricsAddress,
		About: "where Prometheus reads metrics: HOST:PORT, without HOST on this machine only, or unix:PATH; none: nowhere"}
	TracingEndpoint = &Key{Name: "tracing.endpoint", Kind: KindString, Scope: ScopeDaemon, Flag: "tracing", Verbs: "serve", check: collector,
		About: "URL of an OTLP collector that takes traces, such as http://127.0.0.1:4318; none: OTEL_EXPORTER_OTLP_ENDPOINT of `serve`, else no traces"}
	BusSync = &Key{Name: "bus.sync", Kind: KindString, Scope: ScopeDaemon, Default: SyncInterval, Flag: "sync-always", Verbs: "serve",
		Values: []string{SyncInterval, SyncAlways}, About: "when records reach the disk: once a second, so that a power cut may lose the last second, or always"}
)

// The keys of resumes.
var (
	ResumeMaxContext = &Key{Name: "resume.max_context_percent", Kind: KindInt, Scope: ScopeClient, Default: "80", Least: 1, check: percent,
		About: "how much of the model's context window the conversation of a resumed agent may take, in percent; exactly that much passes. What a project says only lowers it"}
	ResumeWindows = &Key{Name: "resume.windows", Kind: KindCounts, Scope: ScopeDaemon,
		About: "tokens that the context window of a model holds, by its name or its beginning with a star, over those that are known; 0: it is gone"}
)

// The keys of agents and of their models.
var (
	AgentRunner = &Key{Name: "agents.runner", Kind: KindString, Scope: ScopeDaemon, Default: events.AgentClaude,
		Values: []string{events.AgentClaude, events.AgentCodex}, About: "what runs agent types that name no runner"}

	AnthropicURL = &Key{Name: "gateway.anthropic_url", Kind: KindString, Scope: ScopeDaemon, Default: "https://api.anthropic.com",
		About: "where the gateway finds the Anthropic API", check: webAddress}
	AnthropicKeyFile = &Key{Name: "gateway.anthropic_key_file", Kind: KindString, Scope: ScopeDaemon,
		About: "the file with its key, readable by its owner alone; else the systemd credential anthropic-api-key, else the variable of gateway.anthropic_key_env"}
	AnthropicKeyEnv = &Key{Name: "gateway.anthropic_key_env", Kind: KindString, Scope: ScopeDaemon, Default: "ANTHROPIC_API_KEY",
		About: "the variable of the daemon that holds its key"}
	OpenAIURL = &Key{Name: "gateway.openai_url", Kind: KindString, Scope: ScopeDaemon, Default: "https://api.openai.com",
		About: "where the gateway finds the OpenAI API", check: webAddress}
	OpenAIKeyFile = &Key{Name: "gateway.openai_key_file", Kind: KindString, Scope: ScopeDaemon,
		About: "the file with its key; else the systemd credential openai-api-key, else the variable of gateway.openai_key_env"}
	OpenAIKeyEnv = &Key{Name: "gateway.openai_key_env", Kind: KindString, Scope: ScopeDaemon, Default: "OPENAI_API_KEY",
		About: "the variable of the daemon that holds its key"}
	GatewayMaxCost = &Key{Name: "gateway.max_cost_usd", Kind: KindNumber, Scope: ScopeDaemon, Default: "0",
		About: "what the calls of one subagent through the gateway may cost, in US dollars; 0: no bound; with a bound no model without a price can be used"}
	GatewayPrices = &Key{Name: "gateway.prices", Kind: KindPrices, Scope: ScopeDaemon,
		About: "what models cost, in US dollars for a million tokens, over the prices that are built in: `MODEL = { input, output, cache_read, cache_write }`, " +
			"with `long = { over, input, … }` for requests that read more than `over` tokens; a cache that is not named costs as much as input"}
	GatewayMaxTokens = &Key{Name: "gateway.max_tokens", Kind: KindInt, Scope: ScopeDaemon, Default: "0",
		About: "tokens that one subagent may use through the gateway, read and written together; 0: no bound"}
	GatewayMaxTreeTokens = &Key{Name: "gateway.max_tree_tokens", Kind: KindInt, Scope: ScopeDaemon, Default: "0",
		About: "tokens that a subagent and all that are nested in it may use together; 0: no bound"}
	GatewayMaxPromptTokens = &Key{Name: "gateway.max_prompt_tokens", Kind: KindInt, Scope: ScopeDaemon, Default: "0",
		About: "tokens that the subagents of one prompt of a session, nested ones included, may use together; 0: no bound"}
)

// The values of [BusSync].
const (
	SyncInterval = "interval"
	SyncAlways   = "always"
)

// Deadlines has one key for each of [deadlines.All], in that order.
var Deadlines = func() []*Key {
	var keys []*Key
	for _, d := range deadlines.All {
		keys = append(keys, &Key{
			Name: "deadlines." + strings.ReplaceAll(d.Name, "-", "_"), Kind: KindDuration, Scope: ScopeDaemon,
			Default: shortDuration(d.Default), Flag: d.Name, Verbs: "serve", Least: int64(time.Millisecond),
			About: d.Bounds + "; then: " + d.At, check: duration,
		})
	}
	return keys
}()

// Keys lists every key in the order of the documentation.
var Keys = append([]*Key{
	Session, SandboxProfile, SandboxBestEffort, SpawnMaxRuntime, SpawnIdleTimeout, SpawnMaxMemory, SpawnIsolation,
	LimitPerSession, LimitTotal, LimitQueue, LimitDepth, LimitPerType, AtLimit, LimitMemory,
	KeepFinished, KeepFor,
	WorktreeDir, WorktreeSetup, WorktreeSetupTimeout, WorktreeMaxCount, WorktreeMaxTotal,
	DaemonIdle, DaemonTCP, DaemonHandover, DaemonLogLevel, MetricsListen, TracingEndpoint, BusSync,
	ResumeMaxContext, ResumeWindows,
	AgentRunner, AnthropicURL, AnthropicKeyFile, AnthropicKeyEnv, OpenAIURL, OpenAIKeyFile, OpenAIKeyEnv,
	GatewayMaxTokens, GatewayMaxTreeTokens, GatewayMaxPromptTokens, GatewayMaxCost, GatewayPrices,
}, Deadlines...)

// Find returns the key of a name, or nil.
func Find(name string) *Key {
	for _, k := range Keys {
		if k.Name == name {
			return k
		}
	}
	return nil
}

func limit(name, flag, otherwise, about string) *Key {
	return &Key{Name: name, Kind: KindInt, Scope: ScopeDaemon, Default: otherwise, Flag: flag, Verbs: "serve", Least: 1, About: about}
}

func scope(v any) error {
	if s := v.(string); !events.ValidScope(s) {
		return fmt.Errorf("%q is not a session: 1 to 128 of A-Z a-z 0-9 _ . : -", s)
	}
	return nil
}

func word(v any) error {
	if s := v.(string); s == "" || len(s) > events.MaxWord {
		return fmt.Errorf("has not 1 to %d bytes", events.MaxWord)
	}
	return nil
}

func duration(v any) error {
	if d := v.(time.Duration); d.Milliseconds() > events.MaxDurationMS {
		return fmt.Errorf("%s is over a year", d)
	}
	return nil
}

func memory(v any) error {
	if n := v.(size); n != 0 && (n < events.MinMemoryBytes || n > events.MaxMemoryBytes) {
		return fmt.Errorf("%s is neither 0 nor between %s and %s", n, size(events.MinMemoryBytes), size(events.MaxMemoryBytes))
	}
	return nil
}

func metricsAddress(v any) error {
	if path, unix := strings.CutPrefix(v.(string), "unix:"); unix {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("%q is not an absolute path", path)
		}
		return nil
	}
	return hostPort(v)
}

func collector(v any) error {
	if u, err := url.Parse(v.(string)); v != "" && (err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https")) {
		return fmt.Errorf("%q is not an http or https URL", v)
	}
	return nil
}

func percent(v any) error {
	if n := v.(int64); n > 100 {
		return fmt.Errorf("%d is over 100 percent", n)
	}
	return nil
}

func absolute(v any) error {
	if s := v.(string); !filepath.IsAbs(s) {
		return fmt.Errorf("%q is not an absolute path", s)
	}
	return nil
}

func webAddress(v any) error {
	u, err := url.Parse(v.(string))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return fmt.Errorf("%q is not an address such as https://api.example.com", v)
	}
	return nil
}

func hostPort(v any) error {
	if v == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(v.(string))
	if err != nil {
		return fmt.Errorf("%q is not HOST:PORT", v)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("%q names no port between 0 and 65535", v)
	}
	return nil
}
