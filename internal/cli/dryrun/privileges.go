package dryrun

import (
	"cmp"
	"context"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-helpers/auth/rbac/validation"

	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/objects"
)

// privileges returns the rules that the roles and bindings of the package grant only after the
// rollout. It evaluates them like RBAC, with rules that cover each other and cluster roles that
// aggregate others.
func (s *simulation) privileges(ctx context.Context) ([]PrivilegeGain, error) {
	was, is, own := newGrants(), newGrants(), map[objects.Key]bool{}
	for key, o := range s.objects {
		// Only the roles and bindings of the package itself can change.
		if key.Group == rbacv1.GroupName {
			own[key] = true
			was.add(key, o.live)
			is.add(key, o.now)
		}
	}

	for _, g := range []*grants{was, is} {
		for _, b := range g.bindings {
			if _, known := g.roles[b.role]; known || own[b.role] {
				continue
			}
			live, err := s.foreignRole(ctx, b.role)
			if err != nil {
				return nil, err
			}
			was.add(b.role, live)
			is.add(b.role, live)
		}
	}

	was.aggregate()
	is.aggregate()
	found, bound := gainsBySubject(was, is)
	return append(found, gainsByRole(own, was, is, bound)...), nil
}

// foreignRole reads a role that a binding of the package names; nil if the role grants nothing.
func (s *simulation) foreignRole(ctx context.Context, role objects.Key) (*unstructured.Unstructured, error) {
	mapping, err := s.Mapper.RESTMapping(schema.GroupKind{Group: rbacv1.GroupName, Kind: role.Kind}, "v1")
	if err != nil {
		// An API server without this kind of role cannot grant it.
		return nil, nil
	}
	live, err := s.Writer.Get(ctx, mapping, role.Namespace, role.Name)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil // a binding to an absent role grants nothing
	}
	return live, err
}

// gainOf returns the gain of a subject by a rule. binding is empty if the role is bound elsewhere.
func gainOf(subject string, role, binding objects.Key, namespace string, rule *rbacv1.PolicyRule) PrivilegeGain {
	return PrivilegeGain{
		Subject: subject, Role: objectdiff.Short(role), Binding: objectdiff.Short(binding), Namespace: namespace,
		Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, Names: rule.ResourceNames, URLs: rule.NonResourceURLs,
	}
}

// grants are the roles and bindings of one state of the cluster. A Role has the fields of a
// ClusterRole.
type grants struct {
	roles    map[objects.Key]rbacv1.ClusterRole
	bindings map[objects.Key]binding
}

// binding gives a role to subjects. Namespaces of ServiceAccounts are always set.
type binding struct {
	role     objects.Key
	subjects []rbacv1.Subject
}

// gainsBySubject also returns the bound roles.
func gainsBySubject(before, after *grants) (found []PrivilegeGain, bound map[objects.Key]bool) {
	bound = map[objects.Key]bool{}
	for _, key := range sortedKeys(after.bindings) {
		b := after.bindings[key]
		bound[b.role] = true
		for _, subject := range b.subjects {
			for _, rule := range uncovered(before.rulesOf(subject, key.Namespace), after.roles[b.role].Rules) {
				name := objects.Key{Kind: subject.Kind, Namespace: subject.Namespace, Name: subject.Name}
				found = append(found, gainOf(name.String(), b.role, key, key.Namespace, &rule))
			}
		}
	}
	return found, bound
}

// gainsByRole returns the gains of the package's roles that no binding of the package names. A role
// that is aggregated into a standard one also counts if it is bound.
func gainsByRole(own map[objects.Key]bool, before, after *grants, bound map[objects.Key]bool) []PrivilegeGain {
	var found []PrivilegeGain
	for _, key := range sortedKeys(after.roles) {
		role := after.roles[key]
		var subjects []string
		// The labels are the ones of the API server's standard roles.
		for _, name := range []string{"admin", "edit", "view"} {
			if role.Labels[rbacv1.GroupName+"/aggregate-to-"+name] == "true" {
				subjects = append(subjects, "every subject with ClusterRole "+name)
			}
		}

		if !own[key] || bound[key] && len(subjects) == 0 {
			continue
		}
		if len(subjects) == 0 {
			// An empty subject is shown as a role that is bound elsewhere.
			subjects = []string{""}
		}

		for _, rule := range uncovered(before.roles[key].Rules, role.Rules) {
			for _, subject := range subjects {
				found = append(found, gainOf(subject, key, objects.Key{}, key.Namespace, &rule))
			}
		}
	}

	return found
}

