package deployments

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/rollout"
)

// spare refuses a revision with objects of the engine, and with objects that its owner
// hangs on: a deletion of one would wait for the other.
func (s *session) spare(ctx context.Context, rev *rollout.Revision) error {
	ofEngine := rollout.OfEngine(s.rollout.Owner, s.Namespace)
	above := map[objects.Key]struct{}{}
	if slices.ContainsFunc(rev.Keys(), func(k objects.Key) bool { return k.Group == corev1alpha1.GroupVersion.Group }) {
		var err error
		if above, err = s.above(ctx); err != nil {
			return err
		}
	}
	rev.Spare(func(key objects.Key) string {
		if _, is := above[key]; is {
			return "the package itself belongs to it, so that its deletion would never end: remove it, or rename it"
		}
		return ofEngine(key)
	})
	return nil
}

// spareAll is spare for a teardown: what the owner hangs on may be others by now.
func (s *session) spareAll(ctx context.Context) error {
	for _, rev := range s.rollout.Revisions() {
		if err := s.spare(ctx, rev); err != nil {
			return err
		}
	}
	return nil
}

// above returns the objects of our kinds that the owner hangs on: itself, its sets and
// slices, the Package that has it, the deployment that has that Package, and so on.
func (s *session) above(ctx context.Context) (map[objects.Key]struct{}, error) {
	above := map[objects.Key]struct{}{}
	next := []objects.Key{ownKey(s.key.Kind, s.key.Namespace, s.key.Name)}
	for len(next) > 0 && len(above) < limits.OwnersAbove {
		key := next[0]
		next = next[1:]
		if _, seen := above[key]; seen {
			continue
		}
		above[key] = struct{}{}
		owners, err := s.ownersOf(ctx, key)
		if err != nil {
			return nil, err
		}
		next = append(next, owners...)
	}
	for _, set := range s.sets {
		above[ownKey(s.scope.Kind("ObjectSet"), set.GetNamespace(), set.GetName())] = struct{}{}
		for _, name := range slicesOf(set) {
			above[ownKey(s.scope.Kind("ObjectSlice"), set.GetNamespace(), name)] = struct{}{}
		}
	}
	return above, nil
}

// ownersOf returns the objects of our kinds that an object has as its owners.
func (s *session) ownersOf(ctx context.Context, key objects.Key) ([]objects.Key, error) {
	var obj client.Object
	scope := corev1alpha1.ScopeOf(key.Namespace)
	switch {
	case key.Kind == s.key.Kind && key.Namespace == s.key.Namespace && key.Name == s.key.Name:
		obj = s.top().(client.Object)
	case key.Kind == scope.Kind("Package"):
		obj = scope.NewPackage().(client.Object)
	case key.Kind == scope.Kind("ObjectDeployment"):
		obj = scope.NewObjectDeployment().(client.Object)
	case key.Kind == scope.Kind("ObjectSet"):
		obj = scope.NewObjectSet().(client.Object)
	default:
		return nil, nil
	}
	if obj.GetUID() == "" {
		err := s.Client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, obj)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot find out what %s belongs to: %w", s.key, err)
		}
	}
	var owners []objects.Key
	for _, ref := range obj.GetOwnerReferences() {
		if !ours(&ref) {
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

func ownKey(kind, namespace, name string) objects.Key {
	return objects.Key{Group: corev1alpha1.GroupVersion.Group, Kind: kind, Namespace: namespace, Name: name}
}
