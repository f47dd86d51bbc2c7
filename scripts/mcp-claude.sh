#!/bin/sh
# Proves hayward mcp with the real claude as the parent, against a scripted model:
# installs the CLI from npm into a directory and runs the test that needs it.
# Usage: scripts/mcp-claude.sh [DIR]    (needs node, npm and a network)
set -eu
cd "$(dirname "$0")/.."
dir=${1:-${TMPDIR:-/tmp}/hayward-agent-clis}
mkdir -p "$dir"
if [ ! -x "$dir/node_modules/.bin/claude" ]; then
	npm install --prefix "$dir" --no-fund --no-audit @anthropic-ai/claude-code
fi
# npm may leave out the step that puts the program in place.
"$dir/node_modules/.bin/claude" --version >/dev/null 2>&1 || node "$dir/node_modules/@anthropic-ai/claude-code/install.cjs"
"$dir/node_modules/.bin/claude" --version
# An ordinary user runs it as well.
chmod a+rx "$dir"
HAYWARD_AGENT_CLIS=$dir exec "${GO:-go}" test ./internal/e2e -run 'TestClaudeAsAParent' -count=1 -v
