package daemon

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/agents"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/gateway"
	"github.com/hayward-dev/hayward/internal/durable"
	"github.com/hayward-dev/hayward/internal/pricing"
	"github.com/hayward-dev/hayward/internal/rundir"
	"github.com/hayward-dev/hayward/internal/trust"
	"github.com/hayward-dev/hayward/spawner"
)

// openGateway starts the gateway on a connection of its own: what agents send must
// not hold up the coordinator's.
func (d *daemon) openGateway(root rundir.Root) error {
	secret, err := gatewaySecret(d.opts.Paths.GatewaySecret())
	if err != nil {
		return err
	}
	nc, err := d.bus.Conn("gateway")
	if err != nil {
		return fmt.Errorf("connect to the own bus: %w", err)
	}
	d.onClose(nc.Close)
	d.gateway, err = gateway.Start(gateway.Options{
		Bus: nc, Secret: secret, Upstreams: d.opts.Upstreams, MaxTokens: d.opts.MaxTokens,
		MaxTreeTokens: d.opts.MaxTreeTokens, MaxPromptTokens: d.opts.MaxPromptTokens, Lineage: d.lineage,
		Ledger: ledger{root}, Getenv: d.opts.Getenv, Log: d.log.Named("gateway"),
		MaxCostUSD: d.opts.MaxCostUSD, Prices: pricing.Builtin().With(d.opts.Prices),
	})
	if err != nil {
		return err
	}
	d.onClose(func() {
		if err := d.gateway.Close(); err != nil {
			d.log.Warn("gateway not closed in order", zap.Error(err))
		}
	})
	return nil
}

// secretSize is that of the gateway's secret, in bytes.
const secretSize = 32

// gatewaySecret reads the secret, or makes it.
func gatewaySecret(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		secret := make([]byte, secretSize)
		rand.Read(secret) // never fails
		if err := durable.WriteFile(path, secret); err != nil {
			return nil, events.Errorf(events.CodeStorageFailed, events.LayerCoordinator, "write the gateway's secret: %w", err)
		}
		return secret, nil
	}
	if err != nil {
		return nil, events.Errorf(events.CodeStorageFailed, events.LayerCoordinator, "read the gateway's secret: %w", err)
	}
	defer f.Close()
	secret := make([]byte, secretSize+1)
	n, err := f.Read(secret)
	if n != secretSize {
		return nil, events.Errorf(events.CodeStoreDamaged, events.LayerCoordinator, "%s is not the gateway's secret: %d bytes, %v", path, n, err).
			WithRemedy("remove it; agents that go on from an earlier daemon then lose their model")
	}
	return secret[:n], nil
}

// ledger keeps what the model calls of a subagent used in its run directory.
type ledger struct{ root rundir.Root }

// Append implements [gateway.Ledger].
func (l ledger) Append(id string, c gateway.Call) error {
	line, err := events.MarshalRecord(c)
	if err != nil {
		return err
	}
	dir, err := l.root.Open(id)
	if err != nil {
		return err
	}
	defer dir.Close()
	f, err := dir.OpenAppend(rundir.UsageFile)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// maxUsageLine bounds a line of the usage file.
const maxUsageLine = 64 << 10

// Calls implements [gateway.Ledger]. A torn last line is left out.
func (l ledger) Calls(id string) ([]gateway.Call, error) {
	dir, err := l.root.Open(id)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, err := dir.OpenRead(rundir.UsageFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var calls []gateway.Call
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxUsageLine)
	for lines.Scan() {
		var c gateway.Call
		if err := events.DecodeRecord(bytes.TrimSpace(lines.Bytes()), &c); err == nil {
			calls = append(calls, c)
		}
	}
	return calls, lines.Err()
}

// agents resolves agent types. home is the user's.
func (d *daemon) agents(home string) spawner.Agents {
	p := d.opts.Paths
	runner := d.opts.AgentRunner
	if runner == "" {
		runner = events.AgentClaude
	}
	return spawner.Agents{
		Runner: runner,
		Places: func(dir string) (agents.Places, error) {
			return agents.PlacesOf(dir, p.Config, home, trust.Open(p.Trusted()))
		},
		HasKey: d.hasKey,
	}
}

// secrets are the paths of the gateway's keys. Under a profile that reads
// everything they would be within an agent's reach.
func (d *daemon) secrets() []string {
	var paths []string
	for _, u := range d.opts.Upstreams {
		if u.KeyFile != "" {
			paths = append(paths, u.KeyFile)
		}
	}
	if d.opts.Getenv != nil {
		if dir := d.opts.Getenv("CREDENTIALS_DIRECTORY"); dir != "" {
			paths = append(paths, dir)
		}
	}
	return paths
}

// apis are the model APIs of the agents.
var apis = map[string]string{events.AgentClaude: "anthropic", events.AgentCodex: "openai"}

func (d *daemon) hasKey(runner string) error {
	for _, u := range d.opts.Upstreams {
		if u.Name == apis[runner] {
			getenv := d.opts.Getenv
			if getenv == nil {
				getenv = func(string) string { return "" }
			}
			_, err := u.Key(getenv)
			return err
		}
	}
	return fmt.Errorf("%w: the gateway has no model API for %s", gateway.ErrNoKey, runner)
}
