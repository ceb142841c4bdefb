package objectdeployments

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objectsets"
)

// ownerIndex finds sets by the owner that they belong to.
const ownerIndex = "owner"

// IndexSets indexes the sets of both scopes by their owner, which the Client of a Home
// needs.
func IndexSets(ctx context.Context, indexer client.FieldIndexer) error {
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		index := func(obj client.Object) []string {
			return []string{objectsets.OwnerOf(obj.(corev1alpha1.GenericObjectSet)).String()}
		}
		if err := indexer.IndexField(ctx, scope.NewObjectSet().(client.Object), ownerIndex, index); err != nil {
			return fmt.Errorf("cannot index sets by owner: %w", err)
		}
	}
	return nil
}

// listSets reads the sets of the owner from the cache and from this process's own writes.
func (s *reconciliation) listSets(ctx context.Context) error {
	if strings.HasSuffix(s.key.Kind, "ObjectSetPhase") {
		return s.readPhase(ctx)
	}

	list := s.scope.NewObjectSetList()
	if err := s.Client.List(ctx, list.(client.ObjectList), client.InNamespace(s.key.Namespace), client.MatchingFields{ownerIndex: s.key.String()}); err != nil {
		return err
	}

	s.sets, s.former = nil, nil
	seen := map[types.UID]bool{}
	for _, set := range list.GenericObjectSets() {
		seen[set.GetUID()] = true
		newest, ok := s.Fresh.Latest(set).(corev1alpha1.GenericObjectSet)
		switch {
		case !ok:
		case s.deployment == nil || objectsets.DeploymentOf(newest) == s.deployment.GetUID() || s.remote() && s.deployment.GetDeletionTimestamp() != nil:
			s.sets = append(s.sets, newest)
		default:
			s.former = append(s.former, newest)
		}
	}

	// The cache can lack sets that this process has just created. Without them, the next step would
	// create them again.
	for _, created := range s.Fresh.Created(s.key.String()) {
		if set, ok := created.(corev1alpha1.GenericObjectSet); ok && !seen[set.GetUID()] {
			s.sets = append(s.sets, set)
		}
	}

	slices.SortFunc(s.sets, func(a, b corev1alpha1.GenericObjectSet) int {
		return cmp.Or(cmp.Compare(a.ObjectSetSpec().Revision, b.ObjectSetSpec().Revision), cmp.Compare(a.GetName(), b.GetName()))
	})
	return nil
}

// readPhase reads an ObjectSetPhase as the only set.
func (s *reconciliation) readPhase(ctx context.Context) (err error) {
	s.sets, s.former = nil, nil
	if s.Phases == nil {
		return nil
	}
	if s.phase, err = s.Phases.Read(ctx, s.key); err == nil && s.phase != nil {
		s.sets = []corev1alpha1.GenericObjectSet{s.phase}
	}
	return err
}
