package permissions

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	clusterRoles = schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"}
	roles        = schema.GroupResource{Group: rbacv1.GroupName, Resource: "roles"}
)

// grants adds what the API server asks of who writes roles and bindings: the rights in a role, and bind for a role that the
// objects do not bring. See https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping.
func (c *computation) grants() {
	brought := map[schema.GroupResource]map[string]bool{clusterRoles: {}, roles: {}}
	var bindings []*unstructured.Unstructured
	for _, u := range slices.Concat(c.Objects, c.Former) {
		if u.GroupVersionKind().Group != rbacv1.GroupName {
			continue
		}
		var role rbacv1.ClusterRole
		switch u.GetKind() {
		case "ClusterRole":
			if convert(u, &role) {
				aggregates := role.AggregationRule != nil && len(role.AggregationRule.ClusterRoleSelectors) > 0
				brought[clusterRoles][role.Name] = !aggregates // its rules are not known before
				c.in("").grant(role.Rules)
				if aggregates {
					c.in("").add(clusterRoles, "", "escalate") // else it takes all rights that there are
				}
			}
		case "Role":
			if convert(u, &role) {
				brought[roles][c.namespaceOf(u)+"/"+role.Name] = true
				c.at(u).grant(role.Rules)
			}
		case "RoleBinding", "ClusterRoleBinding":
			bindings = append(bindings, u)
		}
	}
	for _, u := range bindings {
		var binding rbacv1.RoleBinding
		if !convert(u, &binding) {
			continue
		}
		scope := c.in("")
		if u.GetKind() == "RoleBinding" {
			scope = c.at(u)
		}
		switch ref := binding.RoleRef; {
		case ref.Kind == "ClusterRole" && !brought[clusterRoles][ref.Name]:
			scope.add(clusterRoles, ref.Name, "bind")
		case ref.Kind == "Role" && !brought[roles][c.namespaceOf(u)+"/"+ref.Name]:
			scope.add(roles, ref.Name, "bind")
		}
	}
}

// grant adds rules that a role gives to others. A Role has no rules about paths.
func (r *rights) grant(rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		if len(rule.Verbs) > 0 {
			r.granted = append(r.granted, rule)
		}
	}
}

// parameters adds what the API server asks of who writes admission policies with parameters: to read these.
func (c *computation) parameters() {
	kinds := map[string]*admissionregistrationv1.ParamKind{}
	each := func(suffix string, do func(*unstructured.Unstructured)) {
		for _, u := range slices.Concat(c.Objects, c.Former) {
			kind := u.GroupVersionKind()
			if kind.Group == admissionregistrationv1.GroupName && (kind.Kind == "ValidatingAdmissionPolicy"+suffix || kind.Kind == "MutatingAdmissionPolicy"+suffix) {
				do(u)
			}
		}
	}
	each("", func(u *unstructured.Unstructured) {
		var policy admissionregistrationv1.ValidatingAdmissionPolicy
		if convert(u, &policy) && policy.Spec.ParamKind != nil {
			kinds[u.GetKind()+"Binding/"+u.GetName()] = policy.Spec.ParamKind
			c.in("").add(c.parameter(policy.Spec.ParamKind), "", "get")
		}
	})
	each("Binding", func(u *unstructured.Unstructured) {
		var binding admissionregistrationv1.ValidatingAdmissionPolicyBinding
		if !convert(u, &binding) || binding.Spec.ParamRef == nil {
			return
		}
		resource := schema.GroupResource{Group: rbacv1.APIGroupAll, Resource: rbacv1.ResourceAll} // of a policy that the objects do not bring
		if kind := kinds[u.GetKind()+"/"+binding.Spec.PolicyName]; kind != nil {
			resource = c.parameter(kind)
		}
		verb := "get"
		if binding.Spec.ParamRef.Name == "" {
			verb = "list"
		}
		c.in(binding.Spec.ParamRef.Namespace).add(resource, binding.Spec.ParamRef.Name, verb)
	})
}

func (c *computation) parameter(kind *admissionregistrationv1.ParamKind) schema.GroupResource {
	gv, _ := schema.ParseGroupVersion(kind.APIVersion)
	return schema.GroupResource{Group: gv.Group, Resource: c.plural(gv.WithKind(kind.Kind).GroupKind())}
}

// convert reports whether an object has the fields of its kind; the API server refuses those that do not.
func convert(u *unstructured.Unstructured, into any) bool {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into) == nil
}
