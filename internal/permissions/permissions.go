package permissions

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// Verbs are those that the engine uses on each object of a revision. RBAC can limit all but create to names.
var Verbs = []string{"create", "patch", "delete"}

// Scope has the rules for a namespace, or for the whole cluster where Namespace is empty.
type Scope struct {
	Namespace string              `json:"namespace,omitempty"`
	Rules     []rbacv1.PolicyRule `json:"rules"`
}

// Request is what to compute the rights for.
type Request struct {
	// Namespace of objects that name none; empty where these are cluster-scoped.
	Namespace string
	// Objects of the revision that is rolled out.
	Objects []*unstructured.Unstructured
	// Former are objects of the revision before it: they are corrected until it is complete, and then deleted.
	Former []*unstructured.Unstructured
	// Resource returns the plural of a kind that neither list defines; empty where it is not known. It may be nil.
	Resource func(schema.GroupKind) string
}

// Needed returns the rights, for the cluster first, then by namespace. What concerns a namespace that the objects bring
// themselves is a right in the cluster: a Role in it cannot be made before, and would be deleted with it.
func Needed(r Request) []Scope {
	c := &computation{Request: r, plurals: definedPlurals(slices.Concat(r.Objects, r.Former)), scopes: map[string]*rights{}, brought: sets.New[string]()}
	for _, u := range slices.Concat(r.Objects, r.Former) {
		if u.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
			c.brought.Insert(u.GetName())
		}
	}
	for _, u := range r.Objects {
		c.at(u).add(c.resourceOf(u), u.GetName(), Verbs...)
	}
	for _, u := range r.Former {
		c.at(u).add(c.resourceOf(u), u.GetName(), Verbs[1:]...)
	}
	c.grants()
	c.parameters()
	var out []Scope
	cluster := c.scopes[""].rules(nil)
	for _, namespace := range slices.Sorted(maps.Keys(c.scopes)) {
		held := cluster
		if namespace == "" {
			held = nil
		}
		if rules := c.scopes[namespace].rules(held); len(rules) > 0 {
			out = append(out, Scope{Namespace: namespace, Rules: rules})
		}
	}
	return out
}

// Kinds returns the verbs on each resource of the objects, without names and namespaces, nor what roles among them need.
func Kinds(all []*unstructured.Unstructured) []rbacv1.PolicyRule {
	c := &computation{plurals: definedPlurals(all)}
	resources := map[string]sets.Set[string]{}
	for _, u := range all {
		resource := c.resourceOf(u)
		if resources[resource.Group] == nil {
			resources[resource.Group] = sets.New[string]()
		}
		resources[resource.Group].Insert(resource.Resource)
	}
	rules := []rbacv1.PolicyRule{}
	for _, group := range slices.Sorted(maps.Keys(resources)) {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: sets.List(resources[group]), Verbs: Verbs})
	}
	return rules
}

type computation struct {
	Request
	plurals map[schema.GroupKind]string
	scopes  map[string]*rights
	brought sets.Set[string]
}

// at returns the rights in the namespace of an object.
func (c *computation) at(u *unstructured.Unstructured) *rights { return c.in(c.namespaceOf(u)) }

func (c *computation) namespaceOf(u *unstructured.Unstructured) string {
	return cmp.Or(u.GetNamespace(), c.Namespace)
}

func (c *computation) in(namespace string) *rights {
	if c.brought.Has(namespace) {
		namespace = ""
	}
	if c.scopes[namespace] == nil {
		c.scopes[namespace] = &rights{named: map[schema.GroupResource]map[string]sets.Set[string]{}, all: map[schema.GroupResource]sets.Set[string]{}}
	}
	return c.scopes[namespace]
}

func (c *computation) resourceOf(u *unstructured.Unstructured) schema.GroupResource {
	gvk := u.GroupVersionKind()
	return schema.GroupResource{Group: gvk.Group, Resource: c.plural(gvk.GroupKind())}
}

