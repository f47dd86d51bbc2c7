package plan

// hookCommand is on_done as written: argv, or a line for sh -c.
type hookCommand struct {
	argv []string
	line string
}

// readHook reads on_done: an array is argv, a string is a line of shell.
func readHook(t *table) hookCommand {
	const key = "on_done"
	if _, isText := t.values[key].(string); isText {
		return hookCommand{line: t.word(key)}
	}
	argv, ok := t.list(key)
	switch {
	case !ok:
	case len(argv) == 0:
		t.faults.add(t.key(key), "is empty")
	case argv[0] == "":
		t.faults.add(t.key(key).Index(0), "is empty")
	}
	return hookCommand{argv: argv}
}

// resolve returns the command for one item of a for_each entry; each is false
// when there are no items.
func (h hookCommand) resolve(replace func(string) string, item string, each bool) []string {
	if h.line != "" {
		return shell(h.line, item, each)
	}
	var argv []string
	for _, a := range h.argv {
		argv = append(argv, replace(a))
	}
	return argv
}
