package loader

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/internal/permissions"
)

// writes are the verbs of Kubernetes' roles admin and edit on a namespaced kind.
var writes = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// verbsOf are the verbs of user roles on the kinds of a package, as in Kubernetes' own roles.
var verbsOf = map[string][]string{
	manifest.AggregateToAdmin: writes,
	manifest.AggregateToEdit:  writes,
	manifest.AggregateToView:  {"get", "list", "watch"},
}

const (
	// The fields are places for violations; the roles are in no file of the package.
	permissionsField = "spec.permissions"
	aggregateField   = permissionsField + ".aggregateTo"
)

// permissions returns the roles for spec.permissions. No patch changes them, and they do not adopt
// objects, so that the rules bound to the workload's account are exactly those that were compared
// with the ceiling.
func (l *load) permissions(all []*object, labels map[string]string) []*object {
	asked := l.unit.result.Manifest.Spec.Permissions
	if asked == nil {
		return nil
	}

	var roles []*object
	add := func(field string, u any) {
		if o := l.implied(field, u, labels); o != nil {
			roles = append(roles, o)
		}
	}
	if len(asked.Rules) > 0 {
		for _, u := range l.granted(asked, all) {
			add(permissionsField+".rules", u)
		}
	}

	if len(asked.AggregateTo) > 0 && l.opts.scope() != corev1alpha1.ScopeCluster {
		l.add(l.unit.result.At(violation.ReasonObjectScope, aggregateField).Because("Install the package as a ClusterPackage (--cluster), or leave it out.",
			"a ClusterRole is cluster-scoped, and a Package may only bring objects of its own namespace"))
		return roles
	}

	for _, u := range l.aggregated(asked.AggregateTo, all) {
		add(aggregateField, u)
	}

	return roles
}

// granted returns the role and the binding for the account of the workload.
func (l *load) granted(asked *manifestsv1alpha1.PackageManifestPermissions, all []*object) []any {
	name, scope := l.opts.Package.Metadata.Name+"-permissions", permissions.Scope{Rules: manifest.Rules(asked)}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: asked.ServiceAccountName}
	if l.opts.scope() != corev1alpha1.ScopeCluster {
		// A Role cannot have nonResourceURLs, and a ClusterRole would grant them beyond the
		// namespace.
		for i, rule := range asked.Rules {
			if len(rule.NonResourceURLs) > 0 {
				l.add(l.unit.result.At(violation.ReasonObjectScope, fmt.Sprintf("%s.rules[%d].nonResourceURLs", permissionsField, i)).Because(
					"Install the package as a ClusterPackage (--cluster), or leave the rule out.", "a Package is granted rights in its own namespace only, and paths are in none"))
				return nil
			}
		}
		// The namespace makes a Role and a RoleBinding of the scope instead of their cluster-wide
		// kinds.
		scope.Namespace = l.opts.Package.Metadata.Namespace
		account.Namespace = scope.Namespace
		return permissions.Roles([]permissions.Scope{scope}, name, []rbacv1.Subject{account})
	}

	namespace, why := l.accountNamespace(account.Name, all)
	if why != "" {
		l.add(l.unit.result.At(violation.ReasonObjectScope, permissionsField+".serviceAccountName").Because(
			"Bring one ServiceAccount of that name in the package, or set spec.defaultNamespace of the ClusterPackage.", "%s", why))
		return nil
	}

	account.Namespace = namespace
	return permissions.Roles([]permissions.Scope{scope}, name, []rbacv1.Subject{account})
}

// accountNamespace returns the namespace of the account of a ClusterPackage's workload: the
// namespace of the account that the package brings, or else the default one.
func (l *load) accountNamespace(name string, all []*object) (namespace, why string) {
	found := map[string]bool{}
	for _, o := range all {
		if o.gvk.GroupKind() == (schema.GroupKind{Kind: "ServiceAccount"}) && o.name == name && !elsewhere(o.class) {
			found[o.namespace] = true
		}
	}

	switch namespaces := slices.Sorted(maps.Keys(found)); {
	case len(namespaces) > 1:
		return "", fmt.Sprintf("the package brings ServiceAccounts %s in several namespaces, as in %s and %s", name, namespaces[0], namespaces[1])
	case len(namespaces) == 1:
		return namespaces[0], ""
	case l.opts.DefaultNamespace != "":
		return l.opts.DefaultNamespace, ""
	}

	return "", fmt.Sprintf("the namespace of the ServiceAccount %s is unknown: the package does not bring it, and a ClusterPackage has no namespace of its own", name)
}

