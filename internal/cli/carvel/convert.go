package carvel

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
)

// GlobalNamespace is the namespace whose packages are for all namespaces, as kapp-controller's
// release sets it.
const GlobalNamespace = "kapp-controller-packaging-global"

// The API groups of kapp-controller, with the slash of an API version.
const (
	installGroup = "packaging.carvel.dev/"
	dataGroup    = "data.packaging.carvel.dev/"
)

// Note explains why a field was not carried over, or changed.
type Note struct {
	// Object, such as "PackageInstall shop/web".
	Object string
	// Field, such as spec.values[0]; empty for the object as a whole.
	Field string
	Text  string
}

// Result of Convert.
type Result struct {
	// Objects to apply, in the order of their originals.
	Objects []map[string]any
	Notes   []Note
}

// Convert turns documents into objects, in their order. Lists are unpacked. Repositories of the
// namespace global become ClusterPackageRepositories.
func Convert(documents []map[string]any, global string) *Result {
	c := &converter{global: global, result: &Result{}, secrets: map[string][]string{}, noted: map[string]bool{}}
	all := unpacked(documents)
	for _, doc := range all {
		if doc.GetAPIVersion() == "v1" && doc.GetKind() == "Secret" {
			c.secrets[key(doc.GetNamespace(), doc.GetName())] = keysOf(doc)
		}
	}

	for _, doc := range all {
		c.one(doc)
	}
	return c.result
}

// unpacked returns the documents with the items of lists in their place.
func unpacked(documents []map[string]any) (all []*unstructured.Unstructured) {
	for _, doc := range documents {
		items, isList := doc["items"].([]any)
		if !isList {
			all = append(all, &unstructured.Unstructured{Object: doc})
			continue
		}
		var inner []map[string]any
		for _, item := range items {
			if m, ok := item.(map[string]any); ok {
				inner = append(inner, m)
			}
		}

		all = append(all, unpacked(inner)...)
	}

	return all
}

// keysOf returns the sorted keys of a Secret. Their values are not kept.
func keysOf(secret *unstructured.Unstructured) []string {
	found := map[string]bool{}
	for _, field := range []string{"data", "stringData"} {
		values, _, _ := unstructured.NestedMap(secret.Object, field)
		for name := range values {
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// key identifies a Secret of the input.
func key(namespace, name string) string { return namespace + "/" + name }

// converter collects the results of all documents.
type converter struct {
	global string
	result *Result
	// secrets are the keys of the Secrets of the input.
	secrets map[string][]string
	// noted are the Secrets with a note about their values.
	noted map[string]bool
}

// one converts a document by its kind. Documents without a counterpart get a note.
func (c *converter) one(doc *unstructured.Unstructured) {
	kind, version := doc.GetKind(), doc.GetAPIVersion()
	i := &item{converter: c, object: strings.TrimSpace(kind + " " + strings.TrimPrefix(key(doc.GetNamespace(), doc.GetName()), "/")), doc: doc}
	switch {
	case strings.HasPrefix(version, installGroup) && kind == "PackageInstall":
		i.install()
	case strings.HasPrefix(version, installGroup) && kind == "PackageRepository":
		i.repository()
	case strings.HasPrefix(version, dataGroup):
		i.lost("", "put it into the folder, archive or git source of a repository as it is")
	case version == "v1" && kind == "Secret":
		// Other objects refer to it.
	default:
		i.lost("", "this kind has no counterpart")
	}
}

// item is one document that is converted.
type item struct {
	*converter
	object string
	doc    *unstructured.Unstructured
	// different is set if the installed objects would lack something.
	different bool
}

// lost adds a note about a field that was dropped or changed without an effect on the installed
// objects.
func (i *item) lost(field, format string, args ...any) {
	i.result.Notes = append(i.result.Notes, Note{Object: i.object, Field: field, Text: fmt.Sprintf(format, args...)})
}

// missing adds a note about a field that changes the installed objects and cannot be carried over.
func (i *item) missing(field, format string, args ...any) {
	i.different = true
	i.lost(field, format, args...)
}

// read decodes the spec of the document. Fields that the type lacks get a note.
func (i *item) read(into any) bool {
	spec, _, _ := unstructured.NestedMap(i.doc.Object, "spec")
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(spec, into, true)
	strict, isStrict := runtime.AsStrictDecodingError(err)
	if err != nil && !isStrict {
		i.lost("spec", "it cannot be read: %v", err)
		return false
	}
	if isStrict {
		for _, unknown := range strict.Errors() {
			i.lost("spec."+strings.Trim(strings.TrimPrefix(unknown.Error(), "unknown field "), `"`), "it has no counterpart")
		}
	}
	return true
}

// emit adds an object to the result.
func (i *item) emit(kind string, metadata map[string]any, spec any) {
	values, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		i.lost("spec", "it cannot be written: %v", err)
		return
	}
	i.result.Objects = append(i.result.Objects, map[string]any{"apiVersion": corev1alpha1.GroupVersion.String(), "kind": kind, "metadata": metadata, "spec": values})
}

// metadata keeps labels, and the annotations that no tool has set for itself. handled are
// annotations that became fields.
func (i *item) metadata(namespace string, handled map[string]bool) map[string]any {
	out := map[string]any{"name": i.doc.GetName()}
	if namespace != "" {
		out["namespace"] = namespace
	}
	labels := map[string]any{}
	for name, value := range i.doc.GetLabels() {
		if !strings.HasPrefix(name, "kapp.k14s.io/") {
			labels[name] = value
		}
	}

	annotations := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(i.doc.GetAnnotations())) {
		switch {
		case handled[name], strings.HasPrefix(name, "kapp.k14s.io/"), strings.HasPrefix(name, "kubectl.kubernetes.io/"):
		case name != ignoreKubernetes && (strings.Contains(name, ".carvel.dev/") || strings.HasPrefix(name, "packaging.carvel.dev/")):
			i.lost("annotation "+name, "it has no counterpart")
		default:
			annotations[name] = i.doc.GetAnnotations()[name]
		}
	}

	if len(labels) > 0 {
		out["labels"] = labels
	}
	if len(annotations) > 0 {
		out["annotations"] = annotations
	}

	return out
}

// interval returns a period that the field allows.
func (i *item) interval(from *metav1.Duration, least time.Duration) *metav1.Duration {
	if from == nil || from.Duration >= least {
		return from
	}
	i.lost("spec.syncPeriod", "it is less than the minimum, %s, which is used instead", least)
	return &metav1.Duration{Duration: least}
}

// selection is a choice among versions or tags.
type selection struct {
	Constraints string                    `json:"constraints"`
	Prereleases *corev1alpha1.Prereleases `json:"prereleases"`
}

// selection converts the selection in a field.
func (i *item) selection(field string, from selection) corev1alpha1.VersionSelection {
	if _, err := versions.ParseConstraint(from.Constraints); err != nil {
		i.missing(field+".constraints", "it cannot be read: %v", err)
	}
	return corev1alpha1.VersionSelection{Version: from.Constraints, Prereleases: from.Prereleases}
}
