package sandbox

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

const (
	// syncLimit bounds the wait for a marker to appear in the log, also on a busy machine.
	syncLimit = 2 * time.Minute
	// auditPoll is the pause between two looks at the log.
	auditPoll = 20 * time.Millisecond
	// loggedWithin is how long after its effect a request is logged at most, also on a busy machine.
	loggedWithin = 2 * time.Second
	// markerParameter is the query parameter by which a marker is found in the log.
	markerParameter = "lockstep-audit-marker"
	// credentialID is where the API server says which token a user has.
	credentialID = "authentication.kubernetes.io/credential-id"
)

// Entry is one request in the audit log.
type Entry struct {
	// ID is the audit ID that the API server gave to the request.
	ID string
	// Stage is ResponseComplete, for a watch ResponseStarted, or Panic.
	Stage string
	// Verb is the Kubernetes verb, such as get, list, watch, create, update, patch,
	// delete, deletecollection; for requests about no resource the HTTP method in
	// lower case.
	Verb string
	// User made the request; ImpersonatedUser is whom it acted as, if anyone.
	User, ImpersonatedUser string
	// Credential identifies the token of User, such as JTI=…; empty for other kinds of credentials.
	Credential string
	UserAgent  string
	// RequestURI is path and query.
	RequestURI string
	// Object is empty for requests about no resource.
	Object ObjectRef
	// DryRun is set when the query asks for a dry run. That of a DELETE may be in its
	// body, which the log does not show.
	DryRun bool
	// Code is the HTTP status, 0 when there was none.
	Code int
	// Received is when the request arrived and Done when the stage was reached, in
	// microseconds.
	Received, Done time.Time
}

// ObjectRef says what a request is about. Name is empty for lists, and for creates
// of which the name is in the body.
type ObjectRef struct {
	Resource, Group, Version, Namespace, Name, Subresource string
}

// Position is a place between two entries of a log: an offset in bytes.
type Position int64

// Audit reads the audit log of a sandbox. The API server writes an entry before it
// ends the response, so the entry of a request whose response was read to its end
// is in the file. Entries of other clients' requests are there once those have
// ended, which [Audit.Settled] waits for.
type Audit struct {
	path   string
	client rest.Interface
}

// Audit returns a reader of the sandbox's audit log.
func (s *Sandbox) Audit() (*Audit, error) {
	client, err := discovery.NewDiscoveryClientForConfig(s.Config())
	if err != nil {
		return nil, fmt.Errorf("making a client for the audit log: %w", err)
	}
	return &Audit{path: s.info.AuditLog, client: client.RESTClient()}, nil
}

