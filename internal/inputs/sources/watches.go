package sources

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/limits"
)

const (
	sourcesStarting = 4               // concurrent lists of sources with their content; each is decoded in memory
	sourcesStart    = 5 * time.Second // how long a list counts as one of them, so that an API that does not answer does not delay others
)

// Listen watches a selection until the context ends, as livestate.Cache does.
type Listen func(context.Context, livestate.Selection, livestate.Listener)

// ReadObject reads one object, as livestate.Cache does.
type ReadObject func(context.Context, livestate.Selection) (metav1.Object, error)

// State is the observed state of a source.
type State struct {
	// Known is set once the watch has listed the object.
	Known bool
	// Version changes whenever the object does. It is empty if the object does not exist.
	Version string
	// Err is why the object cannot be watched; nil if all is well.
	Err error
	// Unserved means that the API server does not serve the kind in this version.
	Unserved bool
	// Content is the object as JSON without managedFields, if Watches.Whole is set. It is empty if
	// the object does not exist.
	Content string

	kept *keptObject
	// refused is the memory that the content would take, if there is too little; otherwise zero.
	refused int64
}

// Watches watches all sources that Packages or ObjectTemplates name. The first limits.SourceWatches
// of a namespace have their own watches. The others share a watch of the metadata of their kind
// there, which stays while any of them is in use. It is safe for concurrent use.
type Watches struct {
	// Enqueue is called with the user of a changed source. It must not block.
	Enqueue func(types.NamespacedName)
	// Mapping returns the mapping of a served kind, for sources of any kind; nil if all sources
	// belong to the core API.
	Mapping func(gk schema.GroupKind, version string) (*meta.RESTMapping, error)
	// Whole means that the content of sources is watched, and not only their versions.
	Whole bool
	// Memory is the account that content counts in. While it has no room for the content of a
	// source, the source is not watched.
	Memory *quota.Memory

	listen Listen
	read   ReadObject
	// starts bounds the concurrent lists and reads of whole objects; each is decoded in
	// memory.
	starts *queueing.Semaphore

	mu      sync.Mutex
	ctx     context.Context
	watched map[Ref]*watched
	users   map[types.NamespacedName][]Ref
	// single counts the individual watches by namespace; groups are the shared ones.
	single map[string]int
	groups map[groupKey]*group
}

// accountUser represents the manager, whose service account is watched. No Package can have this
// name.
var accountUser = types.NamespacedName{Namespace: "/", Name: "/"}

type watched struct {
	state State
	users map[types.NamespacedName]struct{}
	// stop ends the watch, or leaves the group; nil if there is neither. resource and listener
	// belong to that watch.
	stop     func()
	resource schema.GroupVersionResource
	listener *listener
}

// keptObject is a source that was read at a version.
type keptObject struct {
	version string
	object  *Object
}

// NewWatches returns watches that work once Start is called. Enqueue has to be set before.
func NewWatches(listen Listen, read ReadObject) *Watches {
	return &Watches{
		listen: listen, read: read, starts: queueing.NewSemaphore(sourcesStarting, sourcesStarting), watched: map[Ref]*watched{},
		users: map[types.NamespacedName][]Ref{}, single: map[string]int{}, groups: map[groupKey]*group{},
	}
}

// Start watches until the context ends.
func (w *Watches) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	for ref, o := range w.watched {
		w.sync(ref, o)
	}
	w.mu.Unlock()
	<-ctx.Done()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. Only the leader watches.
func (w *Watches) NeedLeaderElection() bool { return true }

// Use sets the refs, without duplicates, to watch for a user. An empty list removes the user.
func (w *Watches) Use(user types.NamespacedName, refs []Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.users[user]
	if slices.Equal(before, refs) && w.Mapping == nil {
		return
	}

	for _, ref := range refs {
		o := w.watched[ref]
		if o == nil {
			o = &watched{users: map[types.NamespacedName]struct{}{}}
			w.watched[ref] = o
		}
		if o.stop == nil && (o.state.refused == 0 || w.Memory.Fits(ref.memory(), o.state.refused)) {
			w.sync(ref, o)
		}
		o.users[user] = struct{}{}
	}

	for _, ref := range before {
		if !slices.Contains(refs, ref) {
			w.release(ref, user)
		}
	}

	if len(refs) == 0 {
		delete(w.users, user)
		return
	}

	w.users[user] = slices.Clone(refs)
}

