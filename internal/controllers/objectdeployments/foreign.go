package objectdeployments

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/objects"
)

// OwnerWatch watches foreign owners of deployments and lone sets by their
// metadata. When such an owner is deleted in the foreground, the garbage
// collector would delete the deployment in the foreground too, which the
// admission policy refuses; the engine deletes it in the background instead.
type OwnerWatch struct {
	// Listen is that of livestate.Cache.
	Listen func(context.Context, livestate.Selection, livestate.Listener)
	Mapper meta.RESTMapper
	// Wake is called with a key whose foreign owner is deleted in the foreground.
	Wake func(objects.OwnerKey)

	mu      sync.Mutex
	watched map[types.UID]*watchedOwner
}

// watchedOwner is one foreign owner.
type watchedOwner struct {
	stop        context.CancelFunc
	terminating bool
	// keys are the objects that it owns.
	keys map[objects.OwnerKey]struct{}
}

// Terminating reports whether an owner is being deleted in the foreground. It watches
// the owner from the first call on.
func (w *OwnerWatch) Terminating(key objects.OwnerKey, namespace string, ref metav1.OwnerReference) (bool, error) {
	if w == nil {
		return false, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if owner := w.watched[ref.UID]; owner != nil {
		owner.keys[key] = struct{}{}
		return owner.terminating, nil
	}
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	mapping, err := w.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot watch owner %s %s: %w", ref.Kind, ref.Name, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	// The watch ends when the owner is forgotten, or with the process.
	ctx, stop := context.WithCancel(context.Background())
	if w.watched == nil {
		w.watched = map[types.UID]*watchedOwner{}
	}
	w.watched[ref.UID] = &watchedOwner{stop: stop, keys: map[objects.OwnerKey]struct{}{key: {}}}
	go w.Listen(ctx, livestate.Selection{Resource: mapping.Resource, Namespace: namespace, Name: ref.Name}, ownerListener{w, ref.UID})
	return false, nil
}

// ownerListener receives the states of one owner.
type ownerListener struct {
	*OwnerWatch
	uid types.UID
}

// Listed receives the object of the owner's name, if there is one.
func (l ownerListener) Listed(all []metav1.Object) {
	for _, obj := range all {
		l.Changed(obj)
	}
}

// Changed enqueues what the owner owns if it is deleted in the foreground.
func (l ownerListener) Changed(obj metav1.Object) {
	if obj.GetUID() != l.uid || obj.GetDeletionTimestamp() == nil || !slices.Contains(obj.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if owner := l.watched[l.uid]; owner != nil {
		owner.terminating = true
		for key := range owner.keys {
			l.Wake(key)
		}
	}
}

// Deleted does nothing.
func (ownerListener) Deleted(metav1.Object) {}

// Failed does nothing: the watch is repeated.
func (ownerListener) Failed(error) {}

// Forget ends the watch of an owner when nothing is left that it owns.
func (w *OwnerWatch) Forget(key objects.OwnerKey, uid types.UID) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	owner := w.watched[uid]
	if owner == nil {
		return
	}
	delete(owner.keys, key)
	if len(owner.keys) == 0 {
		owner.stop()
		delete(w.watched, uid)
	}
}

// ownerTerminating deletes the owner object in the background where a foreign owner of
// it is deleted in the foreground, and reports whether it did.
func (s *reconciliation) ownerTerminating(ctx context.Context) (bool, error) {
	for _, ref := range s.top().GetOwnerReferences() {
		if ours(&ref) {
			continue
		}
		terminating, err := s.Owners.Terminating(s.key, s.key.Namespace, ref)
		if err != nil || !terminating {
			if err != nil {
				return false, err
			}
			continue
		}
		err = s.Client.Delete(ctx, apiObject(s.top()), client.Preconditions{UID: ptr.To(s.top().GetUID())},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil && !apply.IsAbsent(err) {
			return false, fmt.Errorf("cannot delete %s, whose owner %s %s is being deleted: %w", s.key, ref.Kind, ref.Name, err)
		}
		return true, nil
	}
	return false, nil
}
