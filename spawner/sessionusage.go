package spawner

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

const (
	// codexSessions is where a home of codex keeps its sessions.
	codexSessions = "sessions"
	// maxSessionFile bounds what is read of one, maxSessionLine a line that is looked
	// at.
	maxSessionFile = 512 << 20
	maxSessionLine = 64 << 10
)

// codexSessionUsage is what a session of codex, kept in a home, has used so far.
// codex goes on counting from there when the session is resumed, whether or not its
// last run ended in a way that told its usage: so it is read from the session itself
// and not from the result of that run.
func codexSessionUsage(home, session string) (events.Usage, error) {
	root, err := os.OpenRoot(home)
	if err != nil {
		return events.Usage{}, err
	}
	defer root.Close()
	var used events.Usage
	found := false
	err = fs.WalkDir(root.FS(), codexSessions, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || !strings.HasSuffix(path, session+".jsonl") {
			return err
		}
		found = true
		used, err = usageInSession(root, path)
		return err
	})
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return events.Usage{}, fmt.Errorf("read the session %s: %w", session, err)
	case !found:
		return events.Usage{}, fmt.Errorf("the session %s is not in the agent's home: %w", session, fs.ErrNotExist)
	}
	return used, nil
}

// sessionLine has what is looked at of a line of a session.
type sessionLine struct {
	Payload struct {
		Type string `json:"type"`
		Info *struct {
			Total struct {
				Input      int64 `json:"input_tokens"`
				Cached     int64 `json:"cached_input_tokens"`
				CacheWrite int64 `json:"cache_write_input_tokens"`
				Output     int64 `json:"output_tokens"`
			} `json:"total_token_usage"`
		} `json:"info"`
	} `json:"payload"`
}

// usageInSession returns the last total in a session. The file is the agent's, so
// nothing is taken for granted of it.
func usageInSession(root *os.Root, path string) (used events.Usage, err error) {
	f, err := root.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return used, err
	}
	defer f.Close()
	lines := bufio.NewReaderSize(io.LimitReader(f, maxSessionFile), maxSessionLine)
	for {
		line, cut, err := lines.ReadLine()
		for more := cut; more && err == nil; { // too long to be a count
			_, more, err = lines.ReadLine()
		}
		if errors.Is(err, io.EOF) {
			return used, nil
		}
		if err != nil {
			return used, err
		}
		if cut || !bytes.Contains(line, []byte(`"token_count"`)) {
			continue
		}
		var l sessionLine
		if events.DecodeRecord(line, &l) != nil || l.Payload.Type != "token_count" || l.Payload.Info == nil {
			continue
		}
		t := l.Payload.Info.Total
		used = events.Usage{
			InputTokens: max(t.Input-t.Cached-t.CacheWrite, 0), OutputTokens: t.Output,
			CacheReadTokens: t.Cached, CacheCreationTokens: t.CacheWrite,
		}
	}
}
