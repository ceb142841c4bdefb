package dryrun

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/objects"
)

const rbacGroup = "rbac.authorization.k8s.io"

// grants are the roles and bindings of a package in one state.
type grants struct {
	roles    map[objects.Key]role
	bindings map[objects.Key]binding
}

type role struct {
	rules []rbacv1.PolicyRule
	// into are the cluster roles that take its rules over by its labels.
	into []string
	// labels of a cluster role, and those of the ones whose rules it takes over.
	labels labels.Set
	takes  []labels.Selector
}

type binding struct {
	role     objects.Key
	subjects []rbacv1.Subject
}

// powers returns the rights that subjects gain: rules that the roles and bindings
// of the package grant after the rollout and did not before.
func (s *simulation) powers(ctx context.Context) ([]Power, error) {
	before, after := newGrants(), newGrants()
	for key, o := range s.objects {
		if key.Group != rbacGroup {
			continue
		}
		before.add(key, o.live)
		after.add(key, o.now)
	}
	if err := s.foreignRoles(ctx, before, after); err != nil {
		return nil, err
	}
	before.aggregate()
	after.aggregate()
	found, bound := bindingPowers(before, after)
	return append(found, s.rolePowers(before, after, bound)...), nil
}

// bindingPowers are the rights that the subjects of bindings gain, with the roles
// that are bound.
func bindingPowers(before, after *grants) (found []Power, bound map[objects.Key]bool) {
	bound = map[objects.Key]bool{}
	for _, key := range sorted(after.bindings) {
		b := after.bindings[key]
		bound[b.role] = true
		for _, subject := range b.subjects {
			for _, rule := range uncovered(before.rulesOf(subject, key.Namespace), after.roles[b.role].rules) {
				p := powerOf(rule)
				p.Subject, p.Binding, p.Namespace, p.Role = subjectName(subject), objectName(key), key.Namespace, objectName(b.role)
				found = append(found, p)
			}
		}
	}
	return found, bound
}

// rolePowers are what roles of the package gain that others may have bound, or that
// are aggregated into others.
func (s *simulation) rolePowers(before, after *grants, bound map[objects.Key]bool) []Power {
	var found []Power
	for _, key := range sorted(after.roles) {
		r := after.roles[key]
		if s.objects[key] == nil || bound[key] && len(r.into) == 0 {
			continue
		}
		subjects := []string{""}
		if len(r.into) > 0 {
			subjects = nil
		}
		for _, name := range r.into {
			subjects = append(subjects, "whoever has ClusterRole "+name)
		}
		for _, rule := range uncovered(before.roles[key].rules, r.rules) {
			for _, subject := range subjects {
				p := powerOf(rule)
				p.Subject, p.Role, p.Namespace = subject, objectName(key), key.Namespace
				found = append(found, p)
			}
		}
	}
	return found
}

func newGrants() *grants {
	return &grants{roles: map[objects.Key]role{}, bindings: map[objects.Key]binding{}}
}

func sorted[V any](of map[objects.Key]V) []objects.Key {
	keys := make([]objects.Key, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, objects.Key.Compare)
	return keys
}

// add enters one object; what cannot be read as RBAC is left out, because the API
// server refuses it.
func (g *grants) add(key objects.Key, u *unstructured.Unstructured) {
	if u == nil {
		return
	}
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return
	}
	switch key.Kind {
	case "Role", "ClusterRole":
		var r rbacv1.ClusterRole
		if json.Unmarshal(raw, &r) == nil {
			g.roles[key] = role{rules: r.Rules, into: aggregated(r.Labels), labels: r.Labels, takes: selectors(r.AggregationRule)}
		}
	case "RoleBinding", "ClusterRoleBinding":
		var b rbacv1.RoleBinding
		if json.Unmarshal(raw, &b) == nil {
			g.bindings[key] = binding{role: roleKey(b.RoleRef, key.Namespace), subjects: subjectsOf(b.Subjects, key.Namespace)}
		}
	}
}

func selectors(rule *rbacv1.AggregationRule) []labels.Selector {
	if rule == nil {
		return nil
	}
	var all []labels.Selector
	for i := range rule.ClusterRoleSelectors {
		if s, err := metav1.LabelSelectorAsSelector(&rule.ClusterRoleSelectors[i]); err == nil {
			all = append(all, s)
		}
	}
	return all
}

// aggregate adds the rules that cluster roles take over from others of the package:
// a controller of Kubernetes does so after the rollout.
func (g *grants) aggregate() {
	for _, key := range sorted(g.roles) {
		into := g.roles[key]
		for _, from := range sorted(g.roles) {
			matches := func(s labels.Selector) bool { return s.Matches(g.roles[from].labels) }
			if from != key && from.Kind == "ClusterRole" && slices.ContainsFunc(into.takes, matches) {
				into.rules = append(into.rules[:len(into.rules):len(into.rules)], g.roles[from].rules...)
			}
		}
		g.roles[key] = into
	}
}

// aggregated returns the standard roles into which a ClusterRole is aggregated.
func aggregated(labels map[string]string) []string {
	var into []string
	for _, name := range []string{"admin", "edit", "view"} {
		if labels[rbacGroup+"/aggregate-to-"+name] == "true" {
			into = append(into, name)
		}
	}
	return into
}

