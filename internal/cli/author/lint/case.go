package lint

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author/schemacheck"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/objects"
)

// object is one object of a case.
type object struct {
	*unstructured.Unstructured
	kind      schema.GroupKind
	phase     int
	phaseName string
	source    loader.Source
}

// is reports whether the object is of one of some kinds.
func (o *object) is(kinds ...schema.GroupKind) bool {
	for _, kind := range kinds {
		if o.kind == kind {
			return true
		}
	}
	return false
}

func (o *object) annotated(key, value string) bool { return o.GetAnnotations()[key] == value }

// oneCase is a package as it would be installed in one case.
type oneCase struct {
	loader.Case
	// files of the component.
	files    loader.Files
	manifest *manifestsv1alpha1.PackageManifest
	objects  []*object
	checker  *schemacheck.Checker
	// namespace of the Package; empty for a ClusterPackage.
	namespace string
	// siblings are all cases of the component, this one included.
	siblings []*oneCase
	// former is the same case of an older package; nil where there is none.
	former map[objects.Key]*object
}

func newCase(session *schemacheck.Session, files loader.Files, of loader.Case) (*oneCase, error) {
	phases, err := schemacheck.Decode(of.Package)
	if err != nil {
		return nil, err
	}
	c := &oneCase{Case: of, files: files, manifest: of.Package.Manifest, namespace: of.For.Metadata.Namespace}
	if of.Component != "" {
		c.files = files.Below("components/" + of.Component)
	}
	var all []*unstructured.Unstructured
	for i, phase := range phases {
		for j, u := range phase {
			c.objects = append(c.objects, &object{
				Unstructured: u, kind: u.GroupVersionKind().GroupKind(), phase: i, phaseName: of.Package.Phases[i].Name, source: of.Package.Sources[i][j],
			})
		}
		all = append(all, phase...)
	}
	c.checker, err = session.Checker(all)
	return c, err
}

// key identifies an object within the package.
func (c *oneCase) key(o *object) objects.Key {
	return objects.Key{Group: o.kind.Group, Kind: o.kind.Kind, Namespace: c.namespaceOf(o), Name: o.GetName()}
}

// namespaceOf is where an object lands.
func (c *oneCase) namespaceOf(o *object) string {
	if o.GetNamespace() != "" {
		return o.GetNamespace()
	}
	return c.namespace
}

// of returns the objects of some kinds.
func (c *oneCase) of(kinds ...schema.GroupKind) []*object {
	var found []*object
	for _, o := range c.objects {
		if o.is(kinds...) {
			found = append(found, o)
		}
	}
	return found
}

// first reports whether the case is the first one of its component, which reports
// what all of them have in common.
func (c *oneCase) first() bool { return c.siblings[0] == c }

// inAnyCase reports whether an object of any case of the component is such.
func (c *oneCase) inAnyCase(such func(*object) bool) bool {
	for _, sibling := range c.siblings {
		if slices.ContainsFunc(sibling.objects, such) {
			return true
		}
	}
	return false
}

// probed reports whether a probe of the manifest judges an object.
func (c *oneCase) probed(o *object) bool {
	for _, probe := range c.manifest.Spec.AvailabilityProbes {
		if len(probe.Probes) > 0 && selects(probe.Selector, o) {
			return true
		}
	}
	return false
}

// selects reports whether a probe's selector picks an object.
func selects(s corev1alpha1.ProbeSelector, o *object) bool {
	if s.Kind == nil || s.Kind.Group != o.kind.Group || s.Kind.Kind != o.kind.Kind {
		return false
	}
	if s.Selector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Selector)
	return err == nil && selector.Matches(labels.Set(o.GetLabels()))
}

// backends are the workloads of the package that a Service sends requests to.
func (c *oneCase) backends(namespace, service string) (found *object, backends []*object) {
	for _, o := range c.of(serviceKind) {
		if o.GetName() == service && c.namespaceOf(o) == namespace {
			found = o
		}
	}
	if found == nil {
		return nil, nil
	}
	selector, _, _ := unstructured.NestedStringMap(found.Object, "spec", "selector")
	if len(selector) == 0 {
		return found, nil
	}
	for _, o := range c.of(workloadKinds...) {
		pods, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
		if c.namespaceOf(o) == namespace && labels.SelectorFromSet(selector).Matches(labels.Set(pods)) {
			backends = append(backends, o)
		}
	}
	return found, backends
}

var (
	serviceKind   = schema.GroupKind{Kind: "Service"}
	namespaceKind = schema.GroupKind{Kind: "Namespace"}
	secretKind    = schema.GroupKind{Kind: "Secret"}
	claimKind     = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	podKind       = schema.GroupKind{Kind: "Pod"}
	crdKind       = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	apiKind       = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
	jobKind       = schema.GroupKind{Group: "batch", Kind: "Job"}
	cronJobKind   = schema.GroupKind{Group: "batch", Kind: "CronJob"}

	deploymentKind  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	statefulSetKind = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	daemonSetKind   = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	replicaSetKind  = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	workloadKinds   = []schema.GroupKind{deploymentKind, statefulSetKind, daemonSetKind, replicaSetKind}

	roleKind               = schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}
	clusterRoleKind        = schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}
	roleBindingKind        = schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}
	clusterRoleBindingKind = schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}

	validatingKind = schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}
	mutatingKind   = schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}
)

// mappings returns the mappings of a list at a path.
func mappings(obj map[string]any, path ...string) []map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(obj, path...)
	elements, _ := list.([]any)
	var found []map[string]any
	for _, element := range elements {
		if fields, ok := element.(map[string]any); ok {
			found = append(found, fields)
		}
	}
	return found
}

// at returns the value at a path; nil where there is none.
func at(obj map[string]any, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(obj, path...)
	return value
}

// text returns the text at a path.
func text(obj map[string]any, path ...string) string {
	value, _ := at(obj, path...).(string)
	return value
}

// texts returns the texts of a list.
func texts(value any) []string {
	list, _ := value.([]any)
	out := make([]string, 0, len(list))
	for _, element := range list {
		out = append(out, fmt.Sprint(element))
	}
	return out
}

// podSpec returns the specification of the pods that an object makes, and its
// path; nil where it makes none.
func podSpec(o *object) (spec map[string]any, path string) {
	switch {
	case o.is(podKind):
		path = "spec"
	case o.is(append(workloadKinds, jobKind)...):
		path = "spec.template.spec"
	case o.is(cronJobKind):
		path = "spec.jobTemplate.spec.template.spec"
	default:
		return nil, ""
	}
	spec, _ = at(o.Object, strings.Split(path, ".")...).(map[string]any)
	return spec, path
}

// mapping returns the mapping at a path; nil where there is none.
func mapping(obj map[string]any, path ...string) map[string]any {
	fields, _ := at(obj, path...).(map[string]any)
	return fields
}
