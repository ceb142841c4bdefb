package dryrun

import (
	"context"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/dryrun/privileges"
	"lockstep.run/lockstep/internal/objects"
)

// privileges returns the rules that the roles and bindings of the package grant after the
// rollout and not before.
func (s *simulation) privileges(ctx context.Context) ([]PrivilegeGain, error) {
	before, after := privileges.Objects{}, privileges.Objects{}
	for key, o := range s.objects {
		if key.Group == rbacv1.GroupName {
			before[key], after[key] = o.live, o.now
		}
	}
	gains, err := privileges.Gains(before, after, func(role objects.Key) (*unstructured.Unstructured, error) {
		mapping, err := s.Mapper.RESTMapping(schema.GroupKind{Group: rbacv1.GroupName, Kind: role.Kind}, "v1")
		if err != nil {
			return nil, nil
		}
		live, err := s.Writer.Get(ctx, mapping, role.Namespace, role.Name)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return nil, nil // a binding to an absent role grants nothing
		}
		return live, err
	})
	var found []PrivilegeGain
	for _, g := range gains {
		found = append(found, PrivilegeGain{
			Subject: g.Subject, Role: objectName(g.Role), Binding: objectName(g.Binding), Namespace: g.Namespace,
			Verbs: g.Rule.Verbs, APIGroups: g.Rule.APIGroups, Resources: g.Rule.Resources, Names: g.Rule.ResourceNames, URLs: g.Rule.NonResourceURLs,
		})
	}
	return found, err
}

func sortedKeys[V any](of map[objects.Key]V) []objects.Key {
	return slices.SortedFunc(maps.Keys(of), objects.Key.Compare)
}