// KindChanged reports that a kind is served differently than before.
func (w *Watches) KindChanged(gk schema.GroupKind) {
	w.mu.Lock()
	var users []types.NamespacedName
	for ref, o := range w.watched {
		if ref.GroupKind() == gk && w.sync(ref, o) {
			users = append(users, slices.Collect(maps.Keys(o.users))...)
		}
	}
	w.mu.Unlock()
	for _, user := range users {
		w.Enqueue(user)
	}
}

// sync starts or stops the watch of an object according to discovery, and reports whether this
// changed anything. w.mu is held.
func (w *Watches) sync(ref Ref, o *watched) bool {
	if w.ctx == nil {
		return false
	}

	resource, err := ref.resource(), error(nil)
	if w.Mapping != nil {
		var mapping *meta.RESTMapping
		if mapping, err = w.Mapping(ref.GroupKind(), ref.Version); err == nil {
			resource = mapping.Resource
		}
	}

	switch {
	case err == nil && o.stop != nil && o.resource == resource, err != nil && o.stop != nil && !meta.IsNoMatchError(err):
		return false // the watch continues even if discovery fails
	case o.stop != nil:
		o.stop()
		o.stop, o.listener = nil, nil
	}

	before := o.state
	if err != nil {
		o.state = State{Unserved: meta.IsNoMatchError(err), Err: err}
		return !same(before, o.state)
	}

	o.resource, o.listener, o.state = resource, &listener{w: w, o: o, ref: ref, began: time.Now(), started: func() {}}, State{}
	if w.single[ref.Namespace] < limits.SourceWatches {
		o.stop = w.alone(ref, resource, o.listener)
	} else {
		o.stop = w.join(ref, resource, o.listener)
	}

	return !same(before, o.state)
}

// alone starts the watch of one source, and returns a function that ends it. w.mu is held.
func (w *Watches) alone(ref Ref, resource schema.GroupVersionResource, l *listener) (end func()) {
	ctx, stop := context.WithCancel(w.ctx)
	w.single[ref.Namespace]++
	panics.Go(ctx, "watching "+ref.String(), func() {
		w.run(ctx, livestate.Selection{Resource: resource, Namespace: ref.Namespace, Name: ref.Name, Whole: w.Whole}, l)
	})
	return func() {
		stop()
		if w.single[ref.Namespace]--; w.single[ref.Namespace] == 0 {
			delete(w.single, ref.Namespace)
		}
	}
}

// run watches one object. Watches of whole objects start a few at a time, in turn by namespace.
// Each holds its place until the object is listed, but at most for sourcesStart.
func (w *Watches) run(ctx context.Context, sel livestate.Selection, l *listener) {
	if sel.Whole {
		release, err := w.starts.Acquire(ctx, sel.Namespace, 1)
		if err != nil {
			return // it is no longer in use
		}
		defer release()
		defer panics.After(sourcesStart, "starting a watch", release).Stop()
		l.started = release
	}
	w.listen(ctx, sel, l)
}

// release removes a user. w.mu is held.
func (w *Watches) release(ref Ref, user types.NamespacedName) {
	o := w.watched[ref]
	delete(o.users, user)
	if len(o.users) > 0 {
		return
	}
	delete(w.watched, ref)
	w.Memory.Count(ref.memory(), 0)
	if o.stop != nil {
		o.stop()
		o.listener = nil
	}
}

// State returns the observed state of a source that is in use.
func (w *Watches) State(ref Ref) State {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.watched[ref]; o != nil {
		return o.state
	}
	return State{}
}

