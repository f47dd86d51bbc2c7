// Command census counts, from the process table alone, the supervisors of one
// state directory and what runs below them. It shares nothing with what it counts
// but the name of the directory, so its figures can be held against those of a
// load.
//
// It looks again and again until its stdin ends, then once more, and prints a
// [Count]. The first line that it prints says that it has begun.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"
)

// restsFor is how many times as long as a look takes nothing is done after it, and
// maxRest the most: a look that had to wait for the processor says nothing of what
// the next one takes, and what lives meanwhile is not seen.
const (
	restsFor = 3
	maxRest  = 40 * time.Millisecond
)

func main() {
	state := flag.String("state", "", "the state directory whose supervisors are counted")
	every := flag.Duration("every", 4*time.Millisecond, "time between two looks")
	flag.Parse()
	if err := run(*state, *every); err != nil {
		fmt.Fprintln(os.Stderr, "census:", err)
		os.Exit(1)
	}
}

func run(state string, every time.Duration) error {
	if state == "" {
		return fmt.Errorf("-state is missing")
	}
	c, err := newCensus(state)
	if err != nil {
		return err
	}
	// Looks that come late miss what lives for a moment. Without the right to come
	// early it looks as often as it is let.
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -10)
	debug.SetGCPercent(400)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is the message
		cancel()
	}()
	if err := c.look(); err != nil {
		return err
	}
	fmt.Println("counting")
	pause := time.NewTimer(every)
	defer pause.Stop()
	for ctx.Err() == nil {
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		began := time.Now()
		if err := c.look(); err != nil {
			return err
		}
		// What is counted needs the processor as well.
		pause.Reset(max(every, min(maxRest, restsFor*time.Since(began))))
	}
	return json.NewEncoder(os.Stdout).Encode(c.count())
}
