package objectdeployments

import (
	"context"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

// rejectReserved blocks a revision that contains objects of the engine, or ancestors of
// its owner: the deletion of one would wait for the other.
func (s *reconciliation) rejectReserved(ctx context.Context, rev *engine.Revision) error {
	if s.ref != nil {
		return nil // the target has no object of this engine
	}

	ofEngine := objectsets.OfEngine(s.rollout.Owner, s.Namespace)
	ancestors := sync.OnceValues(func() (map[objects.Key]struct{}, error) { return s.ancestors(ctx) })
	var failed error
	objectsets.RejectReserved(rev, func(key objects.Key) string {
		if key.Group == corev1alpha1.GroupVersion.Group && rev.Class(key) == "" {
			all, err := ancestors()
			if _, is := all[key]; is {
				return "the package itself belongs to it, so that its deletion would never end: remove it, or rename it"
			}
			failed = err
		}
		return ofEngine(key)
	})

	return failed
}

// ancestors returns the objects of our kinds that the owner depends on: itself, its sets
// and slices, its Package, the deployment that manages that Package, and so on.
func (s *reconciliation) ancestors(ctx context.Context) (map[objects.Key]struct{}, error) {
	ancestors := map[objects.Key]struct{}{}
	next := []objects.Key{ownKey(s.key.Kind, s.key.Namespace, s.key.Name)}
	for len(next) > 0 && len(ancestors) < limits.Ancestors {
		key := next[0]
		next = next[1:]
		if _, seen := ancestors[key]; seen {
			continue
		}
		ancestors[key] = struct{}{}
		owners, err := s.ownersOf(ctx, key)
		if err != nil {
			return nil, err
		}
		next = append(next, owners...)
	}

	if s.phase != nil { // the only set is the owner itself
		return ancestors, nil
	}
	for _, set := range s.sets {
		ancestors[ownKey(s.scope.Kind("ObjectSet"), set.GetNamespace(), set.GetName())] = struct{}{}
		for _, name := range objectsets.SlicesOf(set) {
			ancestors[ownKey(s.scope.Kind("ObjectSlice"), set.GetNamespace(), name)] = struct{}{}
		}
	}

	return ancestors, nil
}

// ownersOf returns the owners of an object that are of our kinds.
func (s *reconciliation) ownersOf(ctx context.Context, key objects.Key) ([]objects.Key, error) {
	scope := corev1alpha1.ScopeOf(key.Namespace)
	obj := map[string]client.Object{
		scope.Kind("Package"): scope.NewPackage(), scope.Kind("ObjectDeployment"): scope.NewObjectDeployment(), scope.Kind("ObjectSet"): scope.NewObjectSet(),
	}[key.Kind]
	switch {
	case key == ownKey(s.key.Kind, s.key.Namespace, s.key.Name):
		obj = s.top()
	case obj == nil:
		return nil, nil
	default:
		err := s.Client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, obj)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot determine the owners of %s: %w", s.key, err)
		}
	}

	var owners []objects.Key
	for _, ref := range obj.GetOwnerReferences() {
		if !objectsets.Ours(&ref) {
			continue
		}
		namespace := key.Namespace
		if strings.HasPrefix(ref.Kind, "Cluster") {
			namespace = ""
		}
		owners = append(owners, ownKey(ref.Kind, namespace, ref.Name))
	}

	return owners, nil
}

// ownKey returns the key of an object of this API group.
func ownKey(kind, namespace, name string) objects.Key {
	return objects.Key{Group: corev1alpha1.GroupVersion.Group, Kind: kind, Namespace: namespace, Name: name}
}
