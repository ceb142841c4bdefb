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

type need struct {
	phase int
	of    corev1.ResourceList
}

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
			s.exhaust(&list.Items[i], needs[namespace])
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
			found[d.Key.Namespace] = append(found[d.Key.Namespace], need{i, usage(o.mapping.Resource.GroupResource(), o.now)})
		}
	}
	return found
}

// usage counts as the API server does.
func usage(gr schema.GroupResource, u *unstructured.Unstructured) corev1.ResourceList {
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

func (s *simulation) exhaust(quota *corev1.ResourceQuota, needs []need) {
	if len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil {
		return // it is about some pods alone
	}
	for _, name := range slices.Sorted(maps.Keys(quota.Spec.Hard)) {
		hard, used := quota.Spec.Hard[name], quota.Status.Used[name]
		total := used.DeepCopy()
		for _, need := range needs {
			more, counts := need.of[name]
			if !counts {
				continue
			}
			total.Add(more)
			if total.Cmp(hard) > 0 {
				taken := used.String()
				total.Sub(used)
				s.refuseQuota(quota, need.phase, fmt.Sprintf(
					"exceeded quota: %s is limited to %s, %s of it used, and what is created up to this phase takes %s more", name, hard.String(), taken, total.String()))
				break
			}
		}
	}
}

func (s *simulation) refuseQuota(quota *corev1.ResourceQuota, phase int, message string) {
	s.refusals = append(s.refusals, Refusal{
		Phase: s.next.Phases[phase].Name, Kind: "ResourceQuota", Namespace: quota.Namespace, Name: quota.Name, Message: message,
	})
	s.reached = false
	for i := phase + 1; i < len(s.next.Phases); i++ {
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
