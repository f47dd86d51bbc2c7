package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// opKind is what a line of the server begins with.
type opKind string

const (
	opInfo opKind = "INFO"
	opMsg  opKind = "MSG" // with a header (HMSG) as well
	opPing opKind = "PING"
	opPong opKind = "PONG"
	opOK   opKind = "+OK"
	opErr  opKind = "-ERR"
)

// op is one thing that the server says.
type op struct {
	kind           opKind
	subject, reply string
	sid            int
	header         []byte
	data           []byte // of opMsg the payload; of opInfo and opErr the rest of the line
}

// noResponders reports the server's answer to a request without listeners.
func (o op) noResponders() bool {
	return len(o.data) == 0 && bytes.HasPrefix(o.header, []byte("NATS/1.0 503"))
}

// The bounds of a line and of what follows it. A server that says more is not
// ours.
const (
	maxLine    = 64 << 10
	maxPayload = 64 << 20
)

type reader struct{ r *bufio.Reader }

func newReader(r io.Reader) *reader { return &reader{bufio.NewReaderSize(r, 4<<10)} }

// next reads one op. Payloads are the caller's.
func (r *reader) next() (op, error) {
	line, err := r.line()
	if err != nil {
		return op{}, err
	}
	word, rest, _ := strings.Cut(line, " ")
	switch kind := opKind(strings.ToUpper(word)); kind {
	case opInfo, opErr:
		return op{kind: kind, data: []byte(strings.TrimSpace(rest))}, nil
	case opPing, opPong, opOK:
		return op{kind: kind}, nil
	case opMsg:
		return r.message(strings.Fields(rest), 1)
	case "HMSG":
		return r.message(strings.Fields(rest), 2)
	}
	return op{}, fmt.Errorf("the bus says %.40q", line)
}

// line reads up to the end of a line and leaves that away.
func (r *reader) line() (string, error) {
	var long []byte
	for {
		part, err := r.r.ReadSlice('\n')
		if err == nil {
			return strings.TrimRight(string(append(long, part...)), "\r\n"), nil
		}
		if err != bufio.ErrBufferFull {
			return "", err
		}
		if long = append(long, part...); len(long) > maxLine {
			return "", fmt.Errorf("a line of the bus is longer than %d bytes", maxLine)
		}
	}
}

// message reads what follows the line of a message, whose fields are subject, sid,
// perhaps a reply, and one or two sizes: with two, the first is of the header, the
// second of all.
func (r *reader) message(fields []string, sizes int) (op, error) {
	o := op{kind: opMsg}
	wrong := func() (op, error) {
		return op{}, fmt.Errorf("the bus announces a message with %.80q", fields)
	}
	switch len(fields) - sizes {
	case 2:
	case 3:
		o.reply = fields[2]
	default:
		return wrong()
	}
	o.subject = fields[0]
	var err error
	if o.sid, err = strconv.Atoi(fields[1]); err != nil {
		return wrong()
	}
	total, err := strconv.ParseUint(fields[len(fields)-1], 10, 31)
	if err != nil || total > maxPayload {
		return wrong()
	}
	var header uint64
	if sizes == 2 {
		if header, err = strconv.ParseUint(fields[len(fields)-2], 10, 31); err != nil || header > total {
			return wrong()
		}
	}
	body, err := r.bytes(int(total) + len("\r\n"))
	if err != nil {
		return op{}, err
	}
	if !bytes.HasSuffix(body, []byte("\r\n")) {
		return op{}, fmt.Errorf("a message of the bus on %.80q does not end where it said", o.subject)
	}
	o.header, o.data = body[:header:header], body[header:total:total]
	return o, nil
}

// bytes reads n bytes. Memory grows with what comes, not with what was announced.
func (r *reader) bytes(n int) ([]byte, error) {
	const step = 1 << 20
	b := make([]byte, 0, min(n, step))
	for len(b) < n {
		at := len(b)
		b = append(b, make([]byte, min(n-at, step))...)
		if _, err := io.ReadFull(r.r, b[at:]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// checkSubject refuses what would end the line that a subject is in.
func checkSubject(subject string) error {
	if subject == "" || strings.ContainsAny(subject, " \t\r\n\x00") {
		return fmt.Errorf("%q is no subject", subject)
	}
	return nil
}