// newGrants returns an empty state.
func newGrants() *grants {
	return &grants{roles: map[objects.Key]rbacv1.ClusterRole{}, bindings: map[objects.Key]binding{}}
}

// sortedKeys returns the keys of a map in the order of the plan.
func sortedKeys[V any](of map[objects.Key]V) []objects.Key {
	return slices.SortedFunc(maps.Keys(of), objects.Key.Compare)
}

// add skips invalid RBAC objects, because the API server refuses them.
func (g *grants) add(key objects.Key, u *unstructured.Unstructured) {
	if u == nil {
		return
	}
	convert := runtime.DefaultUnstructuredConverter.FromUnstructured
	switch key.Kind {
	case "Role", "ClusterRole":
		var r rbacv1.ClusterRole
		if convert(u.Object, &r) == nil {
			g.roles[key] = r
		}
	case "RoleBinding", "ClusterRoleBinding":
		var b rbacv1.RoleBinding
		if convert(u.Object, &b) == nil {
			g.bindings[key] = bindingOf(&b, key.Namespace)
		}
	}
}

// bindingOf reads a binding. A RoleBinding's Role is in its own namespace.
func bindingOf(b *rbacv1.RoleBinding, namespace string) binding {
	found := binding{role: objects.Key{Group: rbacv1.GroupName, Kind: b.RoleRef.Kind, Name: b.RoleRef.Name}, subjects: b.Subjects}
	if b.RoleRef.Kind == "Role" {
		found.role.Namespace = namespace
	}
	for i := range b.Subjects {
		subject := &b.Subjects[i]
		// The group of a subject is implied by its kind. Some clients omit it.
		subject.APIGroup = ""
		if subject.Kind == rbacv1.ServiceAccountKind {
			subject.Namespace = cmp.Or(subject.Namespace, namespace)
		}
	}

	return found
}

// aggregate adds rules as the controller for aggregated cluster roles does.
func (g *grants) aggregate() {
	// Only cluster roles are aggregated, and a role never aggregates itself.
	for _, key := range sortedKeys(g.roles) {
		into := g.roles[key]
		for _, from := range sortedKeys(g.roles) {
			if from != key && from.Kind == "ClusterRole" && aggregates(into.AggregationRule, g.roles[from].Labels) {
				into.Rules = slices.Concat(into.Rules, g.roles[from].Rules)
			}
		}
		g.roles[key] = into
	}
}

// aggregates reports whether a rule, which may be nil, selects a role by its labels.
func aggregates(rule *rbacv1.AggregationRule, of labels.Set) bool {
	return rule != nil && slices.ContainsFunc(rule.ClusterRoleSelectors, func(s metav1.LabelSelector) bool {
		selector, err := metav1.LabelSelectorAsSelector(&s)
		return err == nil && selector.Matches(of)
	})
}

// rulesOf returns the rules of a subject in a namespace, or in the whole cluster if it is empty.
func (g *grants) rulesOf(subject rbacv1.Subject, namespace string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for key, b := range g.bindings {
		if (key.Namespace == "" || key.Namespace == namespace) && slices.Contains(b.subjects, subject) {
			rules = append(rules, g.roles[b.role].Rules...)
		}
	}
	return rules
}

// uncovered narrows wanted rules to the verbs, groups, resources, names and paths that the held
// rules do not cover.
func uncovered(held, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var found []rbacv1.PolicyRule
	for _, rule := range wanted {
		covered, missing := validation.Covers(held, []rbacv1.PolicyRule{rule})
		if covered {
			continue
		}

		for _, list := range []func(*rbacv1.PolicyRule) *[]string{
			func(r *rbacv1.PolicyRule) *[]string { return &r.Verbs },
			func(r *rbacv1.PolicyRule) *[]string { return &r.APIGroups },
			func(r *rbacv1.PolicyRule) *[]string { return &r.Resources },
			func(r *rbacv1.PolicyRule) *[]string { return &r.ResourceNames },
			func(r *rbacv1.PolicyRule) *[]string { return &r.NonResourceURLs },
		} {
			*list(&rule) = slices.DeleteFunc(slices.Clone(*list(&rule)), func(value string) bool {
				return !slices.ContainsFunc(missing, func(m rbacv1.PolicyRule) bool { return slices.Contains(*list(&m), value) })
			})
		}

		found = append(found, rule)
	}

	return found
}
