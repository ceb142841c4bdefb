package loader

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
)

// These messages name fields of the ClusterPackage, because its author and the package's can
// differ.
const (
	namespaceMissing = "%s is namespaced, and a ClusterPackage has no namespace of its own"
	namespaceRemedy  = "Set metadata.namespace, or spec.defaultNamespace of the ClusterPackage, or in another cluster its spec.targetRef.namespace."
	namespaceGiven   = "%s names no namespace: a ClusterPackage of the package needs spec.defaultNamespace, or in another cluster spec.targetRef.namespace"
)

// scope refuses an installation in a scope that the manifest does not allow. No scopes means that
// all are allowed.
func (l *load) scope() {
	kind, want := "Package", manifestsv1alpha1.PackageManifestScopeNamespaced
	if l.opts.scope() == corev1alpha1.ScopeCluster {
		kind, want = "ClusterPackage", manifestsv1alpha1.PackageManifestScopeCluster
	}

	scopes := l.unit.result.Manifest.Spec.Scopes
	for _, s := range scopes {
		known := s == manifestsv1alpha1.PackageManifestScopeCluster || s == manifestsv1alpha1.PackageManifestScopeNamespaced
		if s == want || !known && l.unit.result.Strict {
			return // a wrong value is reported as such
		}
	}

	if len(scopes) == 0 {
		return
	}

	allowed, other := make([]string, len(scopes)), map[string]string{"Package": "ClusterPackage", "ClusterPackage": "Package"}[kind]
	for i, s := range scopes {
		allowed[i] = string(s)
	}

	l.add(l.unit.result.At(violation.ReasonUnsupportedScope, "spec.scopes").Because("Install it as a "+other+".",
		"the package allows %s only, and this is a %s", strings.Join(allowed, ", "), kind))
}

// scope checks the scope without a cluster. The engine repeats the check with a RESTMapping.
func (c *check) scope() {
	annotations, _ := c.meta["annotations"].(map[string]any)
	if phase, _ := annotations[corev1alpha1.PhaseAnnotation].(string); elsewhere(c.r.classes[phase]) {
		return
	}

	kind := c.out.gvk.GroupKind()
	namespaced, known := BuiltInScope(kind)
	if c.r.opts.scope() == corev1alpha1.ScopeCluster {
		c.clusterScope(kind, namespaced, known)
		return
	}

	own := c.r.opts.Package.Metadata.Namespace
	switch {
	// The most frequent case gets a remedy of its own: the definition can move, and the rest can
	// stay.
	case kind == crdKind:
		c.fail(violation.ReasonObjectScope, "kind", "Install the package as a ClusterPackage (--cluster), or bring the CustomResourceDefinition in a ClusterPackage of its own.",
			"a CustomResourceDefinition is cluster-scoped, and a Package may only bring objects of its own namespace")
	case known && !namespaced:
		c.fail(violation.ReasonObjectScope, "kind", "Install the package as a ClusterPackage (--cluster), or leave the object out.",
			"%s is cluster-scoped, and a Package may only bring objects of its own namespace", kind.Kind)
	case c.out.namespace != "" && c.r.opts.anyNamespace:
		c.warn(violation.ReasonObjectInvalid, "metadata.namespace", "Remove metadata.namespace.", "the package can be installed in the namespace %q only", c.out.namespace)
	case c.out.namespace != "" && c.out.namespace != own:
		c.fail(violation.ReasonObjectScope, "metadata.namespace", "Remove metadata.namespace, or install the package as a ClusterPackage (--cluster).",
			"the object is in the namespace %q, the Package in %q", c.out.namespace, own)
	}
}

// clusterScope checks the scope of an object of a ClusterPackage, which gets the default namespace.
func (c *check) clusterScope(kind schema.GroupKind, namespaced, known bool) {
	if known && !namespaced && c.out.namespace != "" {
		c.dropped(violation.ReasonObjectInvalid, "metadata.namespace", "Remove it.", "%s is cluster-scoped", kind.Kind)
		delete(c.meta, "namespace")
		c.out.namespace = ""
	}

	if own := c.r.opts.DefaultNamespace; known && namespaced && c.out.namespace == "" && own != "" {
		c.meta["namespace"] = own
		c.out.namespace = own
		if c.r.opts.anyNamespace {
			c.warn(violation.ReasonObjectScope, "metadata.namespace", "Set it if it is always the same.", namespaceGiven, kind.Kind)
		}
	}

	if known && namespaced && c.out.namespace == "" {
		c.fail(violation.ReasonObjectScope, "metadata.namespace", namespaceRemedy, namespaceMissing, kind.Kind)
	}
}

// defaultNamespaces sets the default namespace of a ClusterPackage on objects whose kind the package
// defines or the cluster knows. Without one, objects of a kind that the package defines need a
// namespace of their own. Single documents cannot be checked for this, as the definition is another
// one.
func (l *load) defaultNamespaces(all []*object) {
	if l.opts.scope() != corev1alpha1.ScopeCluster {
		return
	}

	defined := definitionsOf(all)
	for _, o := range all {
		kind := o.gvk.GroupKind()
		if _, known := BuiltInScope(kind); known || o.namespace != "" || elsewhere(o.class) {
			continue
		}
		var namespaced, known bool
		if d := defined[kind]; d != nil {
			namespaced, known = d.namespaced, true
		} else if l.opts.Namespaced != nil {
			namespaced, known = l.opts.Namespaced(kind)
		}
		at := o.violation(violation.ReasonObjectScope, "metadata.namespace")
		switch own := l.opts.DefaultNamespace; {
		case own == "" && namespaced && defined[kind] != nil:
			l.add(at.Because(namespaceRemedy, namespaceMissing, kind.Kind))
		case own == "":
		case !known && !l.opts.anyNamespace:
			l.warnings = append(l.warnings, at.Because("If it is, set metadata.namespace, or bring its CustomResourceDefinition in the same package.",
				"it is not known whether %s is namespaced; spec.defaultNamespace is not applied", kind))
		case namespaced:
			if l.opts.anyNamespace {
				l.warnings = append(l.warnings, at.Because("Set it if it is always the same.", namespaceGiven, kind.Kind))
			}
			if err := o.setNamespace(own); err != nil {
				l.add(o.violation(violation.ReasonObjectInvalid, "").Because("", "%v", err))
			}
		}
	}
}
