package events

import (
	"slices"
	"strings"
)

// A subagent that may spawn asks for it on its own subjects, never on those of
// clients. Its session, its depth and what bounds it follow from the id in the
// subject; the members of a request that say otherwise are not looked at.

const childRPC = "rpc"

// The requests of a subagent beside the six events.
const (
	// RPCLogs reads the output of what it spawned, as [FilesLogs] does.
	RPCLogs = "logs"
	// RPCAck acknowledges a reply; the token follows.
	RPCAck = "ack"
)

// RPCSubject is where the subagent id sends event k.
func RPCSubject(id string, k Kind) string { return rpcSubject(id, string(k)) }

// RPCLogsSubject is where the subagent id asks for [RPCLogs].
func RPCLogsSubject(id string) string { return rpcSubject(id, RPCLogs) }

// RPCAckSubject is where the subagent id acknowledges the reply with that token.
func RPCAckSubject(id, token string) string { return rpcSubject(id, RPCAck+"."+token) }

// RPCSubjects matches every request of every subagent.
func RPCSubjects() string { return rpcSubject("*", ">") }

func rpcSubject(id, request string) string {
	return SubjectPrefix + ".child." + id + "." + childRPC + "." + request
}

// ParseRPC takes the subject of a subagent's request apart.
func ParseRPC(subject string) (id, request string, ok bool) {
	id, ok = ChildIDOf(subject)
	if !ok {
		return "", "", false
	}
	request, ok = strings.CutPrefix(subject, rpcSubject(id, ""))
	return id, request, ok && request != ""
}

// RPCUser is the bus user of what runs inside the subagent id, with its token: it
// may send requests and nothing else.
func RPCUser(id string) string { return id + "/" + childRPC }

// RPCUserID returns the id in an [RPCUser].
func RPCUserID(user string) (id string, ok bool) {
	id, ok = strings.CutSuffix(user, "/"+childRPC)
	return id, ok && ValidID(id)
}

// RPCInbox is the inbox prefix of what runs inside the subagent id.
func RPCInbox(id string) string { return "_INBOX_hayward_rpc." + id }

// The variables by which a program that runs inside a subagent finds the
// coordinator, for requests in the subagent's own name.
const (
	// VariableSubagent holds the subagent's id.
	VariableSubagent = "HAYWARD_SUBAGENT_ID"
	// VariableBus holds the path of a socket that speaks the bus's protocol. It is
	// there if the subagent may spawn.
	VariableBus = "HAYWARD_BUS"
	// VariableMaySpawn lists the types that it may spawn, separated by commas; "*" is
	// any, and those behind a "-" are not.
	VariableMaySpawn = "HAYWARD_MAY_SPAWN"
)

// DecodeChildRequest decodes the body of event k that the subagent id sent. What
// the body says of its session does not count: it is the subagent's own.
func DecodeChildRequest(k Kind, id string, data []byte) (SubagentEvent, *Error) {
	switch k {
	case KindSpawn:
		return decodeOf(data, func(e *Spawn) { e.ParentSessionID = id })
	case KindQuery:
		return decodeOf(data, func(e *Query) { e.ParentSessionID = id })
	case KindCancel:
		return decodeOf(data, func(e *Cancel) { e.ParentSessionID = id })
	case KindListActive:
		return decodeOf(data, func(e *ListActive) { e.ParentSessionID = id })
	case KindCompletions:
		return decodeOf(data, func(e *Completions) { e.ParentSessionID = id })
	case KindOutstanding:
		return decodeOf(data, func(e *Outstanding) { e.ParentSessionID = id })
	}
	return nil, Errorf(CodeInvalidRequest, LayerGate, "there is no event %q", clip(string(k)))
}

// AnyType in [Spawn.MaySpawn] stands for every type.
const AnyType = "*"

// Spawns says which types a subagent may spawn. Nil is none.
type Spawns struct {
	// Any: every type but those in Except; else only Types.
	Any    bool     `json:"any,omitzero"`
	Except []string `json:"except,omitempty"`
	Types  []string `json:"types,omitempty"`
}

// SpawnsOf reads [Spawn.MaySpawn].
func SpawnsOf(types []string) *Spawns {
	if len(types) == 0 {
		return nil
	}
	if slices.Contains(types, AnyType) {
		return &Spawns{Any: true}
	}
	s := &Spawns{}
	for _, t := range types {
		s.Types = append(s.Types, strings.ToLower(t))
	}
	return s
}

// Allows reports whether the type may be spawned.
func (s *Spawns) Allows(typ string) bool {
	typ = strings.ToLower(typ)
	switch {
	case s == nil:
		return false
	case s.Any:
		return !slices.Contains(s.Except, typ)
	}
	return slices.Contains(s.Types, typ)
}

// And is what both allow.
func (s *Spawns) And(t *Spawns) *Spawns {
	if s == nil || t == nil {
		return nil
	}
	if s.Any && t.Any {
		both := &Spawns{Any: true, Except: slices.Concat(s.Except, t.Except)}
		slices.Sort(both.Except)
		both.Except = slices.Compact(both.Except)
		return both
	}
	if s.Any {
		s, t = t, s
	}
	both := &Spawns{}
	for _, typ := range s.Types {
		if t.Allows(typ) {
			both.Types = append(both.Types, typ)
		}
	}
	if len(both.Types) == 0 {
		return nil
	}
	return both
}

// String is the value of [VariableMaySpawn].
func (s *Spawns) String() string {
	if s == nil {
		return ""
	}
	if !s.Any {
		return strings.Join(s.Types, ",")
	}
	list := []string{AnyType}
	for _, t := range s.Except {
		list = append(list, "-"+t)
	}
	return strings.Join(list, ",")
}

// ParseSpawns reads what [Spawns.String] writes.
func ParseSpawns(text string) *Spawns {
	if text == "" {
		return nil
	}
	s := &Spawns{}
	for _, t := range strings.Split(text, ",") {
		switch {
		case t == AnyType:
			s.Any = true
		case strings.HasPrefix(t, "-"):
			s.Except = append(s.Except, t[1:])
		default:
			s.Types = append(s.Types, t)
		}
	}
	return s
}