// Mark returns the position behind everything that was logged so far: it makes a
// request of its own and waits for that one's entry.
func (a *Audit) Mark(ctx context.Context) (Position, error) {
	var begin Position
	if err := a.parsed(func(l *auditLog) { begin = l.next }); err != nil {
		return 0, err
	}
	marker := rand.Text()
	if _, err := a.client.Get().AbsPath("/version").Param(markerParameter, marker).DoRaw(ctx); err != nil {
		return 0, fmt.Errorf("marking the audit log: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, syncLimit,
		fmt.Errorf("no entry of the marking request in %s within %s: does the audit policy log /version?", a.path, syncLimit))
	defer cancel()
	for {
		if position, found, err := a.find(begin, marker); err != nil || found {
			return position, err
		}
		if err := pause(ctx, auditPoll); err != nil {
			return 0, err
		}
	}
}

// find returns the position behind the entry with the marker, which was logged after begin.
func (a *Audit) find(begin Position, marker string) (position Position, found bool, err error) {
	err = a.parsed(func(l *auditLog) {
		first := l.index(begin)
		for i, entry := range l.entries[first:] {
			if found = strings.Contains(entry.RequestURI, marker); found {
				position = l.ends[first+i]
				return
			}
		}
	})
	return position, found, err
}

// Since returns the requests that were logged since position, in the order of
// their arrival, and that all filters accept: a request that another one gave rise
// to arrived later, and may have been logged earlier. It waits for those that have
// ended by now. Requests that arrived before the one that marked the position and ended
// soon after it are left out: their effects may have been seen before. One that was held
// for longer is not: its effect came after the mark.
// A watch appears once, when it starts; the reader's own requests do not.
func (a *Audit) Since(ctx context.Context, position Position, filters ...Filter) ([]Entry, error) {
	if _, err := a.Mark(ctx); err != nil {
		return nil, err
	}
	entries, _, err := a.read(position, filters)
	if err != nil {
		return nil, err
	}
	return a.after(position, entries)
}

// Settled is [Audit.Since] after no request that the filters accept has been logged
// for the duration quiet.
func (a *Audit) Settled(ctx context.Context, position Position, quiet time.Duration, filters ...Filter) ([]Entry, error) {
	var all []Entry
	begin := position
	// Time counts by polls: on a busy machine they come late, as what they wait for does.
	for left := quiet; left > 0; left -= auditPoll {
		entries, next, err := a.read(position, filters)
		if err != nil {
			return nil, err
		}
		if len(entries) > 0 {
			left = quiet
		}
		all, position = append(all, entries...), next
		if err := pause(ctx, auditPoll); err != nil {
			return nil, fmt.Errorf("waiting for %s without requests, %d so far: %w", quiet, len(all), err)
		}
	}
	if _, err := a.Mark(ctx); err != nil {
		return all, err
	}
	rest, _, err := a.read(position, filters)
	if err != nil {
		return all, err
	}
	all, err = a.after(begin, append(all, rest...))
	sortByArrival(all)
	return all, err
}

func sortByArrival(entries []Entry) {
	slices.SortStableFunc(entries, func(a, b Entry) int { return a.Received.Compare(b.Received) })
}

// after returns those of the entries that arrived no earlier than the request that marked a position, or ended long after it.
func (a *Audit) after(position Position, entries []Entry) ([]Entry, error) {
	var marked time.Time
	err := a.parsed(func(l *auditLog) { marked = l.marked(position) })
	return slices.DeleteFunc(entries, func(e Entry) bool {
		return e.Received.Before(marked) && e.Done.Before(marked.Add(loggedWithin))
	}), err
}

// read returns the entries from position on and the position behind them.
func (a *Audit) read(position Position, filters []Filter) ([]Entry, Position, error) {
	var entries []Entry
	err := a.parsed(func(l *auditLog) {
		for _, entry := range l.entries[l.index(position):] {
			if entry.counts() && accepted(entry, filters) {
				entries = append(entries, entry)
			}
		}
		position = max(position, l.next)
	})
	sortByArrival(entries)
	return entries, position, err
}

// auditLog is what this process has parsed of a log: each line once, however many
// tests read it, and from wherever.
type auditLog struct {
	mu      sync.Mutex
	entries []Entry
	ends    []Position // behind each entry
	next    Position   // behind the last complete line
}

// index returns the index of the first entry behind position.
func (l *auditLog) index(position Position) int {
	i, _ := slices.BinarySearch(l.ends, position+1)
	return i
}

// marked returns when the request arrived that marked a position, and the zero time for any other position.
func (l *auditLog) marked(position Position) time.Time {
	if i := l.index(position); i > 0 && l.ends[i-1] == position && l.entries[i-1].marks() {
		return l.entries[i-1].Received
	}
	return time.Time{}
}

// auditLogs are the logs by path. A sandbox only ever appends to its own.
var auditLogs sync.Map

// parsed parses the entries logged meanwhile and calls look with all entries.
func (a *Audit) parsed(look func(*auditLog)) error {
	value, _ := auditLogs.LoadOrStore(a.path, &auditLog{})
	l := value.(*auditLog)
	l.mu.Lock()
	defer l.mu.Unlock()
	file, err := os.Open(a.path)
	if err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(int64(l.next), io.SeekStart); err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	for reader := bufio.NewReaderSize(file, 1<<16); ; {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break // the rest is a line still being written
		}
		if err != nil {
			return fmt.Errorf("reading the audit log: %w", err)
		}
		entry, err := parseEntry(line)
		if err != nil {
			return fmt.Errorf("audit log %s at byte %d: %w", a.path, l.next, err)
		}
		l.next += Position(len(line))
		l.entries, l.ends = append(l.entries, entry), append(l.ends, l.next)
	}
	look(l)
	return nil
}

// event is the part of an audit.k8s.io/v1 Event that is used here.
type event struct {
	AuditID    string `json:"auditID"`
	Stage      string `json:"stage"`
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	User       struct {
		Username string              `json:"username"`
		Extra    map[string][]string `json:"extra"`
	} `json:"user"`
	ImpersonatedUser struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	UserAgent string `json:"userAgent"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
		APIVersion  string `json:"apiVersion"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
	StageTimestamp           time.Time `json:"stageTimestamp"`
}

// parseEntry reads one line of the log.
func parseEntry(line []byte) (Entry, error) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return Entry{}, fmt.Errorf("not an audit event: %w", err)
	}
	_, query, _ := strings.Cut(e.RequestURI, "?")
	parameters, _ := url.ParseQuery(query)
	return Entry{
		ID: e.AuditID, Stage: e.Stage, Verb: e.Verb,
		User: e.User.Username, ImpersonatedUser: e.ImpersonatedUser.Username, UserAgent: e.UserAgent,
		Credential: strings.Join(e.User.Extra[credentialID], " "),
		RequestURI: e.RequestURI,
		Object: ObjectRef{
			Resource: e.ObjectRef.Resource, Group: e.ObjectRef.APIGroup, Version: e.ObjectRef.APIVersion,
			Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name, Subresource: e.ObjectRef.Subresource,
		},
		DryRun: len(parameters["dryRun"]) > 0, Code: e.ResponseStatus.Code,
		Received: e.RequestReceivedTimestamp, Done: e.StageTimestamp,
	}, nil
}

// counts reports whether an event stands for a request: not the end of a watch, the
// start of which is an event too, and not the arrival of a request, which other
// policies log.
func (e Entry) counts() bool {
	if e.marks() || e.Stage == "RequestReceived" {
		return false
	}
	return e.Verb != "watch" || e.Stage != "ResponseComplete"
}

// marks reports whether an event stands for a request of [Audit.Mark].
func (e Entry) marks() bool { return strings.Contains(e.RequestURI, markerParameter) }

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
