package main

import (
	"slices"

	"github.com/hayward-dev/hayward/events"
)

// node is one line of a tree.
type node struct {
	label string
	// of is the subagent, nil for a session or a prompt.
	of       *events.Snapshot
	children []*node
}

// child returns the node of that label, made if it is new.
func (n *node) child(label string) *node {
	if i := slices.IndexFunc(n.children, func(c *node) bool { return c.of == nil && c.label == label }); i >= 0 {
		return n.children[i]
	}
	c := &node{label: label}
	n.children = append(n.children, c)
	return c
}

// treeOf puts each subagent below the one that asked for it, else below its
// prompt and session.
func treeOf(all []events.Snapshot) *node {
	root := &node{}
	nodes := make(map[string]*node)
	for i := range all {
		s := &all[i]
		label := shortID(s.SubagentID)
		if s.Name != "" {
			label += " " + s.Name
		}
		nodes[s.SubagentID] = &node{label: label, of: s}
	}
	for i := range all {
		s := &all[i]
		above := nodes[s.ParentID]
		if above == nil {
			above = root.child("session " + s.ParentSessionID)
			if s.ParentPromptID != "" {
				above = above.child("prompt " + s.ParentPromptID)
			}
		}
		above.children = append(above.children, nodes[s.SubagentID])
	}
	return root
}

// treeTable draws the tree.
func treeTable(all []events.Snapshot) *table {
	t := &table{header: []string{"SUBAGENT", "STATUS", "EXIT", "ELAPSED", "SANDBOX", "TOKENS", "COMMAND"}}
	var draw func(n *node, indent string)
	draw = func(n *node, indent string) {
		for i, c := range n.children {
			branch, below := "├ ", "│ "
			if i == len(n.children)-1 {
				branch, below = "└ ", "  "
			}
			if n.label == "" { // sessions stand at the left
				branch, below = "", ""
			}
			if s := c.of; s != nil {
				t.add(indent+branch+c.label, shownStatus(*s), shownExit(*s), shownDuration(s.ElapsedMS), shownSandbox(*s), shownTokens(*s), shownCommand(*s))
			} else {
				t.rows = append(t.rows, []string{indent + branch + oneLine(c.label), "", "", "", "", "", ""})
			}
			draw(c, indent+below)
		}
	}
	draw(treeOf(all), "")
	return t
}
