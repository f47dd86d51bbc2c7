package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// source is package events as its authors wrote it, in the order of its files.
type source struct {
	doc    string
	types  []*typeSource
	consts []*constSource

	typeOf  map[string]*typeSource
	constOf map[string]*constSource
}

// typeSource is one exported type: a struct with fields, or a string type with
// values.
type typeSource struct {
	name, doc string
	fields    []fieldSource
	values    []*constSource
}

// fieldSource is one exported field of a struct.
type fieldSource struct {
	name, goType, doc string
	// member is its name in JSON, empty for an embedded struct and for structs
	// that do not travel.
	member             string
	embedded, optional bool
}

// constSource is one exported constant.
type constSource struct {
	name, typ, value, doc, file string
}

// readSource parses the package in dir and evaluates its constants. Its imports
// are not resolved: no constant depends on them.
func readSource(dir string) (*source, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s holds no Go files", dir)
	}
	checked := types.Config{IgnoreFuncBodies: true, FakeImportC: true, Error: func(error) {}, Importer: noImports{}}
	pkg, _ := checked.Check("events", fset, files, nil) // what is unknown has no value, see constant

	s := &source{typeOf: map[string]*typeSource{}, constOf: map[string]*constSource{}}
	for _, f := range files {
		if f.Doc != nil {
			s.doc = f.Doc.Text()
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			if err := s.add(g, pkg, filepath.Base(path(fset, f))); err != nil {
				return nil, err
			}
		}
	}
	for _, c := range s.consts {
		if t := s.typeOf[c.typ]; t != nil {
			t.values = append(t.values, c)
		}
	}
	return s, nil
}

func path(fset *token.FileSet, f *ast.File) string { return fset.Position(f.Package).Filename }

// add takes the types and constants of one declaration.
func (s *source) add(g *ast.GenDecl, pkg *types.Package, file string) error {
	group := ""
	if !g.Lparen.IsValid() {
		group = text(g.Doc) // the comment of a declaration without parentheses
	}
	for _, spec := range g.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.addType(spec, g)
		case *ast.ValueSpec:
			if g.Tok != token.CONST {
				continue
			}
			if own := text(spec.Doc, spec.Comment); own != "" {
				group = own
			}
			if err := s.addConsts(spec, group, pkg, file); err != nil {
				return err
			}
		}
	}
	return nil
}

// noImports makes every import unknown.
type noImports struct{}

func (noImports) Import(path string) (*types.Package, error) {
	return nil, fmt.Errorf("import %s is not resolved", path)
}

func (s *source) addType(spec *ast.TypeSpec, g *ast.GenDecl) {
	if !spec.Name.IsExported() {
		return
	}
	t := &typeSource{name: spec.Name.Name, doc: text(spec.Doc, g.Doc)}
	if st, ok := spec.Type.(*ast.StructType); ok {
		group := ""
		for _, f := range st.Fields.List {
			own := text(f.Doc, f.Comment)
			if own != "" {
				group = own
			}
			t.fields = append(t.fields, fieldsOf(f, own, group)...)
		}
	}
	s.types = append(s.types, t)
	s.typeOf[t.name] = t
}

// fieldsOf returns the fields that one line declares. A field without a comment
// of its own shares that of the fields before it if that names it.
func fieldsOf(f *ast.Field, own, group string) []fieldSource {
	var tag reflect.StructTag
	if f.Tag != nil {
		tag = reflect.StructTag(strings.Trim(f.Tag.Value, "`"))
	}
	member, options, _ := strings.Cut(tag.Get("json"), ",")
	field := fieldSource{goType: types.ExprString(f.Type), member: member, doc: own}
	field.optional = strings.Contains(options, "omit")
	if len(f.Names) == 0 {
		field.name, field.embedded = field.goType, true
		return []fieldSource{field}
	}
	var out []fieldSource
	for _, n := range f.Names {
		if !n.IsExported() {
			continue
		}
		field.name = n.Name
		if own == "" && mentions(group, n.Name) {
			field.doc = group
		}
		out = append(out, field)
	}
	return out
}

func mentions(text, name string) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(text)
}

func (s *source) addConsts(spec *ast.ValueSpec, group string, pkg *types.Package, file string) error {
	for _, n := range spec.Names {
		if !n.IsExported() {
			continue
		}
		obj, ok := pkg.Scope().Lookup(n.Name).(*types.Const)
		if !ok || obj.Val().Kind() == constant.Unknown {
			return fmt.Errorf("the value of constant %s is not known without its imports", n.Name)
		}
		c := &constSource{name: n.Name, doc: text(spec.Doc, spec.Comment), file: file, value: obj.Val().ExactString()}
		c.doc = strings.TrimPrefix(c.doc, c.name+": ")
		if c.doc == "" && mentions(group, n.Name) {
			c.doc = group
		}
		if obj.Val().Kind() == constant.String {
			c.value = constant.StringVal(obj.Val())
		}
		if named, ok := obj.Type().(*types.Named); ok {
			c.typ = named.Obj().Name()
		}
		s.consts = append(s.consts, c)
		s.constOf[c.name] = c
	}
	return nil
}

// text returns the first comment there is, on one line.
func text(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if t := strings.Join(strings.Fields(g.Text()), " "); t != "" {
			return t
		}
	}
	return ""
}

var link = regexp.MustCompile(`\[([A-Za-z.]+)\]`)

// prose turns the comment of a field or type from Go's names into those of the
// wire: members as they are in JSON, constants as their values.
func (s *source) prose(t *typeSource, comment string) string {
	comment = link.ReplaceAllStringFunc(comment, func(m string) string {
		name := m[1 : len(m)-1]
		if c := s.constOf[name]; c != nil {
			return c.value
		}
		return name
	})
	if t == nil {
		return comment
	}
	for _, f := range t.fields {
		if f.member != "" && f.member != f.name {
			comment = regexp.MustCompile(`\b`+regexp.QuoteMeta(f.name)+`\b`).ReplaceAllString(comment, f.member)
		}
	}
	return comment
}

// values returns the values of string type name as JSON Schema wants them.
func (s *source) values(name string) []any {
	t := s.typeOf[name]
	if t == nil {
		return nil
	}
	var out []any
	for _, c := range t.values {
		out = append(out, c.value)
	}
	return slices.Clip(out)
}
