package child

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/bus/socket"
)

// door lets programs inside ask the coordinator in the subagent's name. It carries
// their connections to the bus as they are, but for the first line: the log-in is
// written by the supervisor, as a user that may send requests and nothing else. So
// no program inside has a credential that it could leave anywhere.
type door struct {
	id, token string
	bus       string // the path of the bus's socket
	listener  *net.UnixListener
	wg        sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]struct{} // both ends of each; guarded by mu
	inside int                   // guarded by mu
	closed bool                  // guarded by mu
}

const (
	// logInBound is how long a program may take to log in.
	logInBound = 10 * time.Second
	// busBound is how long the bus may take to accept a connection.
	busBound = 5 * time.Second
	// maxLogIn bounds the first line of a program.
	maxLogIn = 32 << 10
	// maxSocketPath is how long the path in a socket address may be.
	maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1
)

// openDoor listens at path and carries what comes there to the bus's socket. What is
// at path already is not ours.
func openDoor(path, bus, id, token string) (*door, error) {
	at := path
	if len(at) > maxSocketPath {
		dir, name := filepath.Split(at)
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("open the directory of %s: %w", path, err)
		}
		defer unix.Close(fd)
		at = socket.InDir(fd, name)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("open the door at %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false) // it goes with its directory, and at may be a descriptor
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("close the door at %s to others: %w", path, err), l.Close())
	}
	d := &door{id: id, token: token, bus: bus, listener: l, conns: make(map[net.Conn]struct{})}
	d.wg.Go(d.accept)
	return d, nil
}

func (d *door) accept() {
	for {
		conn, err := d.listener.AcceptUnix()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of descriptors, for example: the program tries again.
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if !d.enter(conn) {
			conn.Close()
			continue
		}
		d.wg.Go(func() { d.serve(conn) })
	}
}

func (d *door) enter(conn net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.inside >= socket.MaxInside {
		return false
	}
	d.inside++
	d.conns[conn] = struct{}{}
	return true
}

func (d *door) leave(conn net.Conn) {
	conn.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inside--
	delete(d.conns, conn)
}

// serve joins a program to the bus until either side ends. While the coordinator is
// away it ends at once, and the program tries again.
func (d *door) serve(program net.Conn) {
	defer d.leave(program)
	bus, err := socket.Dial(d.bus, busBound)
	if err != nil {
		return
	}
	d.mu.Lock()
	closed := d.closed
	if !closed {
		d.conns[bus] = struct{}{}
	}
	d.mu.Unlock()
	defer func() {
		bus.Close()
		d.mu.Lock()
		delete(d.conns, bus)
		d.mu.Unlock()
	}()
	if closed {
		return
	}
	// The bus speaks first; then both ends are open until one closes.
	var down sync.WaitGroup
	down.Go(func() {
		_, _ = io.Copy(program, bus) // whatever ends it ends the connection
		program.Close()
	})
	if d.logIn(program, bus) == nil {
		_, _ = io.Copy(bus, program)
	}
	bus.Close()
	down.Wait()
}

// logIn passes the first line of a program on, with the supervisor's word for who it
// is, and what came behind it.
func (d *door) logIn(program net.Conn, bus io.Writer) error {
	if err := program.SetReadDeadline(time.Now().Add(logInBound)); err != nil {
		return err
	}
	in := bufio.NewReaderSize(program, maxLogIn)
	line, err := in.ReadSlice('\n')
	if err != nil {
		return err // of a program that is gone, too slow, or none of ours
	}
	line, err = d.vouch(line)
	if err != nil {
		return err
	}
	if err := program.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	rest, err := in.Peek(in.Buffered())
	if err != nil {
		return err
	}
	_, err = bus.Write(append(line, rest...))
	return err
}

var errNoLogIn = errors.New("not a log-in")

// connectOptions are the members of a log-in that pass: those that say how the program
// speaks, by their exact names. The server matches names without regard to case, folds
// letters beyond ASCII too, and lets the last of two members win; so a list of what
// must not pass could not be complete.
type connectOptions struct {
	Verbose      *bool   `json:"verbose,omitzero"`
	Pedantic     *bool   `json:"pedantic,omitzero"`
	Echo         *bool   `json:"echo,omitzero"`
	Headers      *bool   `json:"headers,omitzero"`
	NoResponders *bool   `json:"no_responders,omitzero"`
	TLSRequired  *bool   `json:"tls_required,omitzero"`
	Name         *string `json:"name,omitzero"`
	Lang         *string `json:"lang,omitzero"`
	Version      *string `json:"version,omitzero"`
	Protocol     *int    `json:"protocol,omitzero"`

	// Who it is: never what the program says.
	User string `json:"user"`
	Pass string `json:"pass"`
}

// vouch writes a log-in anew: how the program speaks, with the supervisor's word for
// who it is.
func (d *door) vouch(line []byte) ([]byte, error) {
	body, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("CONNECT "))
	if !ok {
		return nil, errNoLogIn
	}
	var options *connectOptions // null is none
	if err := events.DecodeRecord(body, &options); err != nil || options == nil {
		return nil, errors.Join(errNoLogIn, err)
	}
	options.User, options.Pass = events.RPCUser(d.id), d.token
	body, err := events.MarshalRecord(options)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte("CONNECT "), body, []byte("\r\n")), nil
}

// close ends every connection and waits for what serves them.
func (d *door) close() {
	d.listener.Close()
	d.mu.Lock()
	d.closed = true
	for conn := range d.conns {
		conn.Close()
	}
	d.mu.Unlock()
	d.wg.Wait()
}
