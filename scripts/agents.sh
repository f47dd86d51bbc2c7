#!/bin/sh
# Installs the real agent CLIs into a cache directory and runs what is to be proven
# with them, against a stand-in for the model API: no account and no key is needed.
#
#   scripts/agents.sh [-record] [GO TEST ARGUMENT]...
#
# CLAUDE_VERSION and CODEX_VERSION choose the versions (default: the latest, once).
# HAYWARD_AGENT_CLIS is the directory (default: hayward-agent-clis in the user's
# cache). With -record the recordings in adapter/testdata are written anew.
set -eu
cd "$(dirname "$0")/.."

dir="${HAYWARD_AGENT_CLIS:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/hayward-agent-clis}"
for program in npm node go; do
	command -v "$program" >/dev/null || { echo "agents: $program is not in PATH" >&2; exit 1; }
done
if [ ! -x "$dir/node_modules/.bin/claude" ] || [ ! -x "$dir/node_modules/.bin/codex" ] || [ -n "${CLAUDE_VERSION:-}${CODEX_VERSION:-}" ]; then
	mkdir -p "$dir"
	npm install --prefix "$dir" --no-audit --no-fund \
		"@anthropic-ai/claude-code@${CLAUDE_VERSION:-latest}" "@openai/codex@${CODEX_VERSION:-latest}"
fi
"$dir/node_modules/.bin/claude" --version
"$dir/node_modules/.bin/codex" --version

record=
if [ "${1:-}" = -record ]; then
	record="-args -record -update"
	shift
fi
# shellcheck disable=SC2086 # -args and what follows are words of their own
HAYWARD_AGENT_CLIS="$dir" go test -count=1 -timeout 30m -v "$@" -run 'TestLive|TestResume' ./adapter $record
