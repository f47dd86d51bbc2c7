// Command feed prints what happens to subagents, and misses nothing: it keeps the
// sequence of the last event that it printed in a file, and goes on behind it when
// it is started again.
//
//	go run ./examples/feed [-n COUNT] feed.position
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
)

func main() {
	count := flag.Int("n", 0, "leave after that many events (0: never)")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: feed [-n COUNT] FILE")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := follow(ctx, flag.Arg(0), *count); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "feed:", err)
		os.Exit(1)
	}
}

// errEnough ends the feed.
var errEnough = errors.New("enough")

// follow prints events until count of them are printed or ctx ends.
func follow(ctx context.Context, file string, count int) error {
	after, err := position(file)
	if err != nil {
		return err
	}
	c, err := client.Connect(ctx, client.Options{Name: "feed-example"})
	if err != nil {
		return err
	}
	defer c.Close()
	printed := 0
	for {
		after, err = c.FollowFeed(ctx, after, func(sequence uint64, e events.FeedEvent) error {
			fmt.Printf("%d %s %s %s %s\n", sequence, e.At.Format(time.RFC3339), e.SubagentID, e.State, e.Status)
			// What was done with the event is done before its sequence is kept: after a
			// crash in between it comes again.
			if err := keep(file, sequence); err != nil {
				return err
			}
			if printed++; printed == count {
				return errEnough
			}
			return nil
		})
		switch {
		case errors.Is(err, errEnough):
			return nil
		case errors.Is(err, client.ErrFeedGap):
			// A reader that shows state reads it anew here, with ListAll.
			fmt.Println("events are missing: they were too old to be kept")
		default:
			return err
		}
	}
}

// position is the sequence in the file; a file that is not there is the beginning.
func position(file string) (uint64, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
}

// keep replaces the file as a whole.
func keep(file string, sequence uint64) error {
	next := file + ".new"
	if err := os.WriteFile(next, []byte(strconv.FormatUint(sequence, 10)+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(next, file)
}
