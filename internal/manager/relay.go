package manager

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"lockstep.run/lockstep/internal/cluster/livestate"
)

// relay gives an informer one list and one watch without an end. It follows a
// source whose watches end and whose lists are repeated, and passes on what
// differs. It shares its objects with the informer's cache.
type relay struct {
	source toolscache.ListerWatcherWithContext
	of     runtime.Object
	begin  sync.Once
	// listed is closed when the first list is there.
	listed chan struct{}
	events chan watch.Event
	// ctx is that of the informer; set by begin.
	ctx context.Context

	mu       sync.Mutex
	complete bool
	known    map[toolscache.ObjectName]object
	version  string
	progress livestate.Progress
	// kin is for each owner of sets the one that came last of those that own objects,
	// and of those that own none: what it says of its owner the others say too.
	kin     map[ofOwner]object
	history history
}

// object is what informers hold.
type object interface {
	runtime.Object
	metav1.Object
}

// newRelay returns a relay of the objects that are like of. newest is shared by the
// relays of our own kinds.
func newRelay(source toolscache.ListerWatcherWithContext, of runtime.Object, newest *livestate.Newest) *relay {
	return &relay{
		source: source, of: of, listed: make(chan struct{}), events: make(chan watch.Event),
		progress: livestate.Progress{Newest: newest},
		known:    map[toolscache.ObjectName]object{}, kin: map[ofOwner]object{},
	}
}

// IsWatchListSemanticsUnSupported has the informer ask for a list.
func (r *relay) IsWatchListSemanticsUnSupported() bool { return true }

// ListWithContext returns what is known, as soon as that is complete. The context
// is that of the informer.
func (r *relay) ListWithContext(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	r.begin.Do(func() {
		r.ctx = ctx
		go r.follow(ctx)
	})
	select {
	case <-r.listed:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	list := &internalversion.List{ListMeta: metav1.ListMeta{ResourceVersion: r.version}}
	for _, o := range r.known {
		list.Items = append(list.Items, o)
	}
	return list, nil
}

// WatchWithContext returns what changes after the list.
func (r *relay) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewProxyWatcher(r.events), nil
}

// List and Watch are those of a ListerWatcher; informers use the methods with a
// context.
func (r *relay) List(options metav1.ListOptions) (runtime.Object, error) {
	return r.ListWithContext(context.Background(), options)
}

// Watch returns what changes after the list.
func (r *relay) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return r.WatchWithContext(context.Background(), options)
}

// Transformer has a streamed list drop what is not read, object by object.
func (r *relay) Transformer() toolscache.TransformFunc { return trim }

// Add passes a new object on.
func (r *relay) Add(obj any) error { return r.Update(obj) }

// Update passes a changed object on.
func (r *relay) Update(obj any) error {
	o, name, err := named(obj)
	if err != nil {
		return err
	}
	r.mu.Lock()
	old := r.known[name]
	o = r.slim(o, old)
	r.known[toolscache.MetaObjectToName(o)] = o
	r.progress.Advance(o.GetResourceVersion())
	r.mu.Unlock()
	r.send(changes(old, o)...)
	return nil
}

// Delete passes a deletion on.
func (r *relay) Delete(obj any) error {
	o, name, err := named(obj)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.forget(r.known[name])
	delete(r.known, name)
	r.progress.Advance(o.GetResourceVersion())
	r.mu.Unlock()
	r.send(watch.Event{Type: watch.Deleted, Object: o})
	return nil
}

// Replace takes over a list, and passes on what it says that was not known; one
// that is to be asked for again is an error.
func (r *relay) Replace(items []any, version string) error {
	next := make(map[toolscache.ObjectName]object, len(items))
	for _, item := range items {
		o, name, err := named(item)
		if err != nil {
			return err
		}
		next[name] = o
	}
	r.mu.Lock()
	if err := r.progress.Accept(version); err != nil {
		r.mu.Unlock()
		return err
	}
	r.progress.Restart(version)
	first := !r.complete
	var events []watch.Event
	for name, old := range r.known {
		if next[name] == nil {
			r.forget(old)
			events = append(events, gone(old))
		}
	}
	for name, o := range next {
		old := r.known[name]
		if same(old, o) {
			next[name] = old
			continue
		}
		o = r.slim(o, old)
		next[name] = o
		events = append(events, changes(old, o)...)
	}
	r.known, r.version, r.complete = next, version, true
	r.mu.Unlock()
	if first {
		close(r.listed) // the informer lists it
		return nil
	}
	r.send(events...)
	return nil
}

// Resync does nothing: the informer does that by itself.
func (r *relay) Resync() error { return nil }

func (r *relay) send(events ...watch.Event) {
	for _, e := range events {
		select {
		case r.events <- e:
		case <-r.ctx.Done():
			return
		}
	}
}

// named returns an object as the informer's cache keeps it.
func named(obj any) (object, toolscache.ObjectName, error) {
	trimmed, err := trim(obj)
	if err != nil {
		return nil, toolscache.ObjectName{}, err
	}
	o, ok := trimmed.(object)
	if !ok {
		return nil, toolscache.ObjectName{}, fmt.Errorf("a watch delivered an unexpected %T", obj)
	}
	return o, toolscache.MetaObjectToName(o), nil
}

// changes are the events that lead from one object to another of the same name.
func changes(old, now object) []watch.Event {
	switch {
	case old == nil:
		return []watch.Event{{Type: watch.Added, Object: now}}
	case old.GetUID() != now.GetUID():
		return []watch.Event{gone(old), {Type: watch.Added, Object: now}}
	}
	return []watch.Event{{Type: watch.Modified, Object: now}}
}

// gone is the event of an object that a list does not have any more.
func gone(old object) watch.Event {
	return watch.Event{Type: watch.Deleted, Object: old.DeepCopyObject()}
}

func same(a, b object) bool {
	return a != nil && a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion()
}
