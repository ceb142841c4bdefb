// Package foreign watches the owners of deployments and lone sets that are of other API groups.
package foreign

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

// Owners watches foreign owners by their metadata. When such an owner is deleted in the foreground,
// the garbage collector would delete the deployment in the foreground too, which the admission
// policy refuses; the engine deletes it in the background instead.
//
// One watch shows all objects of a kind in a namespace, without keeping any: the author of a
// deployment writes its owner references, and could name any number of owners. At most
// limits.ForeignOwners are followed for each object.
type Owners struct {
	// Listen is the function of livestate.Cache.
	Listen func(context.Context, livestate.Selection, livestate.Listener)
	// Mapping is the function of livestate.Cache, which does not send a request.
	Mapping func(gk schema.GroupKind, version string) (*meta.RESTMapping, error)
	// Wake is called with a key if one of its foreign owners is deleted in the foreground, or could
	// not be watched before.
	Wake func(objects.OwnerKey)
	Now  func() time.Time

	mu       sync.Mutex
	followed map[objects.OwnerKey]sets.Set[foreignOwner]
	watches  map[livestate.Selection]*ownerWatch
}

// foreignOwner is an owner as a reference names it, because the UID alone does not locate it.
type foreignOwner struct {
	// of selects all objects of its kind in its namespace.
	of  livestate.Selection
	uid types.UID
}

// ownerWatch is one watch. Its fields are locked by Owners.
type ownerWatch struct {
	all  *Owners
	stop context.CancelFunc
	// owners are the followed owners, with the objects that they own.
	owners map[types.UID]sets.Set[objects.OwnerKey]
	// terminating are the UIDs of objects that are deleted in the foreground.
	terminating sets.Set[types.UID]
	began       time.Time
	listed      bool
	err         error
}

// Follow watches the owners in references for a key, in place of the former ones. It returns a
// reference to an owner that is being deleted in the foreground. Otherwise it returns why an owner
// cannot be watched, and the pause before the next attempt; zero for never.
func (w *Owners) Follow(key objects.OwnerKey, refs []metav1.OwnerReference) (terminating *metav1.OwnerReference, problem string, again time.Duration) {
	if w == nil {
		return nil, "", 0
	}

	wanted := map[foreignOwner]metav1.OwnerReference{}
	left := limits.ForeignOwners
	for _, ref := range refs {
		if objectsets.Ours(&ref) {
			continue
		}
		if left--; left < 0 {
			break
		}
		owner, err := w.find(key, &ref)
		switch {
		case meta.IsNoMatchError(err): // nor can it be deleted in the foreground, until it is served
			again = ownerRetry
		case err != nil:
			problem = cmp.Or(problem, unwatched(&ref, err))
			again = ownerRetry
		default:
			wanted[owner] = ref
		}
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.Now()
	for owner, ref := range wanted {
		watch := w.add(key, owner)
		if watch.terminating.Has(owner.uid) {
			terminating = &ref
		}
		if err := watch.problem(now); err != nil {
			if text := unwatched(&ref, err); problem == "" || text < problem {
				problem = text
			}
		} else if !watch.listed && again == 0 {
			again = limits.ErrorsUnreported
		}
	}

	for owner := range w.followed[key] {
		if _, wants := wanted[owner]; !wants {
			w.remove(key, owner)
		}
	}

	return terminating, problem, again
}

func unwatched(ref *metav1.OwnerReference, err error) string {
	return conditions.Message(fmt.Sprintf("Its owner %s %s cannot be watched; a deletion of that in the foreground waits meanwhile: %v", ref.Kind, ref.Name, err))
}

// ownerRetry is the interval at which discovery of an owner's kind is repeated, since no
// event reports it.
const ownerRetry = time.Minute

// find locates an owner. A reference of a namespaced object names an owner in the same namespace,
// or a cluster-scoped one.
func (w *Owners) find(key objects.OwnerKey, ref *metav1.OwnerReference) (foreignOwner, error) {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	mapping, err := w.Mapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return foreignOwner{}, err
	}
	owner := foreignOwner{of: livestate.Selection{Resource: mapping.Resource}, uid: ref.UID}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if owner.of.Namespace = key.Namespace; key.Namespace == "" {
			return owner, &meta.NoKindMatchError{GroupKind: gvk.GroupKind()}
		}
	}
	return owner, nil
}

