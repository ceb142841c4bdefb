package lint

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author/gates"
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

	// home is the namespace that the object is created in.
	home string
	// collision is the value of the object's annotation, which is removed from the object, or the
	// default.
	collision corev1alpha1.CollisionProtection
}

// Content implements gates.Object.
func (o *object) Content() map[string]any { return o.Object }

// Home implements gates.Object.
func (o *object) Home() string { return o.home }

// is reports whether the object is of one of some kinds.
func (o *object) is(kinds ...schema.GroupKind) bool { return slices.Contains(kinds, o.kind) }

// annotated reports whether an annotation has a value.
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
	// former is the same case of an older package; nil if there is none.
	former map[objects.Key]*object

	// gates is the result of needs.
	gates []gates.Need[*object]
}

// newCase decodes the objects of a rendered case.
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
			// The loader has moved the annotation into the phase.
			o := &object{
				Unstructured: u, kind: u.GroupVersionKind().GroupKind(), phase: i, phaseName: of.Package.Phases[i].Name, source: of.Package.Sources[i][j],
				collision: of.Package.Phases[i].Objects[j].CollisionProtection,
			}
			o.home = c.namespaceOf(o)
			c.objects = append(c.objects, o)
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

// namespaceOf returns the namespace that an object is created in.
func (c *oneCase) namespaceOf(o *object) string {
	if o.GetNamespace() != "" {
		return o.GetNamespace()
	}
	return c.namespace
}

// of returns the objects of some kinds.
func (c *oneCase) of(kinds ...schema.GroupKind) []*object {
	return slices.DeleteFunc(slices.Clone(c.objects), func(o *object) bool { return !o.is(kinds...) })
}

// inAnyCase reports whether an object of any case of the component matches.
func (c *oneCase) inAnyCase(matches func(*object) bool) bool {
	return slices.ContainsFunc(c.siblings, func(s *oneCase) bool { return slices.ContainsFunc(s.objects, matches) })
}

// probed reports whether a probe of the manifest evaluates an object.
func (c *oneCase) probed(o *object) bool {
	return slices.ContainsFunc(c.manifest.Spec.AvailabilityProbes, func(p corev1alpha1.ObjectSetProbe) bool {
		return len(p.Probes) > 0 && selects(p.Selector, o)
	})
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

// The kinds that rules are about.
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
	kindsWithPods   = append([]schema.GroupKind{podKind, jobKind, cronJobKind}, workloadKinds...)

	validatingKind = schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}
	mutatingKind   = schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}
)
