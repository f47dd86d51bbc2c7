package main

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// contract renders docs/contract.md: everything of package events that other
// programs may rely on.
func contract(src *source) []byte {
	w := &markdown{src: src, written: map[string]bool{}}
	w.line("# The wire contract")
	w.line("")
	w.line("Generated from package `events` by `make generate`; do not edit.")
	w.line("")
	w.line("Version %s. What is named here is stable: members, values and codes may be added, none is", events.ServiceVersion)
	w.line("renamed, dropped or retyped within a major version. Everything else in this repository is internal.")
	w.line("The JSON Schemas of the requests and replies are in [`events/schemas`](../events/schemas); a running")
	w.line("coordinator carries them in the metadata of its endpoints (`nats micro info hayward`).")
	w.line("")
	w.packageDoc()
	w.subjects()
	w.line("## Events")
	w.line("")
	for _, e := range endpoints {
		w.line("### %s", e.kind)
		w.line("")
		w.line("Subject `%s`. Schemas: [request](../%s/%s.request.json), [reply](../%s/%s.reply.json).", events.RequestSubject(e.kind), schemaDir, e.kind, schemaDir, e.kind)
		w.line("")
		w.structure(src.typeOf[e.request.Name()], "####")
		w.structure(src.typeOf[e.reply.Name()], "####")
	}
	w.rest()
	w.enums()
	w.codes()
	w.sizes()
	return w.Bytes()
}

type markdown struct {
	bytes.Buffer
	src     *source
	written map[string]bool
}

func (w *markdown) line(format string, args ...any) {
	fmt.Fprintf(w, format, args...)
	w.WriteByte('\n')
}

func (w *markdown) row(cells ...string) {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	w.line("| %s |", strings.Join(cells, " | "))
}

// prose is a comment as running text of Markdown.
func (w *markdown) prose(t *typeSource, comment string) string {
	return strings.ReplaceAll(w.src.prose(t, comment), "<", "&lt;")
}

func (w *markdown) header(cells ...string) {
	w.row(cells...)
	w.line("|%s", strings.Repeat(" --- |", len(cells)))
}

// packageDoc renders the package comment: its sections as they are.
func (w *markdown) packageDoc() {
	for _, l := range strings.Split(strings.TrimSpace(w.src.doc), "\n") {
		if title, ok := strings.CutPrefix(l, "# "); ok {
			l = "## " + title
		}
		w.line("%s", link.ReplaceAllString(l, "`$1`"))
	}
	w.line("")
}

// subjects lists every subject there is, made by the functions that make them.
func (w *markdown) subjects() {
	const id = "<id>"
	w.line("## Subjects")
	w.line("")
	w.line("`<id>` is a subagent's id. A child may use its own `%s` and `%s.>` only.", events.ChildPermission(id), events.ChildInbox(id))
	w.line("")
	w.header("subject", "who sends what")
	for _, k := range events.Kinds {
		w.row(code(events.RequestSubject(k)), "clients: event "+string(k))
	}
	for _, c := range w.src.consts {
		switch {
		case c.file == "files.go" && strings.HasPrefix(c.name, "Files"):
			w.row(code(events.FilesSubject(c.value)), "clients, service "+events.FilesServiceName+": "+w.prose(nil, c.doc))
		case c.file == "files.go" && strings.HasPrefix(c.name, "Admin"):
			w.row(code(events.AdminSubject(c.value)), "clients, service "+events.AdminServiceName+": "+w.prose(nil, c.doc))
		}
	}
	for _, c := range w.src.typeOf["ChildReport"].values {
		w.row(code(events.ChildSubject(id, events.ChildReport(c.value))), "the child: "+w.prose(nil, c.doc))
	}
	w.row(code(events.ControlSubject(id)), "the coordinator, to the child: Control, answered with ControlReply")
	for _, c := range w.src.typeOf["State"].values {
		w.row(code(events.FeedSubject(id, events.State(c.value))), "the coordinator: FeedEvent")
	}
	w.row(code(events.AckPrefix+".<token>"), "clients: a reply was handed over")
	w.line("")
	w.header("name", "value", "")
	for _, c := range w.src.consts {
		if c.file == "subjects.go" && c.typ == "" {
			w.row(c.name, code(c.value), w.prose(nil, c.doc))
		}
	}
	w.line("")
}

