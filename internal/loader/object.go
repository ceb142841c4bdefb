package loader

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
)

// object is an object of the package, checked or implied by its manifest.
type object struct {
	at        violation.Violation
	gvk       schema.GroupVersionKind
	namespace string
	name      string
	phase     string
	class     string // of the phase
	stored    corev1alpha1.ObjectSetObject
	sensitive bool
	defines   *definition
	// aggregates is the API of an APIService with its own server.
	aggregates schema.GroupVersion
	// images are the images of its containers.
	images []string
}

// elsewhere reports whether the agent of a class writes objects into an unknown cluster, so that
// rules about namespaces and scopes do not apply.
func elsewhere(class string) bool { return class != "" && class != corev1alpha1.PhaseClassDefault }

// violation returns a violation at the object's place in its file.
func (o *object) violation(reason violation.Reason, field string) violation.Violation {
	v := o.at
	v.Reason, v.Field = reason, field
	return v
}

// setNamespace encodes the object again with another namespace. The parsed form is not kept, to
// save memory.
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

// definition is the content of a CustomResourceDefinition.
type definition struct {
	kind       schema.GroupKind
	namespaced bool
	// served are the served versions.
	served []string
}

// definitionOf returns the kind, scope and served versions that a definition brings, or nil for
// another kind. Missing fields are empty; the API server refuses such a definition.
func definitionOf(kind schema.GroupKind, body map[string]any) *definition {
	if kind != crdKind {
		return nil
	}

	spec, _ := body["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	d := &definition{}
	d.kind.Group, _ = spec["group"].(string)
	d.kind.Kind, _ = names["kind"].(string)
	d.namespaced = fmt.Sprint(spec["scope"]) == "Namespaced"
	versions, _ := spec["versions"].([]any)
	for _, entry := range versions {
		version, _ := entry.(map[string]any)
		if name, _ := version["name"].(string); version["served"] == true {
			d.served = append(d.served, name)
		}
	}

	return d
}

// definitionsOf returns the definitions among the objects by the kind that they define.
func definitionsOf(all []*object) map[schema.GroupKind]*definition {
	defined := map[schema.GroupKind]*definition{}
	for _, o := range all {
		if o.defines != nil {
			defined[o.defines.kind] = o.defines
		}
	}
	return defined
}

// aggregationOf returns the API of an APIService that is served by another server than the API
// server.
func aggregationOf(kind schema.GroupKind, body map[string]any) (gv schema.GroupVersion) {
	spec, _ := body["spec"].(map[string]any)
	if kind == apiServiceKind && spec["service"] != nil {
		gv.Group, _ = spec["group"].(string)
		gv.Version, _ = spec["version"].(string)
	}
	return gv
}