// Versions returns the observed versions of sources in use, by name. waiting means that one will be
// known in a moment, and problem is why one stays unknown for longer.
func (w *Watches) Versions(refs []Ref) (versions map[string]string, waiting bool, problem string) {
	versions = make(map[string]string, len(refs))
	for _, ref := range refs {
		switch state := w.State(ref); {
		case state.Known:
			versions[ref.String()] = state.Version
		case state.Err != nil:
			problem = "Cannot watch " + ref.String() + ": " + state.Err.Error()
		default:
			waiting = true
		}
	}
	return versions, waiting, problem
}

// keep stores the content of a source in use.
func (w *Watches) keep(ref Ref, kept *keptObject) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.watched[ref]; o != nil {
		o.state.kept = kept
	}
}

func (w *Watches) set(l *listener, change func(*State)) {
	o := l.o
	w.mu.Lock()
	if o.listener != l {
		w.mu.Unlock()
		return // of a watch that was replaced
	}

	before := o.state
	change(&o.state)
	w.account(l.ref, o)
	var users []types.NamespacedName
	if !same(before, o.state) {
		users = slices.Collect(maps.Keys(o.users))
	}

	w.mu.Unlock()
	for _, user := range users {
		if user != accountUser {
			w.Enqueue(user)
		}
	}
}

// account counts the content of a source, and stops watching the source if there is no memory for
// it. w.mu is held.
func (w *Watches) account(ref Ref, o *watched) {
	n := sourceWeight * int64(len(o.state.Content))
	err := w.Memory.Hold(ref.memory(), n)
	if err == nil {
		return
	}
	w.Memory.Count(ref.memory(), 0)
	o.stop()
	o.stop, o.listener = nil, nil
	o.state = State{Err: err, refused: n}
}

// sourceWeight is the memory for a byte of content: the content itself, and the buffer that the
// watch reads into.
const sourceWeight = 2

// same reports whether users can treat two states alike.
func same(a, b State) bool {
	return fmt.Sprint(a.Err) == fmt.Sprint(b.Err) && a.Known == b.Known && a.Version == b.Version && a.Unserved == b.Unserved
}

type listener struct {
	w     *Watches
	o     *watched
	ref   Ref
	began time.Time
	// started is called once the object is listed or has failed to be.
	started func()
}

// Listed implements livestate.Listener.
func (f *listener) Listed(all []metav1.Object) {
	defer f.started()
	next := State{Known: true}
	for _, obj := range all {
		next.Version, next.Content = versionOf(obj), f.w.contentOf(obj)
	}
	f.w.set(f, func(s *State) {
		next.kept = s.kept
		*s = next
	})
}

// Changed implements livestate.Listener.
func (f *listener) Changed(obj metav1.Object) {
	version, content := versionOf(obj), f.w.contentOf(obj)
	f.w.set(f, func(s *State) { s.Version, s.Content = version, content })
}

// Deleted implements livestate.Listener.
func (f *listener) Deleted(metav1.Object) {
	f.w.set(f, func(s *State) { s.Version, s.Content = "", "" })
}

// Failed implements livestate.Listener.
func (f *listener) Failed(err error) {
	f.started()
	if f.w.Mapping != nil && apierrors.IsNotFound(err) && time.Since(f.began) < limits.Establishing {
		return
	}
	f.w.set(f, func(s *State) { s.Err = err })
}

// contentOf returns a whole object as JSON, which takes less memory than the decoded object.
func (w *Watches) contentOf(obj metav1.Object) string {
	whole, ok := obj.(*unstructured.Unstructured)
	if !ok || !w.Whole {
		return ""
	}

	fields := maps.Clone(whole.Object)
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		fields["metadata"] = metadata
	}

	content, err := json.Marshal(fields)
	if err != nil {
		return "" // decoded JSON can always be encoded
	}

	return string(content)
}

func versionOf(obj metav1.Object) string {
	return string(obj.GetUID()) + "/" + obj.GetResourceVersion()
}
