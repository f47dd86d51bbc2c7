package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// step is one request of the agent.
type step struct {
	Method, Path string
	// Body is repeated Times times, 1 when it is 0.
	Body  string
	Times int
	Key   string
	// Slow reads the answer in pieces with pauses; Leave goes away after the first
	// line of the answer.
	Slow, Leave bool
	// LeaveAt goes away once somebody opens the pipe of that name to write, whatever has
	// come.
	LeaveAt string
	// Stall sends the body and never its end.
	Stall bool
	// Until repeats the request while the status is another.
	Until int
}

// told is what the agent prints for a step, one line each.
type told struct {
	Status     int
	RetryAfter string
	Body       string
	Bytes      int
	Err        string
}

// agent runs the steps against the relay and prints what came of them. What
// streams is printed as it comes, too.
func agent(script string) int {
	var steps []step
	if err := json.Unmarshal([]byte(script), &steps); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	client := &http.Client{Timeout: time.Minute}
	for _, s := range steps {
		t := s.run(client)
		for s.Until != 0 && t.Status != s.Until {
			time.Sleep(50 * time.Millisecond)
			t = s.run(client)
		}
		line, err := json.Marshal(t)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		fmt.Println("told " + string(line))
	}
	return 0
}

// stalled is a reader that has nothing until ctx ends.
type stalled struct{ ctx context.Context }

func (s stalled) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func (s step) run(client *http.Client) (t told) {
	fail := func(err error) told {
		t.Err = err.Error()
		return t
	}
	body := bytes.Repeat([]byte(s.Body), max(s.Times, 1))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if s.LeaveAt != "" {
		go func() {
			defer cancel()
			f, err := os.Open(s.LeaveAt)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			f.Close()
		}()
	}
	var from io.Reader = bytes.NewReader(body)
	if s.Stall {
		from = io.MultiReader(from, stalled{ctx})
	}
	r, err := http.NewRequestWithContext(ctx, s.Method, os.Getenv("RELAY")+s.Path, from)
	if err != nil {
		return fail(err)
	}
	r.Header.Set("X-Api-Key", s.Key)
	r.Header.Set("Authorization", "Bearer "+s.Key)
	answer, err := client.Do(r)
	if err != nil {
		return fail(err)
	}
	defer answer.Body.Close()
	t.Status, t.RetryAfter = answer.StatusCode, answer.Header.Get("Retry-After")
	lines := bufio.NewReader(answer.Body)
	var all bytes.Buffer
	for {
		line, err := lines.ReadBytes('\n')
		all.Write(line)
		if all.Len() < 4096 {
			fmt.Printf("line %s\n", bytes.TrimRight(line, "\r\n"))
		}
		if s.Slow {
			time.Sleep(time.Millisecond)
		}
		if err == io.EOF || s.Leave && len(line) > 0 {
			break
		}
		if err != nil {
			return fail(err)
		}
	}
	t.Bytes = all.Len()
	t.Body = string(all.Bytes()[:min(all.Len(), 4096)])
	return t
}
