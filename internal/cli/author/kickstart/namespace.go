package kickstart

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/fields"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/presets"
	"lockstep.run/lockstep/internal/loader/violation"
)

// definition is a CustomResourceDefinition of the input.
type definition struct {
	namespaced bool
	// conditions in its printer columns.
	conditions []string
}

// definitions returns the definitions of the input by the kinds that they define.
func definitions(all []*object) map[schema.GroupKind]*definition {
	out := map[schema.GroupKind]*definition{}
	for _, o := range all {
		if o.is("apiextensions.k8s.io", "CustomResourceDefinition") {
			kind := schema.GroupKind{Group: fields.Text(o.value, "spec", "group"), Kind: fields.Text(o.value, "spec", "names", "kind")}
			out[kind] = &definition{namespaced: fields.Text(o.value, "spec", "scope") == "Namespaced", conditions: columns(o)}
		}
	}
	return out
}

// namespaced reports whether an object has a namespace; guessed is set if its kind is
// not known.
func (m *maker) namespaced(o *object) (namespaced, guessed bool) {
	kind := o.kind()
	if namespaced, known := loader.BuiltInScope(kind); known {
		return namespaced, false
	}
	if d := m.defined[kind]; d != nil {
		return d.namespaced, false
	}

	switch {
	// The object's own namespace is better evidence than its kind's name.
	case o.namespace() != "":
		return true, false
	case presets.ClusterScoped(kind), strings.HasPrefix(kind.Kind, "Cluster"):
		return false, false
	}

	return true, true
}

// scope decides on the scope of the package, and sets the namespaces of the objects.
func (m *maker) scope(all []*object) ([]*object, error) {
	bare, others := 0, 0
	used := map[string]bool{}
	for _, o := range all {
		namespaced, _ := m.namespaced(o)
		switch {
		case !namespaced:
			others++
		case o.namespace() != "":
			used[o.namespace()] = true
		default:
			bare++
		}
	}

	// Objects that name no namespace fit into any. A single cluster-scoped one does not fit into a
	// Package.
	anywhere := bare > 0 && others == 0 && len(used) == 0 && m.opts.Namespace == ""
	if m.opts.Scope == corev1alpha1.ScopeNamespaced || m.opts.Scope == "" && anywhere {
		m.packageScope = corev1alpha1.ScopeNamespaced
		return m.inAnyNamespace(all, slices.Sorted(maps.Keys(used)))
	}

	m.packageScope = corev1alpha1.ScopeCluster
	namespace := m.opts.Namespace
	if namespace == "" && bare > 0 {
		namespace = m.opts.Name
		// Charts often name their namespace only in bindings.
		if named := referred(all, used); len(named) == 1 {
			namespace = named[0]
		}
		m.note("objects without a namespace (%d) were put into %s; choose another one with --namespace", bare, namespace)
	}
	m.place(all, namespace, used)
	return append(m.missing(all, used), all...), nil
}

// inAnyNamespace removes the namespaces of the objects.
func (m *maker) inAnyNamespace(all []*object, used []string) ([]*object, error) {
	var wrong violation.Violations
	fail := func(o *object, remedy, format string, args ...any) {
		o.at.Object = o.String()
		wrong = append(wrong, o.at.Because(remedy, format, args...))
	}

	var kept []*object
	for _, o := range all {
		namespaced, _ := m.namespaced(o)
		switch {
		// The Package's own namespace exists already.
		case !namespaced && len(used) == 1 && o.is("", "Namespace") && o.name() == used[0]:
			m.note("%s was left out: it is the Package's own namespace", o)
			continue
		case !namespaced:
			fail(o, "Leave it out, or make a package with --scope Cluster.", "it is cluster-scoped, so a Package in a namespace cannot contain it")
		case o.namespace() != "" && len(used) > 1:
			fail(o, "Leave all but one out, or make a package with --scope Cluster.", "a Package only contains objects of its own namespace, but the input has objects in %s", violation.Listed(used))
		default:
			delete(child(o.value, "metadata"), "namespace")
		}

		kept = append(kept, o)
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if len(used) == 1 {
		m.note("objects in %s were moved to the namespace of the Package", used[0])
	}

	subjects(kept, func(*object) bool { return true }, func(subject map[string]any) {
		// Bindings have to name the namespace, which is known only at the installation.
		subject["namespace"] = expression(".package.metadata.namespace")
	})

	return kept, nil
}

// place sets the namespace of objects without one.
func (m *maker) place(all []*object, namespace string, used map[string]bool) {
	guesses := map[string]bool{}
	for _, o := range all {
		namespaced, guessed := m.namespaced(o)

		meta := child(o.value, "metadata")
		switch {
		case !namespaced:
			delete(meta, "namespace")
		case o.namespace() == "":
			meta["namespace"] = namespace
			used[namespace] = true
			if guessed {
				guesses[o.gvk.Kind] = true
			}
		}
	}

	for _, kind := range slices.Sorted(maps.Keys(guesses)) {
		m.note("the scope of the kind %s is not known here, so it was treated as namespaced", kind)
	}
}

// referred returns the used namespaces, and the namespaces where bindings expect ServiceAccounts of
// the input: charts often name the namespace of the release only there. The cluster's own
// namespaces are left out.
func referred(all []*object, used map[string]bool) []string {
	named := maps.Clone(used)
	subjects(all, func(account *object) bool { return account.namespace() == "" }, func(subject map[string]any) {
		if ns := fields.Text(subject, "namespace"); ns != "" {
			named[ns] = true
		}
	})
	maps.DeleteFunc(named, func(ns string, _ bool) bool { return isSystemNamespace(ns) })
	return slices.Sorted(maps.Keys(named))
}

// subjects calls visit for each subject of a binding that has the name of a ServiceAccount of the
// input.
func subjects(all []*object, match func(account *object) bool, visit func(subject map[string]any)) {
	accounts := map[string]bool{}
	for _, o := range all {
		if o.gvk.Kind == "ServiceAccount" && match(o) {
			accounts[o.name()] = true
		}
	}

	for _, o := range all {
		for _, subject := range fields.Maps(o.value, "subjects") {
			if subject["kind"] == "ServiceAccount" && accounts[fields.Text(subject, "name")] {
				visit(subject)
			}
		}
	}
}

// isSystemNamespace reports whether a namespace belongs to the cluster.
func isSystemNamespace(name string) bool {
	return name == "default" || strings.HasPrefix(name, "kube-") || strings.HasPrefix(name, "openshift-") || name == "openshift"
}

// missing returns a Namespace for each used one that the input does not have, except for the
// cluster's own. It stays, with its content, when the package is deleted.
func (m *maker) missing(all []*object, used map[string]bool) []*object {
	for _, o := range all {
		if o.is("", "Namespace") || o.gvk.Kind == "Project" {
			delete(used, o.name())
		}
	}

	var out []*object
	for _, name := range slices.Sorted(maps.Keys(used)) {
		switch {
		case isSystemNamespace(name):
			m.note("the namespace %s has to exist: none was added, because it belongs to the cluster", name)
			continue
		case m.opts.NoNamespaces:
			m.note("the namespace %s has to exist: none was added, because of --add-namespaces=false", name)
			continue
		}

		out = append(out, &object{
			gvk:   schema.GroupVersionKind{Version: "v1", Kind: "Namespace"},
			value: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}},
		})
		// A deleted Namespace would delete the objects of other packages in it.
		out[len(out)-1].annotate(corev1alpha1.DeletionPolicyAnnotation, corev1alpha1.DeletionPolicyKeep)
		m.note("the Namespace %s was added, because objects are in it; it stays when the package is deleted", name)
	}

	return out
}
