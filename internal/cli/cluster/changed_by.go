package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var changedByBinding = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingAdmissionPolicyBinding"}

// RecordsUsers returns since when the policy of config/audit records who changes a package; zero where it does not, or that may not be
// read. Any client may have written the former annotation.
func (c *Cluster) RecordsUsers(ctx context.Context) metav1.Time {
	binding := &metav1.PartialObjectMetadata{}
	binding.SetGroupVersionKind(changedByBinding)
	if err := c.Get(ctx, client.ObjectKey{Name: "lockstep-changed-by"}, binding); err != nil {
		return metav1.Time{}
	}
	return binding.GetCreationTimestamp()
}
