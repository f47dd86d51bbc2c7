package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/hayward-dev/hayward/config"
)

const configurationHead = `# Configuration

<!-- Generated from package config by internal/contractgen; do not edit. -->

Hayward needs no configuration. What is set is looked up in this order, and the first place that has a key wins:

| place | where |
|---|---|
| pin | ` + "`/etc/hayward/requirements.toml`, then `requirements.toml` in the user's configuration directory" + ` |
| flag | of the verb |
| environment | of the client that asks; the daemon's never counts for a request |
| project | ` + "`.hayward/config.toml`" + ` of the nearest directory upwards, not beyond a git repository's top and not in the home; only if the project is trusted |
| user | ` + "`config.toml` in `$HAYWARD_CONFIG_DIR`, else `$XDG_CONFIG_HOME/hayward`, else `~/.config/hayward`" + ` |
| system | ` + "`/etc/hayward/config.toml`" + ` |
| default | below |

The file of a project that is not trusted is shown by ` + "`hayward config show`" + `, named in a warning where it would count, and
not used. ` + "`hayward trust`" + ` trusts the files at the top of a project as they are then.

A file is strict TOML: a key that is not listed here, a wrong type or a value out of range is an error that names the
file and the line; until it is right no verb that uses a setting does anything, and no daemon starts. The files may be absent.

` + "```" + `
hayward config show --origin    # every value in force and where it comes from
hayward config path             # the files that are looked for
hayward config check            # everything that is wrong with them
hayward doctor                  # the limits and deadlines of the daemon that runs
` + "```" + `

A pin is a value that neither flags nor the environment change: a verb says that its flag is not used, and the daemon
refuses a request of any other client that differs from a pinned sandbox profile, best effort or isolation.

A duration is a string such as ` + "`\"90s\"`, `\"10m\"` or `\"1h30m\"`" + `. Keys of the daemon are read when it starts
(` + "`hayward shutdown --handover`" + ` lets the next one take over what runs) and have no variable: one daemon serves many
clients. For the same reason a project cannot set them.

` + "```toml" + `
# ~/.config/hayward/config.toml
session = "work"

[sandbox]
profile = "workspace"

[limits]
per_session = 8

[deadlines]
max_runtime = "30m"
` + "```" + `
`

// configuration is the page that lists every key.
func configuration() []byte {
	var b bytes.Buffer
	b.WriteString(configurationHead)
	for _, part := range []struct {
		title string
		scope config.Scope
	}{
		{"Defaults of requests", config.ScopeClient},
		{"The daemon", config.ScopeDaemon},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n", part.title)
		b.WriteString("| key | type | default | variable | flag | what it is |\n|---|---|---|---|---|---|\n")
		for _, k := range config.Keys {
			if k.Scope == part.scope {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n",
					k.Name, kind(k), quoted(k.Default), variable(k), flagOf(k), k.About)
			}
		}
	}
	b.WriteString("\nThe directories are not settings of a file: see the README for `HAYWARD_STATE_DIR`, `HAYWARD_RUNTIME_DIR`,\n" +
		"`HAYWARD_CACHE_DIR` and `HAYWARD_CONFIG_DIR`.\n")
	return b.Bytes()
}

func kind(k *config.Key) string {
	if len(k.Values) == 0 {
		return string(k.Kind)
	}
	words := make([]string, len(k.Values))
	for i, v := range k.Values {
		words[i] = quoted(v)
	}
	return strings.Join(words, ", ")
}

func quoted(s string) string {
	if s == "" {
		return "none"
	}
	return "`" + s + "`"
}

func variable(k *config.Key) string {
	if k.Env == "" {
		return ""
	}
	return quoted(k.Env)
}

func flagOf(k *config.Key) string {
	if k.Flag == "" {
		return ""
	}
	return quoted("--"+k.Flag) + " of " + k.Verbs
}
