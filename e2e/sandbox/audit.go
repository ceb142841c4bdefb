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
	// loggedWithin is the maximum time between a request's effect and its entry in the log, also
	// on a busy machine.
	loggedWithin = 2 * time.Second
	// markerParameter is the query parameter that identifies a marker in the log.
	markerParameter = "lockstep-audit-marker"
	// credentialID is the key of the token's ID in the user's extra fields.
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
	// User made the request; ImpersonatedUser is the user that it impersonated, if any.
	User, ImpersonatedUser string
	// Credential identifies the token of User, such as JTI=…; empty for other kinds of credentials.
	Credential string
	UserAgent  string
	// RequestURI is path and query.
	RequestURI string
	// Object is empty for requests about no resource.
	Object ObjectRef
	// DryRun is set if the query contains dryRun. A DELETE can also have it in its body,
	// which the log does not contain.
	DryRun bool
	// Code is the HTTP status, 0 if there was none.
	Code int
	// Received is when the request arrived and Done when the stage was reached, in
	// microseconds.
	Received, Done time.Time
}

// ObjectRef is the object of a request. Name is empty for lists, and for creates with the
// name in the body only.
type ObjectRef struct {
	Resource, Group, Version, Namespace, Name, Subresource string
}

// Position is a place between two entries of a log: an offset in bytes.
type Position int64

// Audit reads the audit log of a sandbox. The API server writes an entry before it
// ends the response, so the file contains the entry of a request whose response was read
// to its end. Entries of other clients' requests follow when those requests end;
// [Audit.Settled] waits for them.
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

// Mark returns the position after all entries so far: it makes its own request and waits
// for the entry.
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

// find returns the position after the entry with the marker. It skips entries that were
// logged before the marking request.
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

// Since returns the requests since position that all filters accept. They are sorted by
// their arrival, because a request that causes another one can be logged after it. Since
// waits for the entries of all requests that have ended by now. It omits requests that
// arrived before the marking request and ended soon after it, because the caller might have
// seen their effects before the mark. It includes requests that were held for longer, whose
// effects came after the mark. A watch appears once, when it starts. The reader's own
// requests do not appear.
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
	// Count polls instead of time, because a busy machine delays polls and requests alike.
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

// after returns the entries that arrived after the request that marked a position, or ended
// long after it.
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

// auditLog is the parsed part of a log. This process parses each line once, regardless of how
// many tests read it, and from which positions.
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

// marked returns the arrival of the request that marked a position, or the zero time for any
// other position.
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

// counts reports whether an event represents a request. The end of a watch does not, because
// its start is an event too. The arrival of a request, which other policies log, does not
// either.
func (e Entry) counts() bool {
	if e.marks() || e.Stage == "RequestReceived" {
		return false
	}
	return e.Verb != "watch" || e.Stage != "ResponseComplete"
}

// marks reports whether an event represents a request of [Audit.Mark].
func (e Entry) marks() bool { return strings.Contains(e.RequestURI, markerParameter) }

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
