package sources

import (
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/cluster/livestate"
)

// Listen watches a selection until the context ends, as livestate.Cache does.
type Listen func(context.Context, livestate.Selection, livestate.Listener)

// State is what is known of a source.
type State struct {
	// Known is set once the watch has listed the object.
	Known bool
	// Version changes whenever the object does; empty where there is none.
	Version string
	// Err is why the object cannot be watched; nil while all is well.
	Err error

	kept *keptObject
}

// Watches watches all sources that Packages name. It is safe for concurrent use.
type Watches struct {
	// Enqueue is called with the user of a source that changed; it must not block.
	Enqueue func(types.NamespacedName)

	listen Listen

	mu      sync.Mutex
	ctx     context.Context
	watched map[Ref]*watched
	users   map[types.NamespacedName][]Ref
}

// accountUser stands for the manager, whose service account is watched. No Package has such a name.
var accountUser = types.NamespacedName{Namespace: "/", Name: "/"}

type watched struct {
	state State
	users map[types.NamespacedName]struct{}
	stop  context.CancelFunc
}

// keptObject is a source as it was read at a version.
type keptObject struct {
	version string
	object  *Object
}

// NewWatches returns watches that work from Start on, once Enqueue is set.
func NewWatches(listen Listen) *Watches {
	return &Watches{listen: listen, watched: map[Ref]*watched{}, users: map[types.NamespacedName][]Ref{}}
}

// Start watches until the context ends.
func (w *Watches) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	for ref, o := range w.watched {
		w.begin(ref, o)
	}
	w.mu.Unlock()
	<-ctx.Done()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader watches.
func (w *Watches) NeedLeaderElection() bool { return true }

// Use sets the refs, without duplicates, that are watched for a user; none removes the user.
func (w *Watches) Use(user types.NamespacedName, refs []Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.users[user]
	if slices.Equal(before, refs) {
		return
	}
	for _, ref := range refs {
		o := w.watched[ref]
		if o == nil {
			o = &watched{users: map[types.NamespacedName]struct{}{}}
			w.watched[ref] = o
			w.begin(ref, o)
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

// begin starts the watch of an object, once there is a context; w.mu is held.
func (w *Watches) begin(ref Ref, o *watched) {
	if w.ctx == nil || o.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(w.ctx)
	o.stop = stop
	go w.listen(ctx, livestate.Selection{Resource: ref.resource(), Namespace: ref.Namespace, Name: ref.Name}, &listener{w, o})
}

// release takes a user off; w.mu is held.
func (w *Watches) release(ref Ref, user types.NamespacedName) {
	o := w.watched[ref]
	delete(o.users, user)
	if len(o.users) > 0 {
		return
	}
	delete(w.watched, ref)
	if o.stop != nil {
		o.stop()
	}
}

// State returns what is known of a source that is in use.
func (w *Watches) State(ref Ref) State {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.watched[ref]; o != nil {
		return o.state
	}
	return State{}
}

// keep remembers what a source in use holds.
func (w *Watches) keep(ref Ref, kept *keptObject) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.watched[ref]; o != nil {
		o.state.kept = kept
	}
}

func (w *Watches) set(o *watched, change func(*State)) {
	w.mu.Lock()
	before := o.state
	change(&o.state)
	var users []types.NamespacedName
	if text(before.Err) != text(o.state.Err) || before.Known != o.state.Known || before.Version != o.state.Version {
		for user := range o.users {
			users = append(users, user)
		}
	}
	w.mu.Unlock()
	for _, user := range users {
		if user != accountUser {
			w.Enqueue(user)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

type listener struct {
	w *Watches
	o *watched
}

// Listed implements livestate.Listener.
func (f *listener) Listed(all []metav1.Object) {
	version := ""
	for _, obj := range all {
		version = versionOf(obj)
	}
	f.w.set(f.o, func(s *State) { *s = State{Known: true, Version: version, kept: s.kept} })
}

// Changed implements livestate.Listener.
func (f *listener) Changed(obj metav1.Object) {
	version := versionOf(obj)
	f.w.set(f.o, func(s *State) { s.Version = version })
}

// Deleted implements livestate.Listener.
func (f *listener) Deleted(metav1.Object) {
	f.w.set(f.o, func(s *State) { s.Version = "" })
}

// Failed implements livestate.Listener.
func (f *listener) Failed(err error) {
	f.w.set(f.o, func(s *State) { s.Err = err })
}

func versionOf(obj metav1.Object) string {
	return string(obj.GetUID()) + "/" + obj.GetResourceVersion()
}
