//go:build linux && cgo

package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/sandbox/policy"
)

// The documentation names every gap, kind of credential and profile that there is.
func TestDocumentation(t *testing.T) {
	b, err := os.ReadFile("../docs/sandbox.md")
	require.NoError(t, err)
	text := string(b)
	source, err := os.ReadFile("gaps.go")
	require.NoError(t, err)
	names := regexp.MustCompile(`Gap\w+\s+= "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	require.Greater(t, len(names), 20)
	for _, name := range names {
		require.Contains(t, text, "| `"+name[1]+"` |")
	}
	for _, kind := range policy.CredentialKinds() {
		require.Contains(t, text, "| `"+kind+"` |")
	}
	for _, e := range policy.Credentials([]string{"~"}, nil) {
		require.Contains(t, text, "`"+e.Path+"`")
	}
	for _, name := range Names {
		require.Contains(t, text, "`"+name+"`")
	}
}

// overclaims are ways to say that a sandbox holds against everything.
var overclaims = regexp.MustCompile(`(?i)(cannot|can not|can't|impossible to|no way to|never) (be )?(bypass|escape|circumvent|broken out|break out)|unbreakable|escape-proof|bulletproof|airtight|100% secure|completely secure|fully secure`)

// disclaimers are sentences that say the opposite.
var disclaimers = regexp.MustCompile(`(?i)no claim is made|nothing.{0,40}claims`)

// Nothing that users read claims that the sandbox cannot be bypassed.
func TestNothingOverclaims(t *testing.T) {
	require.True(t, overclaims.MatchString("it cannot be bypassed"))
	var searched int
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "dist" || d.Name() == "bin" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".md") && !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		searched++
		// Sentences, whatever their line breaks.
		text := strings.Join(strings.Fields(strings.NewReplacer("//", " ", "`", "").Replace(string(b))), " ")
		for _, at := range overclaims.FindAllStringIndex(text, -1) {
			around := text[max(0, at[0]-60):min(len(text), at[1]+20)]
			require.True(t, disclaimers.MatchString(around), "%s: ...%s...", path, around)
		}
		return nil
	}))
	require.Greater(t, searched, 100)
}