// aggregated returns the user roles on the kinds of the package's own definitions. No ceiling
// bounds them, so they never cover kinds that the package does not bring: no definition can replace
// a kind of Kubernetes.
func (l *load) aggregated(to []string, all []*object) []any {
	var definitions []*unstructured.Unstructured
	for _, o := range all {
		if o.defines == nil || elsewhere(o.class) {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(o.stored.Object.Raw, &u.Object); err != nil {
			l.add(o.violation(violation.ReasonObjectInvalid, "").Because("", "%v", err))
			return nil
		}
		// A definition of such a group would let aggregated roles grant users rights on Kubernetes'
		// own kinds.
		if group, _, _ := unstructured.NestedString(u.Object, "spec", "group"); ofKubernetes(group) {
			l.add(o.violation(violation.ReasonObjectInvalid, "spec.group").Because("Define kinds of a group of your own, or leave "+aggregateField+" of the manifest out.",
				"%.100q is a group of Kubernetes or of the engine, on which "+aggregateField+" of the manifest gives users no rights", group))
			return nil
		}
		definitions = append(definitions, u)
	}

	if len(to) > 0 && len(permissions.OnDefined(definitions, nil)) == 0 {
		l.add(l.unit.result.At(violation.ReasonObjectInvalid, aggregateField).Because("Bring the CustomResourceDefinition, with metadata.name PLURAL.GROUP, or leave it out.",
			"the package brings no CustomResourceDefinition whose kind users could get rights on"))
		return nil
	}

	var out []any
	for _, role := range to {
		made := rbacv1.ClusterRole{Rules: permissions.OnDefined(definitions, verbsOf[role])}
		made.TypeMeta = metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"}
		made.Name = l.opts.Package.Metadata.Name + "-aggregate-to-" + role
		made.Labels = map[string]string{rbacv1.GroupName + "/aggregate-to-" + role: "true"}
		out = append(out, made)
	}

	return out
}

// ofKubernetes reports whether Kubernetes, its projects or the engine might serve a group.
func ofKubernetes(group string) bool {
	for kind := range builtIn {
		if kind.Group == group {
			return true
		}
	}
	return slices.ContainsFunc([]string{"k8s.io", "kubernetes.io"}, func(domain string) bool { return group == domain || strings.HasSuffix(group, "."+domain) })
}

// implied makes an object of the package that is not in any file.
func (l *load) implied(field string, typed any, labels map[string]string) *object {
	at := l.unit.result.At(violation.ReasonObjectInvalid, field)
	body, err := json.Marshal(typed)
	u := &unstructured.Unstructured{}
	if err == nil {
		err = json.Unmarshal(body, &u.Object)
	}
	if err != nil {
		l.add(at.Because("", "%v", err))
		return nil
	}

	// The typed form writes it as null, and a package must not set it.
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	all := map[string]string{}
	// The labels of the engine come last. Common metadata cannot replace them.
	for _, from := range []map[string]string{u.GetLabels(), l.opts.CommonMetadata.Labels, labels} {
		maps.Copy(all, from)
	}

	u.SetLabels(all)
	if len(l.opts.CommonMetadata.Annotations) > 0 {
		u.SetAnnotations(l.opts.CommonMetadata.Annotations)
	}

	o := &object{at: at, gvk: u.GroupVersionKind(), namespace: u.GetNamespace(), name: u.GetName(), phase: manifest.PermissionsPhase}
	o.at.Reason, o.at.Field = "", ""
	o.at.Object = fmt.Sprintf("%s %s %s", u.GetAPIVersion(), u.GetKind(), u.GetName())
	raw, err := json.Marshal(u.Object)
	if err != nil {
		l.add(at.Because("", "%v", err))
		return nil
	}

	if len(raw) > limits.ObjectBytes {
		at.Reason = violation.ReasonLimit
		l.add(at.Because("", "the %s would have %d bytes of JSON; the limit is %d", u.GetKind(), len(raw), limits.ObjectBytes))
		return nil
	}

	// Another mode would let the package take over a role that exists already, with all of its
	// bindings.
	o.stored = corev1alpha1.ObjectSetObject{Object: runtime.RawExtension{Raw: raw}, CollisionProtection: corev1alpha1.CollisionProtectionPrevent}
	return o
}
