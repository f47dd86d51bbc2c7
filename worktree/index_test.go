package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestIndex: git reads what was written, and both see the same entries, in every
// version and object format.
func TestIndex(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		for _, version := range []string{"2", "3", "4"} {
			t.Run(format+" "+version, func(t *testing.T) {
				u := newUser(t, "--object-format="+format)
				for _, name := range []string{"a", "dir/sub/b", "dir/sub/bb", "dir/c", "long/" + strings.Repeat("n", 200), "z z\t\"é"} {
					u.write(name, name)
				}
				u.git("config", "core.quotePath", "false")
				u.commit("one")
				u.git("update-index", "--index-version", version)
				if version == "3" {
					u.write("later", "x")
					u.git("add", "-N", "later")
				}
				path := filepath.Join(u.dir, ".git/index")
				x, err := readIndex(path, format)
				require.NoError(t, err)
				want := u.git("ls-files", "--stage", "--debug")
				tree, _ := u.try("write-tree")
				require.NoError(t, os.WriteFile(path, x.encode(), 0o600))
				require.Equal(t, want, u.git("ls-files", "--stage", "--debug"))
				again, _ := u.try("write-tree")
				require.Equal(t, tree, again)

				require.NotNil(t, x.find("dir/sub/bb"))
				require.Nil(t, x.find("dir/sub"))
				b := x.encode()
				b[len(b)/2] ^= 1
				_, err = parseIndex(b, format)
				require.ErrorIs(t, err, errIndex)
			})
		}
	}
}

// FuzzIndex: no index makes the reader fail otherwise than with an error.
func FuzzIndex(f *testing.F) {
	f.Add((&index{format: "sha1"}).encode(), true)
	f.Fuzz(func(t *testing.T, b []byte, seal bool) {
		if seal {
			sum := hashOf("sha1")
			sum.Write(b)
			b = sum.Sum(b)
		}
		_, _ = parseIndex(b, "sha1")
	})
}
