package permissions

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// Verbs are the verbs that the engine uses on each object of a revision. RBAC can limit all but
// create to names.
var Verbs = []string{"create", "patch", "delete"}

// Scope has the rules for a namespace, or for the whole cluster if Namespace is empty.
type Scope struct {
	Namespace string              `json:"namespace,omitempty"`
	Rules     []rbacv1.PolicyRule `json:"rules"`
}

// Request is the input of Needed.
type Request struct {
	// Namespace is the namespace of namespaced objects that do not name one.
	Namespace string
	// Objects are created, corrected and deleted. They come from all revisions that can own
	// objects, without duplicates.
	Objects []*unstructured.Unstructured
	// Released are the objects that are released instead of deleted.
	Released map[*unstructured.Unstructured]bool
	// Kinds are served by the cluster. Other kinds are looked up in the CustomResourceDefinitions
	// among the objects; failing that, their resource is guessed as kubectl does.
	Kinds map[schema.GroupKind]Kind
}

// verbsOn are the verbs that the engine uses on an object.
func (r *Request) verbsOn(u *unstructured.Unstructured) []string {
	if r.Released[u] {
		return slices.DeleteFunc(slices.Clone(Verbs), func(verb string) bool { return verb == "delete" })
	}
	return Verbs
}

// Kind is a kind that the cluster serves.
type Kind struct {
	// Resource is the plural, such as configmaps.
	Resource   string
	Namespaced bool
	// Custom means that a CustomResourceDefinition defines the kind.
	Custom bool
}

// Needed returns the rights, starting with the cluster's and then by namespace, and warnings about
// rights that reach beyond the objects. Rights in a namespace that the objects bring themselves
// become rights in the cluster: a Role cannot be created before its namespace, and would be deleted
// along with it.
func Needed(r Request) (scopes []Scope, warnings []string) {
	c := newComputation(r)
	for _, u := range r.Objects {
		c.at(u).add(c.resourceOf(u), u.GetName(), r.verbsOn(u)...)
	}

	c.grants()
	cluster := c.scopes[""].rules(nil)
	for _, namespace := range slices.Sorted(maps.Keys(c.scopes)) {
		held := cluster
		if namespace == "" {
			held = nil
		}
		if rules := c.scopes[namespace].rules(held); len(rules) > 0 {
			scopes = append(scopes, Scope{Namespace: namespace, Rules: rules})
		}
	}

	slices.Sort(c.warnings)
	return scopes, slices.Compact(c.warnings)
}

// Kinds returns the verbs on each resource of the objects. It ignores names, namespaces and the
// rights that roles among the objects require.
func Kinds(all []*unstructured.Unstructured) []rbacv1.PolicyRule {
	c := newComputation(Request{Objects: all})
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

// Unread returns the resources of the objects that the holder of rules cannot read.
func Unread(r Request, held []rbacv1.PolicyRule) []schema.GroupResource {
	c := newComputation(r)
	unread := sets.New[schema.GroupResource]()
	for _, u := range r.Objects {
		if resource := c.resourceOf(u); !covered(held, Reads(resource)) {
			unread.Insert(resource)
		}
	}
	return slices.SortedFunc(maps.Keys(unread), func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) })
}

// Reads is the right to read all objects of a resource.
func Reads(resource schema.GroupResource) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}}
}

type computation struct {
	Request
	kinds    map[schema.GroupKind]Kind
	scopes   map[string]*rights
	brought  sets.Set[string]
	warnings []string
}

func newComputation(r Request) *computation {
	c := &computation{Request: r, kinds: definedKinds(r.Objects), scopes: map[string]*rights{}, brought: sets.New[string]()}
	maps.Copy(c.kinds, r.Kinds)
	for _, u := range r.Objects {
		if u.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
			c.brought.Insert(u.GetName())
		}
	}
	return c
}

func (c *computation) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// at returns the rights in the namespace of an object.
func (c *computation) at(u *unstructured.Unstructured) *rights { return c.in(c.namespaceOf(u)) }

