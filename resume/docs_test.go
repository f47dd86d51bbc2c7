package resume

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The guide names every refusal there is and no other, the session files, and the
// warning.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile("../docs/resume.md")
	require.NoError(t, err)
	code, err := os.ReadFile("../events/errors.go")
	require.NoError(t, err)
	codes := regexp.MustCompile(`"(resume_[a-z_]+)"`).FindAllStringSubmatch(string(code), -1)
	require.NotEmpty(t, codes)
	known := map[string]bool{"resume_source": true, "resume_from": true}
	for _, c := range codes {
		known[c[1]] = true
		require.Contains(t, string(text), "`"+c[1]+"`")
	}
	for _, named := range regexp.MustCompile("`(resume_[a-z_]+)`").FindAllStringSubmatch(string(text), -1) {
		require.True(t, known[named[1]], named[1])
	}
	for _, word := range []string{ToolStateFile, PlanStateFile, PlanModeFile, SignalsFile, WarningModelPinned, StateDir + "/"} {
		require.Contains(t, string(text), word)
	}
	for _, mode := range []string{PlanInactive, PlanPending, PlanActive} {
		require.Contains(t, string(text), "`"+mode+"`")
	}
	require.Contains(t, string(text), "(80)")
	require.Equal(t, 80, DefaultMaxContextPercent)
	require.False(t, strings.Contains(string(text), "\t"))
}
