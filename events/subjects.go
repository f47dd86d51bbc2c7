package events

import "strings"

// Subjects are verb first, ids last. Only validated ids become tokens.
const (
	// SubjectPrefix begins every subject of ours.
	SubjectPrefix = "hayward.v1"
	// ServiceName, FilesServiceName and AdminServiceName are the micro services.
	ServiceName      = "hayward"
	FilesServiceName = "hayward-files"
	AdminServiceName = "hayward-admin"
	// ServiceVersion is the version of the wire contract, semantic.
	ServiceVersion = "1.0.0"
	// InboxPrefix begins the inbox of a child; its id follows.
	InboxPrefix = "_INBOX_hayward_child"
	// ClientInboxPrefix begins the inbox of every client.
	ClientInboxPrefix = "_INBOX_hayward_client"

	// Bucket and FeedStream are where records and the feed are kept.
	Bucket     = "hayward_subagents"
	FeedStream = "HAYWARD_EVENTS"
)

// ChildReport is the last token of a subject a child publishes on.
type ChildReport string

// The subjects of a child.
const (
	ChildStarted   ChildReport = "started"   // [Started]
	ChildItem      ChildReport = "item"      // [Item]
	ChildResult    ChildReport = "result"    // [Report]
	ChildHeartbeat ChildReport = "heartbeat" // [Heartbeat]

	childControl = "control"
	childModel   = "model"
)

// RequestSubject is where clients send event k.
func RequestSubject(k Kind) string { return SubjectPrefix + "." + string(k) }

// FilesSubject is where clients send requests to an endpoint of the files service.
func FilesSubject(endpoint string) string { return SubjectPrefix + ".files." + endpoint }

// AdminSubject is where clients send requests to an endpoint of the admin service.
func AdminSubject(endpoint string) string { return SubjectPrefix + ".admin." + endpoint }

// ChildSubject is where child id publishes report r.
func ChildSubject(id string, r ChildReport) string {
	return SubjectPrefix + ".child." + id + "." + string(r)
}

// ChildSubjectAll matches report r of every child.
func ChildSubjectAll(r ChildReport) string { return ChildSubject("*", r) }

// ControlSubject is where child id takes [Control] messages.
func ControlSubject(id string) string { return SubjectPrefix + ".child." + id + "." + childControl }

// ModelSubject is where child id sends what an agent inside says to its model API.
// The frames are internal to Hayward.
func ModelSubject(id string) string { return SubjectPrefix + ".child." + id + "." + childModel }

// ModelSubjectAll matches [ModelSubject] of every child.
func ModelSubjectAll() string { return ModelSubject("*") }

// ModelAnswerSubject is where child id takes what the model API answers.
func ModelAnswerSubject(id string) string { return ModelSubject(id) + ".answer" }

// ChildPermission matches every subject that child id may use beside its inbox.
func ChildPermission(id string) string { return SubjectPrefix + ".child." + id + ".>" }

// ChildInbox is the inbox prefix of child id.
func ChildInbox(id string) string { return InboxPrefix + "." + id }

// FeedSubject is where state changes of id are published.
func FeedSubject(id string, s State) string { return SubjectPrefix + ".feed." + id + "." + string(s) }

// FeedSubjects matches the whole feed.
const FeedSubjects = SubjectPrefix + ".feed.>"

// ChildIDOf returns the id in a child subject.
func ChildIDOf(subject string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(subject, SubjectPrefix+".child.")
	if !ok {
		return "", false
	}
	id, _, ok = strings.Cut(rest, ".")
	return id, ok && ValidID(id)
}

// AckPrefix begins the subjects on which a client acknowledges a reply; a
// token minted by the coordinator follows.
const AckPrefix = SubjectPrefix + ".ack"

// The request headers of W3C Trace Context: the span that a request belongs to. A
// command finds its own in the variables TRACEPARENT and TRACESTATE.
const (
	HeaderTraceParent = "traceparent" // the span
	HeaderTraceState  = "tracestate"  // what vendors add to it
)

// HeaderAck names the reply header that carries the acknowledgement subject.
const HeaderAck = "Hayward-Ack"
