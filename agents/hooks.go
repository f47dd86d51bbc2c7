package agents

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// The deadlines of a hook: without one of its own, and the longest there may be.
const (
	HookTimeout    = 30 * time.Second
	MaxHookTimeout = 10 * time.Minute
)

// HookSettings are the hooks in the form that claude's settings have them, each
// with a deadline, or nil if there are none. The agent runs them, so they run where
// it does: in the sandbox. What is not a command in that form is an error.
func (d *Definition) HookSettings() ([]byte, error) {
	if d.Hooks == nil {
		return nil, nil
	}
	byEvent, ok := d.Hooks.(map[string]any)
	if !ok {
		return nil, errors.New("hooks is not a table of events")
	}
	settings := make(map[string]any, len(byEvent))
	for _, event := range slices.Sorted(maps.Keys(byEvent)) {
		if byEvent[event] == nil {
			continue
		}
		groups, ok := byEvent[event].([]any)
		if !ok {
			return nil, fmt.Errorf("hooks of %s is not a list", event)
		}
		var all []any
		for _, g := range groups {
			group, err := hookGroup(g)
			if err != nil {
				return nil, fmt.Errorf("hooks of %s: %w", event, err)
			}
			all = append(all, group)
		}
		if all != nil {
			settings[event] = all
		}
	}
	if len(settings) == 0 {
		return nil, nil
	}
	return events.MarshalRecord(settings)
}

// hookGroup is an element of the list of an event: a matcher and its hooks.
func hookGroup(v any) (map[string]any, error) {
	table, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("an element is not a table with matcher and hooks")
	}
	group := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		switch key {
		case "matcher":
			matcher, ok := table[key].(string)
			if !ok {
				return nil, errors.New("matcher is not a text")
			}
			group[key] = matcher
		case "hooks":
			list, ok := table[key].([]any)
			if !ok {
				return nil, errors.New("an element's hooks is not a list")
			}
			hooks := []any{}
			for _, h := range list {
				hook, err := oneHook(h)
				if err != nil {
					return nil, err
				}
				hooks = append(hooks, hook)
			}
			group[key] = hooks
		default:
			return nil, fmt.Errorf("%s is not known; an element has matcher and hooks", key)
		}
	}
	if group["hooks"] == nil {
		return nil, errors.New("an element has no hooks")
	}
	return group, nil
}

func oneHook(v any) (map[string]any, error) {
	table, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("a hook is not a table with type and command")
	}
	timeout := HookTimeout
	for _, key := range slices.Sorted(maps.Keys(table)) {
		switch key {
		case "type", "command":
		case "timeout":
			seconds, ok := table[key].(int64)
			if !ok || seconds < 1 || seconds > int64(MaxHookTimeout/time.Second) {
				return nil, fmt.Errorf("timeout %v is not a whole number of seconds from 1 to %d", table[key], MaxHookTimeout/time.Second)
			}
			timeout = time.Duration(seconds) * time.Second
		default:
			return nil, fmt.Errorf("%s of a hook is not known; there are type, command and timeout", key)
		}
	}
	command, ok := table["command"].(string)
	if table["type"] != "command" || !ok || command == "" {
		return nil, fmt.Errorf("a hook of type %v is not run; only type command with a command is", table["type"])
	}
	return map[string]any{"type": "command", "command": command, "timeout": int64(timeout / time.Second)}, nil
}
