package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
)

const (
	// settle is how long changes are gathered before the list is read anew: many
	// subagents ending together are one picture.
	settle = 100 * time.Millisecond
	// refresh is how often a terminal gets new elapsed times and last lines.
	refresh = time.Second
)

// watch shows the list, and again at each change, until ctx ends.
func (a *app) watch(ctx context.Context, cmd *cobra.Command, c *connection, f psFlags) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	feed, err := c.Feed(ctx, client.FeedFilter{Session: f.session})
	if err != nil {
		return err
	}
	changes, feedErr := make(chan struct{}, 1), make(chan error, 1)
	var following sync.WaitGroup
	following.Go(func() { feedErr <- follow(ctx, feed, changes) })
	err = a.redraw(ctx, c, f, changes, feedErr)
	cancel()
	following.Wait()
	return err
}

// follow puts a token into changes at each event of the feed; one that waits
// stands for all since.
func follow(ctx context.Context, feed *client.Feed, changes chan<- struct{}) error {
	for {
		if _, err := feed.Next(ctx); err != nil && !errors.Is(err, client.ErrFeedGap) {
			return errors.Join(err, feed.Close())
		}
		select {
		case changes <- struct{}{}:
		default:
		}
	}
}

func (a *app) redraw(ctx context.Context, c *connection, f psFlags, changes <-chan struct{}, feedErr <-chan error) error {
	_, tty := terminal(a.stdout)
	inPlace := tty && !a.json && !f.quiet
	var tick <-chan time.Time
	if inPlace {
		t := time.NewTicker(refresh)
		defer t.Stop()
		tick = t.C
	}
	var shown []byte
	for {
		list, err := c.ListAll(ctx, f.request())
		if err != nil {
			return err
		}
		if now := fingerprint(list); inPlace || !bytes.Equal(now, shown) {
			first := shown == nil
			shown = now
			if err := a.showPicture(list, f, inPlace, first); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-feedErr:
			return err
		case <-tick:
		case <-changes:
			if err := sleep(ctx, settle); err != nil {
				return err
			}
		}
	}
}

// fingerprint is equal for lists that differ only in the time that has passed.
func fingerprint(list events.ListActiveReply) []byte {
	var b bytes.Buffer
	for _, s := range list.Subagents {
		fmt.Fprintf(&b, "%s %d %s %s %s\n", s.SubagentID, s.Run, s.State, s.Status, s.Reason)
	}
	b.WriteByte('.') // an empty list is a picture too
	return b.Bytes()
}

func (a *app) showPicture(list events.ListActiveReply, f psFlags, inPlace, first bool) error {
	if !inPlace {
		if !first && !a.json {
			if err := a.write([]byte("\n")); err != nil {
				return err
			}
		}
		return a.showList(list, f)
	}
	width, _ := terminal(a.stdout)
	text := fit(listTable(list, f).render(width, a.colored()), height(a.stdout))
	// Home, each line cleared to its end, and what is below cleared: no flicker.
	text = "\x1b[H" + strings.ReplaceAll(text, "\n", "\x1b[K\n") + "\x1b[J"
	if first {
		text = "\x1b[2J" + text
	}
	return a.write([]byte(text))
}

// height is that of a terminal, or 0.
func height(w any) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	_, rows, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return rows
}

// fit keeps as many lines as a terminal shows, and says how many are left out.
func fit(text string, rows int) string {
	lines := strings.SplitAfter(text, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	room := rows - 1 // the cursor's line
	if rows <= 0 || len(lines) <= room || room < 2 {
		return text
	}
	return strings.Join(lines[:room-1], "") + fmt.Sprintf("… and %d more\n", len(lines)-room+1)
}
