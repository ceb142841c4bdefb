package sources

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
)

const sourceReads = 3 // concurrent reads of members of one watch

// group shows sources of one kind in one namespace by one watch of the metadata of all objects
// there. An event only means that a source has to be read again. The state comes from a read after
// the source became a member, so that neither joining nor an older list can hide a change. Watches
// guards the fields with its lock.
type group struct {
	w   *Watches
	key groupKey
	// members are the listeners of the sources by their refs. Other objects are dropped when they
	// are read.
	members map[Ref]*listener
	// listed is set once the watch shows the objects. err is why it does not work.
	listed bool
	err    error
	// due are the members to read, without duplicates.
	due  workqueue.TypedRateLimitingInterface[Ref]
	stop context.CancelFunc
}

// groupKey is the resource of a group's members and their ref without a name.
type groupKey struct {
	ref      Ref
	resource schema.GroupVersionResource
}

// join adds a source to the group of its kind and namespace, and starts the group with its first
// source. It returns a function that removes the source. w.mu is held.
func (w *Watches) join(ref Ref, resource schema.GroupVersionResource, l *listener) (leave func()) {
	key := groupKey{ref: ref, resource: resource}
	key.ref.Name = ""
	g := w.groups[key]
	if g == nil {
		ctx, stop := context.WithCancel(w.ctx)
		g = &group{
			w: w, key: key, members: map[Ref]*listener{}, stop: stop,
			due: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[Ref](limits.WatchBackoffMin, limits.WatchBackoffMax)),
		}
		w.groups[key] = g
		context.AfterFunc(ctx, g.due.ShutDown)
		panics.Go(ctx, fmt.Sprintf("watching sources of the kind %s in %s", ref.Kind, ref.Namespace), func() {
			w.listen(ctx, livestate.Selection{Resource: resource, Namespace: ref.Namespace, Names: g}, g)
		})
		for range sourceReads {
			panics.Go(ctx, fmt.Sprintf("reading sources of the kind %s in %s", ref.Kind, ref.Namespace), func() { g.readAll(ctx) })
		}
	}

	g.members[ref] = l
	g.enqueue(ref)
	return func() {
		if delete(g.members, ref); len(g.members) == 0 {
			g.stop()
			delete(w.groups, key)
		}
	}
}

// enqueue reads a member once the watch shows it. w.mu is held.
func (g *group) enqueue(ref Ref) {
	if g.members[ref] != nil && (g.listed || g.err != nil) {
		g.due.Add(ref)
	}
}

func (g *group) refOf(name string) Ref {
	ref := g.key.ref
	ref.Name = name
	return ref
}

// Has implements livestate.Names.
func (g *group) Has(name string) bool {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	return g.members[g.refOf(name)] != nil
}

// Listed implements livestate.Listener.
func (g *group) Listed(all []metav1.Object) {
	versions := map[Ref]string{}
	for _, obj := range all {
		versions[g.refOf(obj.GetName())] = versionOf(obj)
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	g.listed = true
	for ref := range g.members {
		g.shown(ref, versions[ref])
	}
}

// Changed implements livestate.Listener.
func (g *group) Changed(obj metav1.Object) {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	g.shown(g.refOf(obj.GetName()), versionOf(obj))
}

// Deleted implements livestate.Listener.
func (g *group) Deleted(obj metav1.Object) {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	g.shown(g.refOf(obj.GetName()), "")
}

// shown reads a source, unless it is known in the version that the watch shows. version is empty
// for a missing object. w.mu is held.
func (g *group) shown(ref Ref, version string) {
	o := g.w.watched[ref]
	if o == nil || o.state.Known && o.state.Err == nil && o.state.Version == version {
		return
	}
	g.enqueue(ref)
}

// Failed implements livestate.Listener.
func (g *group) Failed(err error) {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	if err == nil && g.err == nil {
		return
	}
	g.err = err
	for ref := range g.members {
		g.enqueue(ref)
	}
}

// readAll reads the due members one by one until the group ends.
func (g *group) readAll(ctx context.Context) {
	for {
		ref, ended := g.due.Get()
		if ended {
			return
		}
		err := panics.Guard(ctx, "reading "+ref.String(), func() error { return g.read(ctx, ref) })
		if g.due.Done(ref); err != nil {
			g.due.AddRateLimited(ref)
		} else {
			g.due.Forget(ref)
		}
	}
}

// read reports a member to its listener. It returns an error if the read has to be repeated.
func (g *group) read(ctx context.Context, ref Ref) error {
	g.w.mu.Lock()
	l, failed := g.members[ref], g.err
	g.w.mu.Unlock()
	if l == nil {
		return nil
	}
	if failed != nil {
		l.Failed(failed) // the watch retries by itself
		return nil
	}

	release, err := g.w.starts.Acquire(ctx, ref.Namespace, 1)
	if err != nil {
		return nil // the group has ended
	}

	defer release()
	limited, cancel := context.WithTimeout(ctx, sourcesStart)
	defer cancel()
	obj, err := g.w.read(limited, livestate.Selection{Resource: g.key.resource, Namespace: ref.Namespace, Name: ref.Name, Whole: g.w.Whole})
	switch {
	case apierrors.IsNotFound(err):
		l.Listed(nil)
	case err == nil:
		l.Listed([]metav1.Object{obj})
	case ctx.Err() != nil:
	default:
		if !livestate.IsTransient(err) {
			l.Failed(err)
		}
		return err
	}

	return nil
}