func (c *computation) plural(kind schema.GroupKind) string {
	known := c.plurals[kind]
	if known == "" && c.Resource != nil {
		known = c.Resource(kind)
	}
	guessed, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
	return cmp.Or(known, guessed.Resource)
}

func definedPlurals(all []*unstructured.Unstructured) map[schema.GroupKind]string {
	plurals := map[schema.GroupKind]string{}
	for _, u := range all {
		if u.GroupVersionKind().GroupKind() == (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
			group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
			plural, _, _ := unstructured.NestedString(u.Object, "spec", "names", "plural")
			plurals[schema.GroupKind{Group: group, Kind: kind}] = plural
		}
	}
	return plurals
}

// rights in one scope.
type rights struct {
	// all has the verbs on all names of a resource, named those on single ones.
	all   map[schema.GroupResource]sets.Set[string]
	named map[schema.GroupResource]map[string]sets.Set[string]
	// granted are the rules of roles: the API server asks of their writer to have them.
	granted []rbacv1.PolicyRule
}

func (r *rights) add(resource schema.GroupResource, name string, verbs ...string) {
	for _, verb := range verbs {
		if verb == "create" || name == "" {
			if r.all[resource] == nil {
				r.all[resource] = sets.New[string]()
			}
			r.all[resource].Insert(verb)
			continue
		}
		if r.named[resource] == nil {
			r.named[resource] = map[string]sets.Set[string]{}
		}
		if r.named[resource][name] == nil {
			r.named[resource][name] = sets.New[string]()
		}
		r.named[resource][name].Insert(verb)
	}
}

// rules returns what the rules held elsewhere do not cover.
func (r *rights) rules(held []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	if r == nil {
		return nil
	}
	var out []rbacv1.PolicyRule
	type verbsIn struct{ group, verbs string }
	resources, verbs := map[verbsIn][]string{}, map[verbsIn][]string{}
	for resource, set := range r.all {
		key := verbsIn{resource.Group, joined(set)}
		resources[key], verbs[key] = append(resources[key], resource.Resource), inOrder(set)
	}
	for _, key := range slices.SortedFunc(maps.Keys(resources), func(a, b verbsIn) int { return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.verbs, b.verbs)) }) {
		out = append(out, rbacv1.PolicyRule{APIGroups: []string{key.group}, Resources: slices.Sorted(slices.Values(resources[key])), Verbs: verbs[key]})
	}
	for _, resource := range slices.SortedFunc(maps.Keys(r.named), func(a, b schema.GroupResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	}) {
		names, verbs := map[string][]string{}, map[string][]string{}
		for _, name := range slices.Sorted(maps.Keys(r.named[resource])) {
			set := r.named[resource][name]
			names[joined(set)], verbs[joined(set)] = append(names[joined(set)], name), inOrder(set)
		}
		for _, key := range slices.Sorted(maps.Keys(names)) {
			out = append(out, rbacv1.PolicyRule{APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, ResourceNames: names[key], Verbs: verbs[key]})
		}
	}
	out = slices.DeleteFunc(out, func(rule rbacv1.PolicyRule) bool { return covered(held, rule) })
	for _, rule := range r.granted {
		if !covered(slices.Concat(held, out), rule) {
			out = append(out, rule)
		}
	}
	return out
}

func covered(held []rbacv1.PolicyRule, rule rbacv1.PolicyRule) bool {
	is, _ := validation.Covers(held, []rbacv1.PolicyRule{rule})
	return is
}

func joined(verbs sets.Set[string]) string { return strings.Join(inOrder(verbs), ",") }

// inOrder sorts verbs as the engine's are, and others behind them.
func inOrder(verbs sets.Set[string]) []string {
	return slices.SortedFunc(maps.Keys(verbs), func(a, b string) int {
		at := func(verb string) int {
			if i := slices.Index(Verbs, verb); i >= 0 {
				return i
			}
			return len(Verbs)
		}
		return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a, b))
	})
}
