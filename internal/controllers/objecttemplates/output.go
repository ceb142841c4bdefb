package objecttemplates

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/sensitive"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

// parse reads the output of a template: one object as YAML or JSON. If it has values of a Secret,
// errors do not quote it.
func parse(text []byte, secret bool) (map[string]any, *problem) {
	var values []any
	wrong := document.Each("", text, func(d *document.Document) { values = append(values, d.Value) })
	wrongOutput := func(format string, args ...any) (map[string]any, *problem) {
		return nil, invalid(corev1alpha1.ReasonTemplateError, "spec.template: "+fmt.Sprintf(format, args...))
	}
	switch {
	case len(wrong) > 0 && secret:
		return wrongOutput("line %d of the output is not valid YAML or JSON; it is not quoted because it might contain a value of a Secret", wrong[0].Line)
	case len(wrong) > 0:
		return wrongOutput("the output is not valid YAML or JSON: line %d: %.300s", wrong[0].Line, wrong[0].Details)
	case len(values) != 1:
		return wrongOutput("the output has %d objects, and has to have one", len(values))
	}

	content, isMap := values[0].(map[string]any)
	if !isMap {
		return wrongOutput("the output has to be an object, with apiVersion, kind and metadata.name")
	}

	gvk, u := kindOf(content), unstructured.Unstructured{Object: content}
	if _, isMap := content["metadata"].(map[string]any); !isMap || gvk.Kind == "" || gvk.Version == "" || u.GetName() == "" {
		return wrongOutput("apiVersion, kind and metadata.name are required in the output")
	}

	key := objects.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
	if why := objectsets.NameProblem(gvk, key); why != "" && secret {
		return wrongOutput("apiVersion, kind, name or namespace of the output is not valid")
	} else if why != "" {
		return wrongOutput("the output: %s", why)
	}

	return content, nil
}

// kindOf returns the kind of an object; empty if it has none.
func kindOf(content map[string]any) schema.GroupVersionKind {
	apiVersion, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return schema.GroupVersionKind{}
	}
	return gv.WithKind(kind)
}

// placed returns the key of a rendered object of a kind, by the rules for the scope of its template.
func placed(content map[string]any, owner objects.Owner, kind livestate.KindState) (objects.Key, *problem) {
	gvk, u := kindOf(content), unstructured.Unstructured{Object: content}
	key := objects.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
	wrong := func(format string, args ...any) (objects.Key, *problem) {
		return key, invalid(corev1alpha1.ReasonSourceError, "spec.template: "+key.String()+" "+fmt.Sprintf(format, args...))
	}
	switch {
	case !kind.Served:
		return key, &problem{
			reason: corev1alpha1.ReasonPreflightError, passes: true,
			message: fmt.Sprintf("The API server does not serve %s: install its CustomResourceDefinition.", gvk.GroupKind()),
		}
	case len(u.GetOwnerReferences()) > 0:
		return wrong("has metadata.ownerReferences, which are the engine's to set: remove them")
	case objectsets.MarkedGenerated(&u):
		return wrong("has the label %s, which marks packages that the engine installs for others: remove it", corev1alpha1.GeneratedLabel)
	case owner.Namespace != "" && !kind.Namespaced:
		return wrong("is cluster-scoped, and an ObjectTemplate renders objects of its own namespace only: use a ClusterObjectTemplate")
	case owner.Namespace != "" && key.Namespace != "" && key.Namespace != owner.Namespace:
		return wrong("is in another namespace than the ObjectTemplate: remove metadata.namespace, or use a ClusterObjectTemplate")
	case owner.Namespace != "":
		key.Namespace = owner.Namespace
	case !kind.Namespaced:
		key.Namespace = ""
	case key.Namespace == "":
		return wrong("is namespaced, and metadata.namespace is missing")
	}

	if gvk.Group == corev1alpha1.GroupName && key.Kind == owner.Kind && key.Name == owner.Name && key.Namespace == owner.Namespace {
		return wrong("is the template itself")
	}
	return key, nil
}

// discreet refuses an object whose kind or name has a value of a Secret, because statuses, events
// and logs name the object. A name in the text of the template is its author's choice.
func discreet(content map[string]any, template string, secrets []string) *problem {
	if exposed(content) {
		return nil
	}

	values, err := sensitive.New(secrets)
	if err != nil {
		return invalid(corev1alpha1.ReasonSourceError, "spec.sources: "+err.Error()+": select less")
	}

	gvk, u := kindOf(content), unstructured.Unstructured{Object: content}
	for _, field := range []struct{ name, text string }{
		{"apiVersion", gvk.Group}, {"apiVersion", gvk.Version}, {"kind", gvk.Kind}, {"metadata.namespace", u.GetNamespace()}, {"metadata.name", u.GetName()},
	} {
		if !strings.Contains(template, field.text) && values.RedactWords(field.text) != field.text {
			return invalid(corev1alpha1.ReasonSourceError, fmt.Sprintf(
				"spec.template: %s of the output has a value of a Secret, and statuses, events and logs name the object: use another name, or annotate the object %s: \"true\" if the value is not confidential",
				field.name, corev1alpha1.ExposeSecretValuesAnnotation))
		}
	}

	return nil
}

// exposed reports whether the author of an object has annotated it to expose values of Secrets.
func exposed(content map[string]any) bool {
	u := unstructured.Unstructured{Object: content}
	return u.GetAnnotations()[corev1alpha1.ExposeSecretValuesAnnotation] == corev1alpha1.ExposeSecretValuesTrue
}

// confined refuses an object other than a Secret with values of a Secret, unless its author has
// annotated it.
func confined(content map[string]any, key objects.Key) *problem {
	if key.GroupKind() == (schema.GroupKind{Kind: "Secret"}) || exposed(content) {
		return nil
	}
	return invalid(corev1alpha1.ReasonSourceError, fmt.Sprintf(
		"spec.template: a source is a Secret, and %s is not: every reader of the object could read the values. Render a Secret and refer to it "+
			"(a Package takes values from it by spec.configFrom), or annotate the object %s: \"true\" if they are not confidential",
		key.GroupKind(), corev1alpha1.ExposeSecretValuesAnnotation))
}
