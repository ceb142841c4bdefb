package objectdeployments

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/rollout"
)

// OwnerWatch watches foreign owners of deployments and lone sets by their
// metadata. When such an owner is deleted in the foreground, the garbage
// collector would delete the deployment in the foreground too, which the
// admission policy refuses; the engine deletes it in the background instead.
type OwnerWatch struct {
	Metadata metadata.Interface
	Mapper   meta.RESTMapper
	// Wake is called when a foreign owner of key begins to go.
	Wake func(rollout.OwnerKey)

	mu      sync.Mutex
	watched map[types.UID]*watchedOwner
}

// watchedOwner is one foreign owner.
type watchedOwner struct {
	stop  context.CancelFunc
	dying bool
	// keys are what it owns.
	keys map[rollout.OwnerKey]struct{}
}

// Dying reports whether the owner that ref points at is being deleted in the
// foreground, and watches it from the first question on.
func (w *OwnerWatch) Dying(key rollout.OwnerKey, namespace string, ref metav1.OwnerReference) (bool, error) {
	if w == nil {
		return false, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.watched[ref.UID]; one != nil {
		one.keys[key] = struct{}{}
		return one.dying, nil
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return false, fmt.Errorf("cannot watch owner %s %s: %w", ref.Kind, ref.Name, err)
	}
	mapping, err := w.Mapper.RESTMapping(gv.WithKind(ref.Kind).GroupKind(), gv.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot watch owner %s %s: %w", ref.Kind, ref.Name, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	// The watch lasts until the owner is forgotten, at the latest as long as the
	// process, which ends with its leadership.
	ctx, stop := context.WithCancel(context.Background())
	if w.watched == nil {
		w.watched = map[types.UID]*watchedOwner{}
	}
	w.watched[ref.UID] = &watchedOwner{stop: stop, keys: map[rollout.OwnerKey]struct{}{key: {}}}
	go w.watch(ctx, w.Metadata.Resource(mapping.Resource).Namespace(namespace), ref)
	return false, nil
}

func (w *OwnerWatch) watch(ctx context.Context, resource metadata.ResourceInterface, ref metav1.OwnerReference) {
	selector := fields.OneTermEqualSelector("metadata.name", ref.Name).String()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return resource.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return resource.Watch(ctx, o)
		},
	}
	see := func(obj any) {
		m, ok := obj.(*metav1.PartialObjectMetadata)
		if !ok || m.UID != ref.UID || m.DeletionTimestamp == nil || !slices.Contains(m.Finalizers, metav1.FinalizerDeleteDependents) {
			return
		}
		w.dies(ref.UID)
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: lw, ObjectType: &metav1.PartialObjectMetadata{},
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, now any) { see(now) }},
	})
	informer.RunWithContext(ctx)
}

// dies notes that an owner is being deleted in the foreground and wakes what it
// owns.
func (w *OwnerWatch) dies(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.watched[uid]
	if one == nil {
		return
	}
	one.dying = true
	for key := range one.keys {
		w.Wake(key)
	}
}

// Forget ends the watch of an owner when nothing is left that it owns.
func (w *OwnerWatch) Forget(key rollout.OwnerKey, uid types.UID) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.watched[uid]
	if one == nil {
		return
	}
	delete(one.keys, key)
	if len(one.keys) == 0 {
		one.stop()
		delete(w.watched, uid)
	}
}

// ownerDies deletes the owner object in the background where a foreign owner of
// it is deleted in the foreground, and reports whether it did.
func (s *session) ownerDies(ctx context.Context) (bool, error) {
	for _, ref := range s.top().GetOwnerReferences() {
		if ours(&ref) {
			continue
		}
		dying, err := s.Owners.Dying(s.key, s.key.Namespace, ref)
		if err != nil || !dying {
			if err != nil {
				return false, err
			}
			continue
		}
		err = s.Client.Delete(ctx, s.top().(client.Object), client.Preconditions{UID: ptr.To(s.top().GetUID())},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil && !apply.IsAbsent(err) {
			return false, fmt.Errorf("cannot delete %s, whose owner %s %s is being deleted: %w", s.key, ref.Kind, ref.Name, err)
		}
		return true, nil
	}
	return false, nil
}
