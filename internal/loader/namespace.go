package loader

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
)

// defaultNamespaces sets the default namespace on objects of kinds that the package defines
// or the cluster knows; check.scope did so for built-in ones. The engine refuses namespaced
// objects of unknown kinds once their API is served.
func (l *load) defaultNamespaces(all []*object) {
	if l.opts.DefaultNamespace == "" || l.opts.scope() != corev1alpha1.ScopeCluster {
		return
	}
	defined := definitionsOf(all)
	for _, o := range all {
		kind := o.gvk.GroupKind()
		if _, known := BuiltInScope(kind); known || o.namespace != "" {
			continue
		}
		namespaced, known := l.scopeOf(kind, defined)
		if !known {
			l.warnings = append(l.warnings, o.violation(violation.ReasonObjectScope, "metadata.namespace").Because(
				"Where it is, set metadata.namespace, or bring its CustomResourceDefinition in the same package.",
				"it is not known whether %s is namespaced; spec.defaultNamespace is not applied", kind))
		}
		if !namespaced {
			continue
		}
		if err := o.setNamespace(l.opts.DefaultNamespace); err != nil {
			l.add(o.violation(violation.ReasonObjectInvalid, "").Because("", "%v", err))
		}
	}
}

func (l *load) scopeOf(kind schema.GroupKind, defined map[schema.GroupKind]*definition) (namespaced, known bool) {
	if d := defined[kind]; d != nil {
		return d.namespaced, true
	}
	if l.opts.Namespaced != nil {
		return l.opts.Namespaced(kind)
	}
	return false, false
}

// setNamespace moves the object to a namespace.
func (o *object) setNamespace(namespace string) error {
	body := map[string]any{}
	if err := json.Unmarshal(o.stored.Object.Raw, &body); err != nil {
		return err
	}
	meta, ok := body["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("the object has no metadata")
	}
	meta["namespace"] = namespace
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	o.stored.Object.Raw, o.namespace = raw, namespace
	return nil
}
