package dryrun

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
			for _, excess := range exceeded(&list.Items[i], needs[namespace]) {
				s.refuseQuota(&list.Items[i], excess)
			}
		}
	}
	slices.SortStableFunc(s.refusals, func(a, b Refusal) int { return s.place(a) - s.place(b) })
	return nil
}

// needs returns the objects that are created in existing namespaces.
func (s *simulation) needs() map[string][]need {
	found := map[string][]need{}
	for i := range s.next.Phases {
		for _, d := range s.next.Phases[i].Objects {
			o := s.objects[d.Key]
			if d.Key.Namespace == "" || o.live != nil || o.now == nil || o.refusal != nil || o.mapping == nil || s.bringsNamespace(d.Key.Namespace) {
				continue
			}
			found[d.Key.Namespace] = append(found[d.Key.Namespace], need{Phase: i, Usage: usageOf(o.mapping.Resource.GroupResource(), o.now)})
		}
	}
	return found
}

func (s *simulation) refuseQuota(quota *corev1.ResourceQuota, e excess) {
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

// need is what an object takes that a phase creates.
type need struct {
	Phase int
	Usage corev1.ResourceList
}

// excess is the first phase whose objects exceed a limit of a quota.
type excess struct {
	Phase   int
	Message string
}

// usageOf is what quotas count of an object, as the API server does.
func usageOf(gr schema.GroupResource, u *unstructured.Unstructured) corev1.ResourceList {
	one := resource.MustParse("1")
	of := corev1.ResourceList{corev1.ResourceName("count/" + gr.String()): one}
	if gr.Group == "" {
		of[corev1.ResourceName(gr.Resource)] = one
	}
	switch gr {
	case schema.GroupResource{Resource: "services"}:
		ports, _, _ := unstructured.NestedSlice(u.Object, "spec", "ports")
		n := *resource.NewQuantity(int64(len(ports)), resource.DecimalSI)
		switch kind, _, _ := unstructured.NestedString(u.Object, "spec", "type"); corev1.ServiceType(kind) {
		case corev1.ServiceTypeNodePort:
			of[corev1.ResourceServicesNodePorts] = n
		case corev1.ServiceTypeLoadBalancer:
			of[corev1.ResourceServicesLoadBalancers] = one
			if allocates, found, _ := unstructured.NestedBool(u.Object, "spec", "allocateLoadBalancerNodePorts"); allocates || !found {
				of[corev1.ResourceServicesNodePorts] = n
			}
		}
	case schema.GroupResource{Resource: "persistentvolumeclaims"}:
		class, _, _ := unstructured.NestedString(u.Object, "spec", "storageClassName")
		text, _, _ := unstructured.NestedString(u.Object, "spec", "resources", "requests", "storage")
		if size, err := resource.ParseQuantity(text); err == nil {
			of[corev1.ResourceRequestsStorage] = size
			if class != "" {
				of[corev1.ResourceName(class+".storageclass.storage.k8s.io/requests.storage")] = size
			}
		}
		if class != "" {
			of[corev1.ResourceName(class+".storageclass.storage.k8s.io/persistentvolumeclaims")] = one
		}
	}
	return of
}

// exceeded returns what objects of a namespace exceed of a quota, in the order of its limits. The needs are in the order of the phases.
func exceeded(quota *corev1.ResourceQuota, needs []need) (found []excess) {
	if len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil {
		return nil // it is about some pods alone
	}
	for _, name := range slices.Sorted(maps.Keys(quota.Spec.Hard)) {
		hard, used := quota.Spec.Hard[name], quota.Status.Used[name]
		total := used.DeepCopy()
		for _, n := range needs {
			more, counts := n.Usage[name]
			if !counts {
				continue
			}
			total.Add(more)
			if total.Cmp(hard) > 0 {
				taken := used.String()
				total.Sub(used)
				found = append(found, excess{n.Phase, fmt.Sprintf(
					"exceeded quota: %s is limited to %s, %s of it used, and what is created up to this phase takes %s more", name, hard.String(), taken, total.String())})
				break
			}
		}
	}
	return found
}
