package permissions

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Right is one verb on a resource, or on one object of it.
type Right struct {
	Verb, Group string
	// Resource can have a subresource, as in pods/log.
	Resource string
	// Name is empty if the right covers all objects.
	Name string
}

// Demand is a right that an account needs in a namespace, or in the cluster if Namespace is empty.
type Demand struct {
	Namespace string
	Right     Right
	// Instead is another right that the API server accepts as well; zero if there is none.
	Instead Right
}

// Subject is the identity of a ServiceAccount.
type Subject struct{ Namespace, Name string }

// Demands returns the rights that an account must have before the first object is written. It
// requires no more than the API server does, so it leaves out rights on unknown kinds and rights
// that the objects themselves give the account. It also leaves out the rights that the API server
// requires of an account that writes roles and bindings, because the dry run already reports them.
func Demands(r Request, account Subject) []Demand {
	c := newComputation(r)
	given, all := c.givesTo(account)
	if all {
		return nil
	}

	var out []Demand
	add := func(d Demand) {
		if given == nil || !given.Has(d.Right) {
			out = append(out, d)
		}
	}

	for _, u := range r.Objects {
		kind := u.GroupVersionKind().GroupKind()
		known, is := c.kinds[kind]
		if !is {
			continue
		}
		for _, verb := range r.verbsOn(u) {
			d := Demand{Namespace: c.namespaceOf(u), Right: Right{Verb: verb, Group: kind.Group, Resource: known.Resource, Name: u.GetName()}}
			if verb == "create" {
				d.Right.Name = ""
				if served := r.Kinds[kind]; served.Custom || served.Resource == "" {
					d.Instead = Right{Verb: verb, Group: kind.Group, Resource: known.Resource, Name: u.GetName()} // an apply creates the object, and names it
				}
			}
			add(d)
		}
	}

	return out
}

// givesTo returns the rights that roles among the objects give an account during the rollout, by a
// binding or by aggregation. all means that these rights are unknown.
func (c *computation) givesTo(account Subject) (given *Held, all bool) {
	roles, bound := map[string][]rbacv1.PolicyRule{}, []rbacv1.PolicyRule{}
	for _, u := range c.Objects {
		role, is := roleOf(u)
		if !is {
			continue
		}
		roles[u.GetKind()+"/"+u.GetName()] = append(roles[u.GetKind()+"/"+u.GetName()], role.Rules...)
		for label := range role.Labels {
			if _, name, _ := strings.Cut(label, "/"); strings.HasPrefix(name, "aggregate-to-") {
				bound = append(bound, role.Rules...)
				break
			}
		}
	}

	for _, u := range c.Objects {
		binding, is := bindingOf(u)
		if !is || !slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return account.is(s, c.namespaceOf(u)) }) {
			continue
		}
		rules, has := roles[binding.RoleRef.Kind+"/"+binding.RoleRef.Name]
		if !has {
			return nil, true
		}
		bound = append(bound, rules...)
	}

	if len(bound) == 0 {
		return nil, false
	}

	return NewHeld(bound), false
}

// is reports whether a binding's subject is the account or one of its groups. The binding is in
// namespace.
func (a Subject) is(s rbacv1.Subject, namespace string) bool {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		return s.Name == a.Name && cmp.Or(s.Namespace, namespace) == a.Namespace
	case rbacv1.UserKind:
		return s.Name == "system:serviceaccount:"+a.Namespace+":"+a.Name
	}
	return slices.Contains([]string{"system:serviceaccounts", "system:serviceaccounts:" + a.Namespace, "system:authenticated"}, s.Name)
}

func roleOf(u *unstructured.Unstructured) (*rbacv1.ClusterRole, bool) {
	role := &rbacv1.ClusterRole{} // without an aggregationRule it reads as a Role
	is := u.GroupVersionKind().Group == rbacv1.GroupName && (u.GetKind() == "Role" || u.GetKind() == "ClusterRole")
	return role, is && convert(u, role)
}

func bindingOf(u *unstructured.Unstructured) (*rbacv1.RoleBinding, bool) {
	binding := &rbacv1.RoleBinding{}
	is := u.GroupVersionKind().Group == rbacv1.GroupName && (u.GetKind() == "RoleBinding" || u.GetKind() == "ClusterRoleBinding")
	return binding, is && convert(u, binding)
}

