package dryrun

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/internal/cli/dryrun/quotas"
)

// quotas finds the quotas that the new objects exhaust together, since each dry run stands alone:
// numbers of objects, and the storage of claims.
func (s *simulation) quotas(ctx context.Context, in *input) error {
	needs := s.needs()
	for _, namespace := range slices.Sorted(maps.Keys(needs)) {
		list := &corev1.ResourceQuotaList{}
		err := s.Quotas.List(ctx, list, client.InNamespace(namespace))
		if apierrors.IsForbidden(err) {
			in.warnings = append(in.warnings, fmt.Sprintf("you may not read the quotas of namespace %s: whether the new objects fit in together is not known", namespace))
			continue
		}
		if err != nil {
			return fmt.Errorf("read the quotas of namespace %s: %w", namespace, err)
		}
		for i := range list.Items {
			for _, excess := range quotas.Exceeded(&list.Items[i], needs[namespace]) {
				s.refuseQuota(&list.Items[i], excess)
			}
		}
	}
	slices.SortStableFunc(s.refusals, func(a, b Refusal) int { return s.place(a) - s.place(b) })
	return nil
}

// needs returns the objects that are created in existing namespaces.
func (s *simulation) needs() map[string][]quotas.Need {
	found := map[string][]quotas.Need{}
	for i := range s.next.Phases {
		for _, d := range s.next.Phases[i].Objects {
			o := s.objects[d.Key]
			if d.Key.Namespace == "" || o.live != nil || o.now == nil || o.refusal != nil || o.mapping == nil || s.bringsNamespace(d.Key.Namespace) {
				continue
			}
			found[d.Key.Namespace] = append(found[d.Key.Namespace], quotas.Need{Phase: i, Usage: quotas.Usage(o.mapping.Resource.GroupResource(), o.now)})
		}
	}
	return found
}

func (s *simulation) refuseQuota(quota *corev1.ResourceQuota, e quotas.Excess) {
	s.refusals = append(s.refusals, Refusal{
		Phase: s.next.Phases[e.Phase].Name, Kind: "ResourceQuota", Namespace: quota.Namespace, Name: quota.Name, Message: e.Message,
	})
	s.reached = false
	for i := e.Phase + 1; i < len(s.next.Phases); i++ {
		for _, d := range s.next.Phases[i].Objects {
			s.objects[d.Key].reached = false
		}
	}
	for _, r := range s.removed {
		if d, _ := s.next.Find(r.key); d == nil {
			s.objects[r.key].reached = false // removed after the last phase
		}
	}
}

func (s *simulation) place(r Refusal) int {
	for i := range s.next.Phases {
		if s.next.Phases[i].Name == r.Phase {
			return i
		}
	}
	return -1
}