// structure renders one struct as a table of its members.
func (w *markdown) structure(t *typeSource, level string) {
	if w.written[t.name] {
		return
	}
	w.written[t.name] = true
	w.line("%s %s", level, t.name)
	w.line("")
	w.line("%s", w.prose(nil, t.doc))
	w.line("")
	if len(t.fields) == 0 {
		w.line("No members.")
		w.line("")
		return
	}
	w.header("member", "type", "")
	for _, f := range t.fields {
		switch {
		case f.embedded:
			w.row("(all of "+w.anchor(f.goType)+")", "", w.prose(t, f.doc))
		case f.member == "":
			w.row(f.name, w.typeName(f.goType), w.prose(t, f.doc))
		default:
			w.row(code(f.member), w.typeName(f.goType), w.prose(t, f.doc))
		}
	}
	w.line("")
}

// rest renders the structs that are no request or reply of an event.
func (w *markdown) rest() {
	w.line("## Other types")
	w.line("")
	w.line("Those with Go names as members stay inside the coordinator's process.")
	w.line("")
	for _, t := range w.src.types {
		if t.fields != nil || strings.HasSuffix(t.name, "Request") {
			w.structure(t, "###")
		}
	}
}

func (w *markdown) enums() {
	w.line("## Enumerations")
	w.line("")
	for _, t := range w.src.types {
		if len(t.values) == 0 || t.name == "Code" {
			continue
		}
		w.line("### %s", t.name)
		w.line("")
		w.line("%s", w.prose(nil, t.doc))
		w.line("")
		w.header("value", "")
		for _, c := range t.values {
			w.row(code(c.value), w.prose(nil, c.doc))
		}
		w.line("")
	}
}

func (w *markdown) codes() {
	w.line("## Error codes")
	w.line("")
	w.line("In member `code` of an error, and in the service-error headers of a reply.")
	w.line("")
	w.header("code", "")
	for _, c := range w.src.typeOf["Code"].values {
		w.row(code(c.value), w.prose(nil, c.doc))
	}
	w.line("")
}

// sizes lists the numbers: everything that is constant and no name.
func (w *markdown) sizes() {
	w.line("## Sizes")
	w.line("")
	w.line("Bytes, counts, or milliseconds where the name ends in MS.")
	w.line("")
	w.header("name", "value", "")
	for _, c := range w.src.consts {
		if c.typ == "" && strings.Trim(c.value, "0123456789") == "" {
			w.row(c.name, c.value, w.prose(nil, c.doc))
		}
	}
}

// typeName says in JSON's terms what a Go type is.
func (w *markdown) typeName(goType string) string {
	switch elem, isList := strings.CutPrefix(goType, "[]"); {
	case goType == "[]byte":
		return "base64"
	case isList:
		return "array of " + w.typeName(elem)
	}
	if elem, ok := strings.CutPrefix(goType, "*"); ok {
		return w.typeName(elem)
	}
	if elem, ok := strings.CutPrefix(goType, "map[string]"); ok {
		return "object of " + w.typeName(elem)
	}
	switch goType {
	case "time.Time":
		return "time"
	case "json.RawMessage":
		return "JSON"
	case reflect.Bool.String():
		return "boolean"
	case "int", "int64", "uint64":
		return "integer"
	}
	return w.anchor(goType)
}

// anchor links to the section of a type of ours.
func (w *markdown) anchor(name string) string {
	if t := w.src.typeOf[name]; t != nil && (len(t.fields) > 0 || len(t.values) > 0) {
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	}
	return name
}

func code(s string) string { return "`" + s + "`" }
