package kickstart

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/violation"
)

// definition is a CustomResourceDefinition of the input.
type definition struct {
	namespaced bool
	// conditions that its printer columns show: what people look at.
	conditions []string
}

// definitions reads the CustomResourceDefinitions of the input.
func definitions(all []*object) map[schema.GroupKind]*definition {
	out := map[schema.GroupKind]*definition{}
	for _, o := range all {
		if !o.is("apiextensions.k8s.io", "CustomResourceDefinition") {
			continue
		}
		kind := schema.GroupKind{Group: text(o.value, "spec", "group"), Kind: text(o.value, "spec", "names", "kind")}
		out[kind] = &definition{namespaced: text(o.value, "spec", "scope") == "Namespaced", conditions: columns(o)}
	}
	return out
}

// clusterKinds are cluster-scoped kinds of others that are often met.
var clusterKinds = map[string]bool{
	"project.openshift.io/Project": true, "security.openshift.io/SecurityContextConstraints": true,
	"gateway.networking.k8s.io/GatewayClass": true, "snapshot.storage.k8s.io/VolumeSnapshotClass": true,
	"snapshot.storage.k8s.io/VolumeSnapshotContent": true, "policy/PodSecurityPolicy": true,
	"console.openshift.io/ConsolePlugin": true, "karpenter.sh/NodePool": true,
}

// namespaced tells the scope of an object. Kinds that nothing is known of count as
// namespaced, as most are, unless their name says otherwise; guessed is set for
// those.
func (m *maker) namespaced(o *object) (namespaced, guessed bool) {
	kind := o.kind()
	if namespaced, known := loader.BuiltInScope(kind); known {
		return namespaced, false
	}
	if d := m.defined[kind]; d != nil {
		return d.namespaced, false
	}
	switch {
	case o.namespace() != "":
		return true, false
	case clusterKinds[kind.Group+"/"+kind.Kind], strings.HasPrefix(kind.Kind, "Cluster"):
		return false, false
	}
	return true, true
}

// scope decides by which kind of Package the package can be installed, and gives
// every object its namespace.
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
	switch m.opts.Scope {
	case corev1alpha1.ScopeNamespaced:
		return m.inAnyNamespace(all, used)
	case "":
		if bare > 0 && others == 0 && len(used) == 0 && m.opts.Namespace == "" {
			return m.inAnyNamespace(all, used)
		}
	}
	m.scopes = []string{string(corev1alpha1.ScopeCluster)}
	m.namespace = m.opts.Namespace
	if m.namespace == "" && bare > 0 {
		m.namespace = m.opts.Name
		if named := referred(all, used); len(named) == 1 {
			m.namespace = named[0]
		}
		m.note("objects that name no namespace (%d) were put into %s; choose another by --namespace", bare, m.namespace)
	}
	m.place(all, used)
	return append(m.missing(all, used), all...), nil
}

// inAnyNamespace makes a package for any namespace: its objects name none.
func (m *maker) inAnyNamespace(all []*object, used map[string]bool) ([]*object, error) {
	m.scopes = []string{string(corev1alpha1.ScopeNamespaced)}
	var wrong violation.Violations
	fail := func(o *object, remedy, format string, args ...any) {
		v := o.at
		v.Object, v.Details, v.Remedy = o.String(), fmt.Sprintf(format, args...), remedy
		wrong = append(wrong, v)
	}
	own := slices.Sorted(maps.Keys(used))
	var kept []*object
	for _, o := range all {
		namespaced, _ := m.namespaced(o)
		switch {
		case !namespaced && len(own) == 1 && o.is("", "Namespace") && o.name() == own[0]:
			m.note("%s was left out: it is that of the Package", o)
			continue
		case !namespaced:
			fail(o, "Leave it out, or make a package with --scope Cluster.", "it is in no namespace, so a Package in a namespace cannot bring it")
		case o.namespace() != "" && len(own) > 1:
			fail(o, "Leave all but one out, or make a package with --scope Cluster.", "a Package brings objects of its own namespace only, and the input has those of %s", violation.Listed(own))
		default:
			delete(child(o.value, "metadata"), "namespace")
		}
		kept = append(kept, o)
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if len(own) == 1 {
		m.note("objects in %s are in the namespace of the Package now", own[0])
	}
	m.subjects(kept)
	return kept, nil
}

// place sets the namespace of objects without one.
func (m *maker) place(all []*object, used map[string]bool) {
	guesses := map[string]bool{}
	for _, o := range all {
		namespaced, guessed := m.namespaced(o)
		meta := child(o.value, "metadata")
		switch {
		case !namespaced:
			delete(meta, "namespace")
		case o.namespace() == "":
			meta["namespace"] = m.namespace
			used[m.namespace] = true
			if guessed {
				guesses[o.gvk.Kind] = true
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(guesses)) {
		m.note("whether %s is a namespaced kind is not known here; it was taken for one", kind)
	}
}

// referred returns the namespaces that are used, and those in which bindings look
// for ServiceAccounts of the input: charts often name the namespace of the release
// there alone. Those that every cluster has are left out.
func referred(all []*object, used map[string]bool) []string {
	named := maps.Clone(used)
	accounts := map[string]bool{}
	for _, o := range all {
		if o.gvk.Kind == "ServiceAccount" && o.namespace() == "" {
			accounts[o.name()] = true
		}
	}
	for _, o := range all {
		list, _ := o.value["subjects"].([]any)
		for _, subject := range list {
			if ns := text(subject, "namespace"); ns != "" && text(subject, "kind") == "ServiceAccount" && accounts[text(subject, "name")] {
				named[ns] = true
			}
		}
	}
	maps.DeleteFunc(named, func(ns string, _ bool) bool { return isSystemNamespace(ns) })
	return slices.Sorted(maps.Keys(named))
}

// isSystemNamespace reports whether a namespace belongs to the cluster.
func isSystemNamespace(name string) bool {
	return name == "default" || strings.HasPrefix(name, "kube-") || strings.HasPrefix(name, "openshift-") || name == "openshift"
}

// missing returns a Namespace for each that is used and not in the input. Those
// that every cluster has are none of a package's business.
func (m *maker) missing(all []*object, used map[string]bool) []*object {
	for _, o := range all {
		if kind := o.kind(); kind.Kind == "Namespace" && kind.Group == "" || kind.Kind == "Project" {
			delete(used, o.name())
		}
	}
	var out []*object
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if isSystemNamespace(name) {
			m.note("the namespace %s has to exist; none was added, as it belongs to the cluster", name)
			continue
		}
		out = append(out, &object{
			gvk:   schema.GroupVersionKind{Version: "v1", Kind: "Namespace"},
			value: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}},
		})
		m.note("a Namespace %s was added, because objects are in it", name)
	}
	return out
}

// subjects makes bindings name the ServiceAccounts of the namespace that the
// package is installed in.
func (m *maker) subjects(all []*object) {
	own := map[string]bool{}
	for _, o := range all {
		if o.gvk.Kind == "ServiceAccount" {
			own[o.name()] = true
		}
	}
	for _, o := range all {
		list, _ := o.value["subjects"].([]any)
		for _, item := range list {
			subject, _ := item.(map[string]any)
			if text(subject, "kind") == "ServiceAccount" && own[text(subject, "name")] {
				subject["namespace"] = expression(".package.metadata.namespace")
			}
		}
	}
}