func roleKey(ref rbacv1.RoleRef, namespace string) objects.Key {
	key := objects.Key{Group: rbacGroup, Kind: ref.Kind, Name: ref.Name}
	if ref.Kind == "Role" {
		key.Namespace = namespace
	}
	return key
}

func subjectsOf(subjects []rbacv1.Subject, namespace string) []rbacv1.Subject {
	subjects = slices.Clone(subjects)
	for i := range subjects {
		subjects[i].APIGroup = ""
		if subjects[i].Kind == rbacv1.ServiceAccountKind {
			subjects[i].Namespace = cmp.Or(subjects[i].Namespace, namespace)
		}
	}
	return subjects
}

func subjectName(s rbacv1.Subject) string {
	return objectName(objects.Key{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name})
}

// foreignRoles reads the roles that bindings name and the package does not bring.
func (s *simulation) foreignRoles(ctx context.Context, states ...*grants) error {
	for _, g := range states {
		for _, b := range g.bindings {
			if _, known := g.roles[b.role]; known || s.objects[b.role] != nil {
				continue
			}
			mapping, err := s.Mapper.RESTMapping(schema.GroupKind{Group: rbacGroup, Kind: b.role.Kind}, "v1")
			if err != nil {
				continue
			}
			live, err := s.Writer.Get(ctx, mapping, b.role.Namespace, b.role.Name)
			if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
				continue // a binding to nothing grants nothing
			}
			if err != nil {
				return err
			}
			for _, each := range states {
				each.add(b.role, live)
			}
		}
	}
	return nil
}

// rulesOf returns what a subject may do in a namespace, or in the whole cluster
// where it is empty.
func (g *grants) rulesOf(subject rbacv1.Subject, namespace string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for key, b := range g.bindings {
		if (key.Namespace == "" || key.Namespace == namespace) && slices.Contains(b.subjects, subject) {
			rules = append(rules, g.roles[b.role].rules...)
		}
	}
	return rules
}

// uncovered returns the parts of wanted rules that the rules held do not cover, as
// far as possible together.
func uncovered(held, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var found []rbacv1.PolicyRule
	for _, rule := range wanted {
		var verbs []string
		for _, verb := range rule.Verbs {
			one := rule
			one.Verbs = []string{verb}
			if !covers(held, one) {
				verbs = append(verbs, verb)
			}
		}
		if len(verbs) > 0 {
			rule.Verbs = verbs
			found = append(found, narrowed(held, rule))
		}
	}
	return found
}

// narrowed leaves out the groups, resources, names and paths of which all verbs are
// covered.
func narrowed(held []rbacv1.PolicyRule, rule rbacv1.PolicyRule) rbacv1.PolicyRule {
	for _, list := range []func(*rbacv1.PolicyRule) *[]string{
		func(r *rbacv1.PolicyRule) *[]string { return &r.APIGroups },
		func(r *rbacv1.PolicyRule) *[]string { return &r.Resources },
		func(r *rbacv1.PolicyRule) *[]string { return &r.ResourceNames },
		func(r *rbacv1.PolicyRule) *[]string { return &r.NonResourceURLs },
	} {
		var open []string
		for _, value := range *list(&rule) {
			one := rule
			*list(&one) = []string{value}
			if !covers(held, one) {
				open = append(open, value)
			}
		}
		if len(open) > 0 {
			*list(&rule) = open
		}
	}
	return rule
}

// covers reports whether rules grant everything that rule does: each combination of
// group, resource, name and verb on its own, as the API server judges requests.
func covers(held []rbacv1.PolicyRule, rule rbacv1.PolicyRule) bool {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range rule.Verbs {
		for _, url := range rule.NonResourceURLs {
			if !slices.ContainsFunc(held, func(h rbacv1.PolicyRule) bool { return matches(h.Verbs, verb) && matchesURL(h.NonResourceURLs, url) }) {
				return false
			}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					if !slices.ContainsFunc(held, func(h rbacv1.PolicyRule) bool {
						return matches(h.Verbs, verb) && matches(h.APIGroups, group) && matchesResource(h.Resources, resource) &&
							(len(h.ResourceNames) == 0 || name != "" && slices.Contains(h.ResourceNames, name))
					}) {
						return false
					}
				}
			}
		}
	}
	return true
}

func matches(list []string, one string) bool {
	return slices.Contains(list, one) || slices.Contains(list, "*")
}

// matchesResource knows "*", and "*/scale" for a subresource of everything.
func matchesResource(list []string, one string) bool {
	if matches(list, one) {
		return true
	}
	for i := range one {
		if one[i] == '/' {
			return slices.Contains(list, "*"+one[i:])
		}
	}
	return false
}

func matchesURL(list []string, one string) bool {
	return slices.ContainsFunc(list, func(have string) bool {
		if have == one || have == "*" {
			return true
		}
		n := len(have) - 1
		return n >= 0 && have[n] == '*' && len(one) >= n && one[:n] == have[:n]
	})
}

func powerOf(rule rbacv1.PolicyRule) Power {
	return Power{Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, Names: rule.ResourceNames, URLs: rule.NonResourceURLs}
}
