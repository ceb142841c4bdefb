package planning

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/internal/cli/cluster"
)

// engine adds what the manager of this version needs and the cluster does not have: kinds that are not served, and rights that its
// service account lacks, as the readiness of a standby asks for them.
func (c *rehearseCommand) engine(ctx context.Context, cl *cluster.Cluster, report *rehearsalReport) error {
	reviews, err := kubernetes.NewForConfig(cl.Config)
	if err != nil {
		return err
	}
	needed := []authorizationv1.ResourceAttributes{{
		Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease,
	}}
	crds, err := config.Objects(config.FolderCRDs)
	if err != nil {
		return err
	}
	for _, u := range crds {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd); err != nil {
			return err
		}
		gk := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
		for _, v := range crd.Spec.Versions {
			if _, err := c.shared.at.Mapper.RESTMapping(gk, v.Name); meta.IsNoMatchError(err) {
				report.Findings = append(report.Findings, finding{
					Finding: notServed, Object: gk.String(), Message: "the cluster does not serve version " + v.Name + ": install the CRDs of this version first, which are in config/crds",
				})
			} else if err != nil {
				return err
			}
		}
		for _, verb := range []string{"list", "watch", "patch"} {
			needed = append(needed, authorizationv1.ResourceAttributes{Verb: verb, Group: gk.Group, Resource: crd.Spec.Names.Plural})
		}
	}
	for i := range needed {
		lacks, why, err := lacksRight(ctx, reviews, &needed[i])
		if apierrors.IsForbidden(err) {
			report.NotSeen = append(report.NotSeen, "the rights of the manager")
			return nil
		}
		if err != nil {
			return err
		}
		if lacks {
			report.Findings = append(report.Findings, finding{
				Finding: missingRight, Object: "ServiceAccount " + corev1alpha1.DefaultNamespace + "/" + config.ServiceAccount,
				Message: fmt.Sprintf("%s %s.%s%s: install the roles of this version first, which are in config/rbac", needed[i].Verb, needed[i].Resource, needed[i].Group, why),
			})
		}
	}
	return nil
}

// lacksRight asks whether the service account of the manager may not do something.
func lacksRight(ctx context.Context, reviews kubernetes.Interface, to *authorizationv1.ResourceAttributes) (lacks bool, why string, err error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + corev1alpha1.DefaultNamespace + ":" + config.ServiceAccount,
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + corev1alpha1.DefaultNamespace, "system:authenticated"},
		ResourceAttributes: to,
	}}
	if review, err = reviews.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{}); err != nil {
		return false, "", err
	}
	if why = review.Status.EvaluationError; why != "" {
		why = " (" + why + ")"
	}
	return !review.Status.Allowed, why, nil
}