// namespaceOf returns the namespace of an object. Like the engine, it ignores the object's
// namespace if its kind is cluster-scoped.
func (c *computation) namespaceOf(u *unstructured.Unstructured) string {
	if kind, known := c.kinds[u.GroupVersionKind().GroupKind()]; known && !kind.Namespaced {
		return ""
	}
	return cmp.Or(u.GetNamespace(), c.Namespace)
}

func (c *computation) in(namespace string) *rights {
	if namespace != "" && c.brought.Has(namespace) {
		c.warn("the package brings the namespace %s: the rights for its objects are in the ClusterRole, and apply to all namespaces", namespace)
		namespace = ""
	}
	if c.scopes[namespace] == nil {
		c.scopes[namespace] = newRights()
	}
	return c.scopes[namespace]
}

func (c *computation) resourceOf(u *unstructured.Unstructured) schema.GroupResource {
	kind := u.GroupVersionKind().GroupKind()
	guessed, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
	return schema.GroupResource{Group: kind.Group, Resource: cmp.Or(c.kinds[kind].Resource, guessed.Resource)}
}

// definedKinds returns the kinds of the CustomResourceDefinitions among the objects. It skips
// definitions that the API server would refuse: they could choose the rights otherwise.
func definedKinds(all []*unstructured.Unstructured) map[schema.GroupKind]Kind {
	kinds := map[schema.GroupKind]Kind{}
	for _, u := range all {
		if u.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
			continue
		}
		text := func(fields ...string) string {
			value, _, _ := unstructured.NestedString(u.Object, append([]string{"spec"}, fields...)...)
			return value
		}
		group, plural := text("group"), text("names", "plural")
		if u.GetName() != plural+"."+group || !strings.Contains(group, ".") || len(utilvalidation.IsDNS1035Label(plural)) > 0 {
			continue
		}
		kinds[schema.GroupKind{Group: group, Kind: text("names", "kind")}] = Kind{Resource: plural, Namespaced: text("scope") != "Cluster"}
	}

	return kinds
}

// OnDefined returns rules with verbs on the kinds that definitions define.
func OnDefined(definitions []*unstructured.Unstructured, verbs []string) []rbacv1.PolicyRule {
	resources := map[string][]string{}
	for kind, defined := range definedKinds(definitions) {
		resources[kind.Group] = append(resources[kind.Group], defined.Resource)
	}
	var rules []rbacv1.PolicyRule
	for _, group := range slices.Sorted(maps.Keys(resources)) {
		slices.Sort(resources[group])
		rules = append(rules, rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: resources[group]})
	}
	return rules
}

// rights are the rights in one scope.
type rights struct {
	// all has the verbs on a whole resource, named the verbs on single objects.
	all   map[schema.GroupResource]sets.Set[string]
	named map[schema.GroupResource]map[string]sets.Set[string]
	// granted are the rules of roles. The API server requires their writer to hold them.
	granted []rbacv1.PolicyRule
}

func newRights() *rights {
	return &rights{named: map[schema.GroupResource]map[string]sets.Set[string]{}, all: map[schema.GroupResource]sets.Set[string]{}}
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

// rules returns the rules that held does not cover.
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

// inOrder sorts verbs in the engine's order, followed by all others.
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

// Roles returns the rights as roles with the given name. If there are subjects, a binding to them
// follows each role.
func Roles(scopes []Scope, name string, to []rbacv1.Subject) []any {
	var out []any
	for _, scope := range scopes {
		kind := "ClusterRole"
		if scope.Namespace != "" {
			kind = "Role"
		}
		of := func(kind string) (metav1.TypeMeta, metav1.ObjectMeta) {
			return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}, metav1.ObjectMeta{Namespace: scope.Namespace, Name: name}
		}
		role := rbacv1.ClusterRole{Rules: scope.Rules} // without an aggregationRule, a ClusterRole reads like a Role
		role.TypeMeta, role.ObjectMeta = of(kind)
		out = append(out, role)
		if len(to) == 0 {
			continue
		}
		binding := rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}, Subjects: to}
		binding.TypeMeta, binding.ObjectMeta = of(kind + "Binding")
		out = append(out, binding)
	}

	return out
}
