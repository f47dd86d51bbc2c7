package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
)

// Connect finds the coordinator as the command line does.
func ExampleConnect() {
	defer exampleCoordinator()()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	c, err := client.Connect(ctx, client.Options{Name: "my-parent"})
	if errors.Is(err, client.ErrUnreachable) {
		log.Fatal("start one with: hayward serve")
	}
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	reply, err := c.Spawn(ctx, events.Spawn{ParentSessionID: "build", Command: []string{"echo", "hello"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(reply.Value.Output.Text)
	// The end counts as read once this is said.
	if err := reply.Ack(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: hello
}

// Several in the background, then wait for all of them.
func ExampleClient_Wait() {
	c, ctx, done := exampleClient()
	defer done()

	var ids []string
	for _, target := range []string{"lint", "docs"} {
		reply, err := c.Spawn(ctx, events.Spawn{
			ParentSessionID: "build", Name: target, Command: []string{"make", target}, RunInBackground: true,
		})
		if err != nil {
			log.Fatal(err)
		}
		ids = append(ids, reply.Value.SubagentID)
	}
	reply, err := c.Wait(ctx, events.Query{IDs: ids}, 10*time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range reply.Value.Snapshots {
		fmt.Println(s.Name, s.Status)
	}
	// Output:
	// lint completed
	// docs completed
}

// Each end is handed over once. One at which the loop is left comes back.
func ExampleClient_Unread() {
	c, ctx, done := exampleClient()
	defer done()
	ended(ctx, c, "lint", "docs")

	for end, err := range c.Unread(ctx, client.UnreadOptions{Session: "build"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(end.Name, end.Status)
	}
	// Output:
	// lint completed
	// docs completed
}

// HandleUnread with Follow is the loop of a parent that lives on.
func ExampleClient_HandleUnread() {
	c, ctx, done := exampleClient()
	defer done()
	ended(ctx, c, "lint", "docs")

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := 0
	err := c.HandleUnread(ctx, client.UnreadOptions{Session: "build", Follow: true},
		func(_ context.Context, end events.Completion) error {
			fmt.Println(end.Name, end.Status)
			if seen++; seen == 2 {
				cancel() // this parent has seen enough
			}
			return nil
		})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// lint completed
	// docs completed
	// true
}

// What changes, as it happens. After a gap, read the state anew.
func ExampleClient_Watch() {
	c, ctx, done := exampleClient()
	defer done()

	spawned := false
	feed, err := c.Feed(ctx, client.FeedFilter{Session: "build"})
	if err != nil {
		log.Fatal(err)
	}
	defer feed.Close()
	ended(ctx, c, "lint")
	for change, err := range feed.All(ctx) {
		switch {
		case errors.Is(err, client.ErrFeedGap):
			continue
		case err != nil:
			log.Fatal(err)
		}
		spawned = spawned || change.State == events.StateQueued
		if change.State == events.StateCompleted {
			fmt.Println(spawned, change.Status)
			break
		}
	}
	// Output: true completed
}

// What a subagent did, item by item, until it has ended.
func ExampleClient_Items() {
	c, ctx, done := exampleClient()
	defer done()
	ended(ctx, c, "lint")

	for item, err := range c.Items(ctx, events.FileRequest{ID: "lint", Follow: true}) {
		if err != nil {
			log.Fatal(err)
		}
		switch item.Kind {
		case events.ItemCommand:
			fmt.Println("ran", item.Argv)
		case events.ItemOutput:
			fmt.Println(item.Stream, item.Text)
		}
	}
	// Output:
	// ran [make lint]
	// stdout done
}

// A command in the foreground with streams of its own.
func ExampleClient_Start() {
	c, ctx, done := exampleClient()
	defer done()

	running, err := c.Start(ctx, events.Spawn{ParentSessionID: "build", Command: []string{"echo", "hello"}},
		client.Streams{Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		log.Fatal(err)
	}
	reply, err := running.Wait()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(*reply.Value.ExitCode)
	// Output:
	// hello
	// 0
}

// Refusals are typed: compare the code, or read the whole of it.
func ExampleClient_Query() {
	c, ctx, done := exampleClient()
	defer done()

	_, err := c.Query(ctx, events.Query{IDs: []string{"not an id"}})
	fmt.Println(errors.Is(err, client.ErrInvalidRequest))
	fmt.Println(events.AsError(err).Code, events.AsError(err).Layer)
	// Output:
	// false
	// invalid_id gate
}
