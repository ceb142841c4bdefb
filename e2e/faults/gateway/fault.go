package gateway

import (
	"strings"
	"time"
)

// Fault is a fault of a request or of an event of a watch.
type Fault string

// None lets things take their course.
const None Fault = ""

// Faults of requests, both writes and reads.
const (
	// Drop cuts the stream before the request is passed on.
	Drop Fault = "request dropped"
	// Late cuts the stream at once and passes the request on after a while.
	Late Fault = "request arrives late"
	// Lose passes the request on and cuts the stream instead of answering.
	Lose Fault = "response dropped"
	// Delay passes the request on after a while.
	Delay Fault = "request delayed"
	// DelayAnswer passes the request on at once and answers after a while, so that
	// watches overtake the answer.
	DelayAnswer Fault = "answer delayed"
	// RepeatFirst and RepeatSecond pass the request on twice in a row and return the
	// named answer.
	RepeatFirst  Fault = "repeated, first answer"
	RepeatSecond Fault = "repeated, second answer"
	// RepeatLate returns the first answer, and passes the request on again after a
	// while.
	RepeatLate Fault = "repeated after a while"
	// Conflict to Unavailable answer without passing on; 429 has a Retry-After.
	Conflict    Fault = "answered 409"
	TooMany     Fault = "answered 429"
	Internal    Fault = "answered 500"
	Unavailable Fault = "answered 503"
	// ConflictAfter and InternalAfter pass on, and then answer so.
	ConflictAfter Fault = "answered 409 after effect"
	InternalAfter Fault = "answered 500 after effect"
	// Cut breaks the whole connection before the request is passed on, with all
	// watches and all other requests in flight.
	Cut Fault = "connection cut"
	// KillBefore and KillAfter send SIGKILL to the manager before the request is
	// passed on, or after it took effect and before the answer.
	KillBefore Fault = "SIGKILL before"
	KillAfter  Fault = "SIGKILL after effect"
	// Away cuts the connection to the cluster of the request, and lets nothing through to
	// it for a while.
	Away Fault = "cluster away"
	// Stop sends SIGSTOP before the request is passed on, and SIGCONT after a while.
	Stop Fault = "SIGSTOP"
)

// Faults of an event of a watch. The ones after Gone also affect the request that opens the next
// watch.
const (
	// Break ends the watch in good order instead of delivering the event.
	Break Fault = "watch ended"
	// Half cuts the stream within the event.
	Half Fault = "watch cut within an event"
	// Hold delays all events for a while. Writes continue meanwhile.
	Hold Fault = "watch held back"
	// Gone sends ERROR 410 instead of the event, so that a list follows.
	Gone Fault = "410 in the watch"
	// GoneAtStart ends the watch and answers 410 to the next one.
	GoneAtStart Fault = "410 at the watch's start"
	// WatchDrop to WatchUnavailable end the watch, and cut or refuse the next one.
	WatchDrop        Fault = "watch refused: dropped"
	WatchTooMany     Fault = "watch refused: 429"
	WatchInternal    Fault = "watch refused: 500"
	WatchUnavailable Fault = "watch refused: 503"
	// ListDrop to ListUnavailable send ERROR 410 and cut or refuse the list.
	ListDrop        Fault = "list refused: dropped"
	ListTooMany     Fault = "list refused: 429"
	ListInternal    Fault = "list refused: 500"
	ListUnavailable Fault = "list refused: 503"
	// ListStale sends ERROR 410, and serves the list as of an earlier version.
	ListStale Fault = "stale list"
)

// OnWrites are the faults of a write that do not affect the process.
func OnWrites() []Fault {
	return []Fault{Drop, Late, Lose, Delay, DelayAnswer, RepeatFirst, RepeatSecond, RepeatLate,
		Conflict, TooMany, Internal, Unavailable, ConflictAfter, InternalAfter}
}

// OnProcesses are the faults of a write that meet everything the manager does.
func OnProcesses() []Fault { return []Fault{KillBefore, KillAfter, Stop, Cut} }

// OnReads are the faults of a GET.
func OnReads() []Fault {
	return []Fault{Drop, Lose, Delay, TooMany, Internal, Unavailable}
}

// OnStarts are the faults of a read that is about no package, such as discovery or a list
// of a kind in all namespaces.
func OnStarts() []Fault { return []Fault{Drop, TooMany, Internal, Unavailable} }

// OnWatches are the faults of an event of a watch.
func OnWatches() []Fault {
	return []Fault{Break, Half, Hold, Gone, GoneAtStart, WatchDrop, WatchTooMany, WatchInternal, WatchUnavailable,
		ListDrop, ListTooMany, ListInternal, ListUnavailable, ListStale}
}

// OfLists reports whether a fault of an event meets the list that follows.
func (f Fault) OfLists() bool { return strings.HasPrefix(string(f), "list refused") || f == ListStale }

// Decision is a fault with its particulars.
type Decision struct {
	Fault Fault
	// For is the duration of a fault that lasts.
	For time.Duration
	// Version is the resource version of a stale list.
	Version string
	// Met is called when a fault of a list was injected, or no longer can be. It can be nil.
	Met func()
}

func (d Decision) met() {
	if d.Met != nil {
		d.Met()
	}
}

// Director chooses faults, and learns the outcomes. Its methods are called from many goroutines.
type Director interface {
	// Request decides about each request before it is passed on. Watches are only
	// included if they start with a list, and are never passed on late or twice.
	Request(*Request) Decision
	// Answered learns each answer of the API server to a request. The answers about one
	// object arrive in order; late ones arrive after Ended.
	Answered(q *Request, code int)
	// Ended learns that a request is finished.
	Ended(*Request)
	// Event decides about each event of a watch before it is delivered.
	Event(*Event) Decision
}