// add adds an owner to a watch, and returns it.
func (w *Owners) add(key objects.OwnerKey, owner foreignOwner) *ownerWatch {
	watch := w.watchOf(owner.of)
	if watch.owners[owner.uid] == nil {
		watch.owners[owner.uid] = sets.Set[objects.OwnerKey]{}
	}

	watch.owners[owner.uid].Insert(key)
	if w.followed == nil {
		w.followed = map[objects.OwnerKey]sets.Set[foreignOwner]{}
	}
	if w.followed[key] == nil {
		w.followed[key] = sets.Set[foreignOwner]{}
	}

	w.followed[key].Insert(owner)
	return watch
}

// watchOf returns a watch, and starts it if there is none.
func (w *Owners) watchOf(sel livestate.Selection) *ownerWatch {
	if watch := w.watches[sel]; watch != nil {
		return watch
	}
	ctx, stop := context.WithCancel(context.Background()) // it ends with its last owner, or with the process
	watch := &ownerWatch{all: w, stop: stop, owners: map[types.UID]sets.Set[objects.OwnerKey]{}, terminating: sets.Set[types.UID]{}, began: w.Now()}
	if w.watches == nil {
		w.watches = map[livestate.Selection]*ownerWatch{}
	}
	w.watches[sel] = watch
	panics.Go(ctx, "watching owners", func() { w.Listen(ctx, sel, watch) })
	return watch
}

// remove ends the watch of an owner with the last key.
func (w *Owners) remove(key objects.OwnerKey, owner foreignOwner) {
	if w.followed[key].Delete(owner); len(w.followed[key]) == 0 {
		delete(w.followed, key)
	}
	watch := w.watches[owner.of]
	if watch.owners[owner.uid].Delete(key); len(watch.owners[owner.uid]) > 0 {
		return
	}
	if delete(watch.owners, owner.uid); len(watch.owners) > 0 {
		return
	}
	watch.stop()
	delete(w.watches, owner.of)
}

// problem returns why a watch does not show objects; nil if it does, or might in a moment.
func (w *ownerWatch) problem(now time.Time) error {
	if w.err == nil && !w.listed && now.Sub(w.began) >= limits.ErrorsUnreported {
		return errNotListed
	}
	return w.err
}

var errNotListed = fmt.Errorf("its API server has not listed it within %s", limits.ErrorsUnreported)

// Listed receives all objects of the selection.
func (w *ownerWatch) Listed(all []metav1.Object) {
	w.change(func() {
		w.terminating, w.listed, w.err = sets.Set[types.UID]{}, true, nil
		for _, obj := range all {
			w.see(obj)
		}
	})
}

// Changed receives one object.
func (w *ownerWatch) Changed(obj metav1.Object) { w.change(func() { w.see(obj) }) }

// Deleted receives an object that no longer exists.
func (w *ownerWatch) Deleted(obj metav1.Object) {
	w.change(func() { w.terminating.Delete(obj.GetUID()) })
}

// Failed receives why the watch does not work; it is repeated.
func (w *ownerWatch) Failed(err error) { w.change(func() { w.err = err }) }

func (w *ownerWatch) see(obj metav1.Object) {
	if obj.GetDeletionTimestamp() != nil && slices.Contains(obj.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		w.terminating.Insert(obj.GetUID())
	}
}

// change enqueues the dependents of owners that were deleted in the foreground since, and all
// dependents if the watch starts or stops working.
func (w *ownerWatch) change(do func()) {
	w.all.mu.Lock()
	terminating, problem := w.terminating, w.problem(w.all.Now())
	terminating = terminating.Clone()
	do()
	changed := (problem == nil) != (w.problem(w.all.Now()) == nil)
	keys := sets.Set[objects.OwnerKey]{}
	for uid, of := range w.owners {
		if changed || w.terminating.Has(uid) && !terminating.Has(uid) {
			keys = keys.Union(of)
		}
	}

	w.all.mu.Unlock()
	for key := range maps.Keys(keys) {
		w.all.Wake(key)
	}
}
