package client_test

import (
	"context"
	"log"
	"os"
	"strings"
	"time"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/fakeservice"
)

// exampleCoordinator makes a coordinator the one of the environment. It pretends
// to run commands: echo echoes, everything else is soon done.
func exampleCoordinator() (stop func()) {
	dir, err := os.MkdirTemp("", "h")
	if err != nil {
		log.Fatal(err)
	}
	s, err := fakeservice.Start(dir)
	if err != nil {
		log.Fatal(err)
	}
	fakeservice.NewCoordinator(s, func(c *fakeservice.Coordinator) { c.Script = pretend })
	before, was := os.LookupEnv("HAYWARD_RUNTIME_DIR")
	if err := os.Setenv("HAYWARD_RUNTIME_DIR", dir); err != nil {
		log.Fatal(err)
	}
	return func() {
		s.Close()
		_ = os.Unsetenv("HAYWARD_RUNTIME_DIR") // it can be set, so it can be unset
		if was {
			_ = os.Setenv("HAYWARD_RUNTIME_DIR", before)
		}
		if err := os.RemoveAll(dir); err != nil {
			log.Fatal(err)
		}
	}
}

func pretend(a *fakeservice.Agent) {
	a.Activate()
	text := "done\n"
	if a.Spawn.Command[0] == "echo" {
		text = strings.Join(a.Spawn.Command[1:], " ") + "\n"
	}
	a.Write("stdout", text)
	for _, item := range []events.Item{
		{Seq: 1, Kind: events.ItemCommand, Argv: a.Spawn.Command},
		{Seq: 2, Kind: events.ItemOutput, Stream: "stdout", Text: strings.TrimSpace(text)},
	} {
		line, err := events.Marshal(item)
		if err != nil {
			log.Fatal(err)
		}
		a.Write("transcript", string(line)+"\n")
	}
	a.Exit(0)
}

// exampleClient is connected to such a coordinator.
func exampleClient() (c *client.Client, ctx context.Context, done func()) {
	stop := exampleCoordinator()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	c, err := client.Connect(ctx, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return c, ctx, func() {
		if err := c.Close(); err != nil {
			log.Fatal(err)
		}
		cancel()
		stop()
	}
}

// ended runs commands in the background, one after the other.
func ended(ctx context.Context, c *client.Client, names ...string) {
	for _, name := range names {
		_, err := c.Spawn(ctx, events.Spawn{ParentSessionID: "build", Name: name, Command: []string{"make", name}, RunInBackground: true})
		if err != nil {
			log.Fatal(err)
		}
		if _, err := c.Wait(ctx, events.Query{IDs: []string{name}}, 0); err != nil {
			log.Fatal(err)
		}
	}
}
