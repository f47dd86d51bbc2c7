package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/hayward-dev/hayward/events"
)

// schemaDir is where the schemas are in the repository.
const schemaDir = "events/schemas"

// An endpoint is one event with the types of its request and its reply.
type endpoint struct {
	kind           events.Kind
	request, reply reflect.Type
	// smallest is the smallest body that is accepted: a member is required if the
	// body is refused without it.
	smallest string
}

const anID = "018f0000-0000-7000-8000-000000000000"

var endpoints = []endpoint{
	{events.KindSpawn, reflect.TypeFor[events.Spawn](), reflect.TypeFor[events.SpawnReply](), `{"parent_session_id":"s"}`},
	{events.KindQuery, reflect.TypeFor[events.Query](), reflect.TypeFor[events.QueryReply](), `{"ids":["` + anID + `"]}`},
	{events.KindCancel, reflect.TypeFor[events.Cancel](), reflect.TypeFor[events.CancelReply](), `{"target":{"ids":["` + anID + `"]}}`},
	{events.KindListActive, reflect.TypeFor[events.ListActive](), reflect.TypeFor[events.ListActiveReply](), `{}`},
	{events.KindCompletions, reflect.TypeFor[events.Completions](), reflect.TypeFor[events.CompletionsReply](), `{"parent_session_id":"s"}`},
	{events.KindOutstanding, reflect.TypeFor[events.Outstanding](), reflect.TypeFor[events.OutstandingReply](), `{"parent_session_id":"s","parent_prompt_id":"p"}`},
}

// schemas returns the schemas by their path in the repository.
func schemas(src *source) (map[string][]byte, error) {
	files := make(map[string][]byte)
	for _, e := range endpoints {
		request, err := describe(src, e.request, true)
		if err != nil {
			return nil, err
		}
		if request.Required, err = required(e); err != nil {
			return nil, err
		}
		reply, err := describe(src, e.reply, false)
		if err != nil {
			return nil, err
		}
		for part, s := range map[string]*jsonschema.Schema{"request": request, "reply": reply} {
			s.Title = fmt.Sprintf("%s %s", events.RequestSubject(e.kind), part)
			if err := encode(files, string(e.kind)+"."+part, s); err != nil {
				return nil, err
			}
		}
	}
	failure, err := describe(src, reflect.TypeFor[events.Error](), false)
	if err != nil {
		return nil, err
	}
	failure.Title = events.SubjectPrefix + " error"
	return files, encode(files, "error", failure)
}

func encode(files map[string][]byte, name string, s *jsonschema.Schema) error {
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode schema %s: %w", name, err)
	}
	files[schemaDir+"/"+name+".json"] = append(b, '\n')
	return nil
}

// required finds the required members of a request by leaving each out.
func required(e endpoint) ([]string, error) {
	if _, err := events.DecodeRequest(e.kind, []byte(e.smallest)); err != nil {
		return nil, fmt.Errorf("the smallest %s is refused: %w", e.kind, err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(e.smallest), &members); err != nil {
		return nil, err
	}
	var names []string
	for name := range members {
		rest := make(map[string]json.RawMessage)
		for k, v := range members {
			if k != name {
				rest[k] = v
			}
		}
		body, err := json.Marshal(rest)
		if err != nil {
			return nil, err
		}
		if _, refused := events.DecodeRequest(e.kind, body); refused == nil {
			return nil, fmt.Errorf("member %s of the smallest %s is not required", name, e.kind)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// foreign are the types whose JSON their Go kind does not tell.
var foreign = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
	reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
	reflect.TypeFor[json.RawMessage](): {Types: []string{"object", "boolean"}},
}

// describe derives the schema of t. A strict one refuses unknown members;
// others allow them, because replies only ever grow.
func describe(src *source, t reflect.Type, strict bool) (*jsonschema.Schema, error) {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: foreign})
	if err != nil {
		return nil, err
	}
	d := describer{src: src, strict: strict}
	d.visit(s, t)
	s.Description = src.prose(nil, src.typeOf[t.Name()].doc)
	return s, nil
}

type describer struct {
	src    *source
	strict bool
}

// visit adds to the schema s of type t what its Go type does not say.
func (d describer) visit(s *jsonschema.Schema, t reflect.Type) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, ok := foreign[t]; ok {
		return
	}
	switch t.Kind() {
	case reflect.String:
		s.Enum = d.src.values(t.Name())
	case reflect.Slice:
		s.Type, s.Types = "array", nil // an empty one is [], never null
		d.visit(s.Items, t.Elem())
	case reflect.Map:
		d.visit(s.AdditionalProperties, t.Elem())
	case reflect.Struct:
		d.visitStruct(s, t)
	}
}

func (d describer) visitStruct(s *jsonschema.Schema, t reflect.Type) {
	if !d.strict {
		s.AdditionalProperties = nil
	} else {
		s.Required = nil // a request's members have defaults; see required
	}
	for _, f := range reflect.VisibleFields(t) {
		member, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := s.Properties[member]
		if f.Anonymous || !f.IsExported() || p == nil {
			continue
		}
		d.visit(p, f.Type)
		if strings.Contains(options, "omit") && len(p.Types) == 2 && p.Types[0] == "null" {
			p.Type, p.Types = p.Types[1], nil // left out, never null
		}
		owner := d.src.typeOf[declarer(t, f).Name()]
		for _, field := range owner.fields {
			if field.name == f.Name {
				p.Description = d.src.prose(owner, field.doc)
			}
		}
		if d.strict {
			limit(p, owner.name+"."+f.Name)
		}
	}
}

// declarer returns the struct that declares field f of t: t or one embedded.
func declarer(t reflect.Type, f reflect.StructField) reflect.Type {
	for _, i := range f.Index[:len(f.Index)-1] {
		t = t.Field(i).Type
	}
	return t
}
