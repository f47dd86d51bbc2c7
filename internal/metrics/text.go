package metrics

import (
	"bytes"
	"io"
	"strconv"
	"strings"
)

// ContentType is that of what [Registry.Write] writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// writer gathers the text and writes it at once.
type writer struct {
	to  io.Writer
	buf bytes.Buffer
}

func (w *writer) flush() error {
	_, err := w.to.Write(w.buf.Bytes())
	return err
}

var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// head writes what a metric is.
func (w *writer) head(f *family) {
	w.buf.WriteString("# HELP " + f.name + " " + helpEscapes.Replace(f.help) + "\n# TYPE " + f.name + " " + string(f.kind) + "\n")
}

// sample writes one line.
func (w *writer) sample(name string, labels, values []string, v float64) {
	w.buf.WriteString(name)
	for i, label := range labels {
		w.buf.WriteByte("{,"[min(i, 1)])
		w.buf.WriteString(label + `="` + labelEscapes.Replace(strings.ToValidUTF8(values[i], "\uFFFD")) + `"`)
	}
	if len(labels) > 0 {
		w.buf.WriteByte('}')
	}
	w.buf.WriteByte(' ')
	w.buf.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
	w.buf.WriteByte('\n')
}
