#!/bin/sh
# Runs the real agent CLIs, claude and codex, unmodified, as subagents of a real
# daemon against a stand-in for the model APIs, as root and as an ordinary user, and
# prints a table of what was shown: no account and no key is needed. The exit status
# is not 0 if anything failed.
#
#   scripts/agents.sh [GO TEST ARGUMENT]...           with the daemon
#   scripts/agents.sh -adapter [GO TEST ARGUMENT]...  the adapters alone
#   scripts/agents.sh -record [GO TEST ARGUMENT]...   that, and write the recordings
#                                                     in adapter/testdata anew
#
# HAYWARD_AGENT_CLIS is the directory in which npm has installed the CLIs, or is to
# (default: /opt/hayward-agent-clis for root, for the ordinary user has to reach them;
# else hayward-agent-clis in the user's cache). CLAUDE_VERSION and CODEX_VERSION are
# the versions that are installed where there is none.
set -eu
cd "$(dirname "$0")/.."

CLAUDE_VERSION=${CLAUDE_VERSION:-2.1.197}
CODEX_VERSION=${CODEX_VERSION:-0.171.0}
if [ "$(id -u)" -eq 0 ]; then
	cache=/opt
else
	cache=${XDG_CACHE_HOME:-${HOME:?}/.cache}
fi
dir=${HAYWARD_AGENT_CLIS:-$cache/hayward-agent-clis}
go=${GO:-go}
for program in node "$go"; do
	command -v "$program" >/dev/null || { echo "agents: $program is not in PATH" >&2; exit 1; }
done
if [ ! -x "$dir/node_modules/.bin/claude" ] || [ ! -x "$dir/node_modules/.bin/codex" ]; then
	command -v npm >/dev/null || { echo "agents: npm is not in PATH" >&2; exit 1; }
	mkdir -p "$dir"
	npm install --prefix "$dir" --no-audit --no-fund \
		"@anthropic-ai/claude-code@$CLAUDE_VERSION" "@openai/codex@$CODEX_VERSION"
	# npm may leave out the step that puts the program in place.
	"$dir/node_modules/.bin/claude" --version >/dev/null 2>&1 || node "$dir/node_modules/@anthropic-ai/claude-code/install.cjs"
	# An ordinary user runs them as well.
	chmod -R a+rX "$dir"
fi
export HAYWARD_AGENT_CLIS="$dir"

case ${1:-} in
-adapter | -record)
	record=
	if [ "$1" = -record ]; then
		record="-args -record -update"
	fi
	shift
	# shellcheck disable=SC2086 # -args and what follows are words of their own
	exec "$go" test -count=1 -timeout 30m -v "$@" -run 'TestLive|TestResume' ./adapter $record
	;;
esac

HAYWARD_AGENT_CLIS_TABLE=$(mktemp)
export HAYWARD_AGENT_CLIS_TABLE
trap 'rm -f "$HAYWARD_AGENT_CLIS_TABLE"' EXIT
status=0
"$go" test -count=1 -timeout 15m "$@" -run '^TestRealAgents$' ./internal/e2e || status=$?
echo
"$dir/node_modules/.bin/claude" --version
"$dir/node_modules/.bin/codex" --version
echo
cat "$HAYWARD_AGENT_CLIS_TABLE"
[ -s "$HAYWARD_AGENT_CLIS_TABLE" ] || { echo "agents: nothing was shown" >&2; exit 1; }
if [ "$status" -ne 0 ]; then
	echo "agents: not everything is as it should be" >&2
fi
exit "$status"
