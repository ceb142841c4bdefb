// Package quotas foresees which ResourceQuotas new objects exceed together: by their numbers, and the storage of claims.
package quotas

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Need is what an object takes that a phase creates.
type Need struct {
	Phase int
	Usage corev1.ResourceList
}

// Excess is the first phase whose objects exceed a limit of a quota.
type Excess struct {
	Phase   int
	Message string
}

// Usage is what quotas count of an object, as the API server does.
func Usage(gr schema.GroupResource, u *unstructured.Unstructured) corev1.ResourceList {
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

// Exceeded returns what objects of a namespace exceed of a quota, in the order of its limits. The needs are in the order of the phases.
func Exceeded(quota *corev1.ResourceQuota, needs []Need) (found []Excess) {
	if len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil {
		return nil // it is about some pods alone
	}
	for _, name := range slices.Sorted(maps.Keys(quota.Spec.Hard)) {
		hard, used := quota.Spec.Hard[name], quota.Status.Used[name]
		total := used.DeepCopy()
		for _, need := range needs {
			more, counts := need.Usage[name]
			if !counts {
				continue
			}
			total.Add(more)
			if total.Cmp(hard) > 0 {
				taken := used.String()
				total.Sub(used)
				found = append(found, Excess{need.Phase, fmt.Sprintf(
					"exceeded quota: %s is limited to %s, %s of it used, and what is created up to this phase takes %s more", name, hard.String(), taken, total.String())})
				break
			}
		}
	}
	return found
}