func aggregates(role *rbacv1.ClusterRole) bool {
	return role.AggregationRule != nil && len(role.AggregationRule.ClusterRoleSelectors) > 0
}

// Size returns how many single rights a rule contains.
func Size(rule rbacv1.PolicyRule) int {
	return len(rule.Verbs) * (max(len(rule.APIGroups), 1)*max(len(rule.Resources), 1)*max(len(rule.ResourceNames), 1) + len(rule.NonResourceURLs))
}

// Held are the rights of an identity in one namespace, or in the cluster.
type Held struct {
	rules []rbacv1.PolicyRule
	// of indexes rules by resource. It is filled on demand.
	of map[schema.GroupResource]map[string]names
}

// names are the objects of a resource for which a verb is held.
type names struct {
	all bool
	of  sets.Set[string]
}

// NewHeld returns the rights that rules give.
func NewHeld(rules []rbacv1.PolicyRule) *Held {
	return &Held{rules: rules, of: map[schema.GroupResource]map[string]names{}}
}

// Has reports whether the identity has a right. It is not safe for concurrent use.
func (h *Held) Has(right Right) bool {
	resource := schema.GroupResource{Group: right.Group, Resource: right.Resource}
	verbs, known := h.of[resource]
	if !known {
		verbs = h.verbsOf(resource)
		h.of[resource] = verbs
	}
	return slices.ContainsFunc([]string{right.Verb, rbacv1.VerbAll}, func(verb string) bool {
		on, held := verbs[verb]
		return held && (on.all || right.Name != "" && on.of.Has(right.Name))
	})
}

func (h *Held) verbsOf(resource schema.GroupResource) map[string]names {
	verbs := map[string]names{}
	_, subresource, is := strings.Cut(resource.Resource, "/")
	for i := range h.rules {
		rule := &h.rules[i]
		covers := slices.Contains(rule.Resources, resource.Resource) || slices.Contains(rule.Resources, rbacv1.ResourceAll) ||
			is && slices.Contains(rule.Resources, "*/"+subresource)
		if !covers || !slices.Contains(rule.APIGroups, resource.Group) && !slices.Contains(rule.APIGroups, rbacv1.APIGroupAll) {
			continue
		}
		for _, verb := range rule.Verbs {
			on := verbs[verb]
			on.all = on.all || len(rule.ResourceNames) == 0
			if on.of == nil {
				on.of = sets.New[string]()
			}
			on.of.Insert(rule.ResourceNames...)
			verbs[verb] = on
		}
	}

	return verbs
}

// Meets reports whether the identity has the right or its substitute.
func (h *Held) Meets(d Demand) bool {
	return h.Has(d.Right) || d.Instead != Right{} && h.Has(d.Instead)
}

// Describe lists rights by namespace, starting with the cluster's.
func Describe(missing []Demand) string {
	in := map[string]*rights{}
	for _, d := range missing {
		if in[d.Namespace] == nil {
			in[d.Namespace] = newRights()
		}
		in[d.Namespace].add(schema.GroupResource{Group: d.Right.Group, Resource: d.Right.Resource}, d.Right.Name, d.Right.Verb)
	}

	var parts []string
	for _, namespace := range slices.Sorted(maps.Keys(in)) {
		where := "in namespace " + namespace
		if namespace == "" {
			where = "in the whole cluster"
		}
		parts = append(parts, where+": "+DescribeRules(in[namespace].rules(nil)))
	}

	return strings.Join(parts, ". ")
}

// DescribeRules names the rights in rules.
func DescribeRules(rules []rbacv1.PolicyRule) string {
	lines := make([]string, len(rules))
	for i := range rules {
		lines[i] = describe(&rules[i])
	}
	return strings.Join(lines, "; ")
}

func describe(rule *rbacv1.PolicyRule) string {
	const shown = 5
	what := slices.Clone(rule.NonResourceURLs)
	for _, resource := range rule.Resources {
		if len(rule.APIGroups) > 0 && rule.APIGroups[0] != "" {
			resource += "." + rule.APIGroups[0]
		}
		what = append(what, resource)
	}

	text := strings.Join(rule.Verbs, ", ") + " " + strings.Join(what, ", ")
	switch names := rule.ResourceNames; {
	case len(names) > shown:
		text += fmt.Sprintf(" (%s and %d more)", strings.Join(names[:shown], ", "), len(names)-shown)
	case len(names) > 0:
		text += " (" + strings.Join(names, ", ") + ")"
	}

	return text
}
