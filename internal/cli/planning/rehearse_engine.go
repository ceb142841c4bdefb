package planning

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/loader/document"
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
	crds, err := ownDefinitions()
	if err != nil {
		return err
	}
	if err := c.definitions(ctx, cl, crds, report); err != nil {
		return err
	}
	for _, crd := range crds {
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

// ownDefinitions are those of this version.
func ownDefinitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	own, err := config.Objects(config.FolderCRDs)
	if err != nil {
		return nil, err
	}
	all := make([]map[string]any, 0, len(own))
	for _, u := range own {
		all = append(all, u.Object)
	}
	return DefinitionsIn(all)
}

// readDefinitions reads those of another version from a file: other documents, such as those of a whole install, are skipped.
func (c *rehearseCommand) readDefinitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	name, data, err := content.ReadInput(c.crds, c.Streams.In)
	if err != nil {
		return nil, fmt.Errorf("read the definitions: %w", err)
	}
	var all []map[string]any
	problems := document.Each(name, data, func(d *document.Document) {
		if m, ok := d.Value.(map[string]any); ok {
			all = append(all, m)
		}
	})
	if err := problems.Err(); err != nil {
		return nil, fmt.Errorf("the definitions cannot be read: %w", err)
	}
	found, err := DefinitionsIn(all)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s has no CustomResourceDefinition of the group %s: name the YAML of an install, or the output of helm get manifest", name, corev1alpha1.GroupName)
	}
	return found, err
}

// definitions adds which stored objects have fields that are pruned where definitions replace those of the cluster.
func (c *rehearseCommand) definitions(ctx context.Context, cl *cluster.Cluster, others []*apiextensionsv1.CustomResourceDefinition, report *rehearsalReport) error {
	kinds, err := cl.AnyKind()
	if err != nil {
		return err
	}
	return addPrunings(Prunings(ctx, kinds, others), len(others), report)
}

// addPrunings adds what was found of so many definitions.
func addPrunings(prunings []Pruning, of int, report *rehearsalReport) error {
	var hidden []string
	for i := range prunings {
		n := &prunings[i]
		switch {
		case apierrors.IsForbidden(n.Err):
			hidden = append(hidden, n.CRD.Name)
		case n.Err != nil:
			return n.Err
		case len(n.Users) == 0 && len(n.Pruned) > 0:
			report.Permits = append(report.Permits, n.PermitCommand())
		}
		for j := range n.Users {
			report.Findings = append(report.Findings, prunedOf(n, j))
		}
		for j := range n.Refused {
			report.Findings = append(report.Findings, refusedOf(n, j))
		}
	}
	if len(hidden) == 0 {
		return nil
	}
	what := "the CustomResourceDefinitions, and all of their objects"
	if len(hidden) < of {
		what += ", of " + strings.Join(hidden, ", ")
	}
	report.NotSeen = append(report.NotSeen, what)
	return nil
}

// prunedOf returns the finding about an object with fields that are pruned.
func prunedOf(n *Pruning, i int) finding {
	return aboutFields(fieldPruned, n.Users, n.More, i, "the definition lacks ", ", ", ": leave the newer one in place, or do without")
}

// refusedOf returns the finding about an object with fields that are refused.
func refusedOf(n *Pruning, i int) finding {
	return aboutFields(fieldRefused, n.Refused, n.MoreRefused, i, "the definition refuses ", "; ", ": correct the object first, or leave the present definition in place")
}

// aboutFields returns the finding about one of several objects of a kind.
func aboutFields(typ findingType, users []FieldUser, moreUsers, i int, begin, separator, remedy string) finding {
	user := &users[i]
	fields := user.Fields[:min(len(user.Fields), fieldsShown)]
	message := begin + strings.Join(fields, separator)
	if more := len(user.Fields) - len(fields); more > 0 {
		message += fmt.Sprintf(" and %d more", more)
	}
	message += remedy
	if moreUsers > 0 && i == len(users)-1 {
		message += fmt.Sprintf(" (and %d more of this kind)", moreUsers)
	}
	f := finding{Finding: typ, Object: user.Key.String(), Message: message}
	if strings.HasSuffix(user.Kind, "Package") {
		f.Kind, f.Namespace, f.Name = user.Kind, user.Namespace, user.Name
	}
	return f
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
