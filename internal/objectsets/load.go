package objectsets

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/drift"
	"lockstep.run/lockstep/internal/probes"
)

// Scope answers whether a kind is namespaced; known is false if the kind is not served.
type Scope func(gk schema.GroupKind, version string) (namespaced, known bool)

// Stored are the objects of a revision that are outside of its set, by the names of the slices and
// Secrets in its phases.
type Stored struct {
	// Slices are the contents of ObjectSlices, and Secrets the contents of Secrets, by name.
	Slices, Secrets map[string][]corev1alpha1.ObjectSetObject
}

// Of returns all objects of a phase.
func (s Stored) Of(phase *corev1alpha1.ObjectSetTemplatePhase) []corev1alpha1.ObjectSetObject {
	all := slices.Clone(phase.Objects)
	for _, name := range phase.Slices {
		all = append(all, s.Slices[name]...)
	}
	for _, name := range phase.SecretSlices {
		all = append(all, s.Secrets[name]...)
	}
	return all
}

// Inline puts the objects of slices and Secrets into their phases.
func (s Stored) Inline(all []corev1alpha1.ObjectSetTemplatePhase) {
	for i := range all {
		phase := &all[i]
		phase.Objects = s.Of(phase)
		phase.Slices, phase.SecretSlices = nil, nil
	}
}

// Load turns the spec of a set, with the objects that are stored elsewhere, into a revision.
// Revision.Blocked() has all permanent faults that can be found without a write. The engine never
// writes an object of such a revision.
func Load(set corev1alpha1.GenericObjectSet, stored Stored, owner objects.Owner, scope Scope) *engine.Revision {
	spec := set.ObjectSetSpec()
	labels := apinames.Default.Inherited(set.GetLabels())
	r := engine.NewRevision()
	r.Identify(set.GetName(), set.GetUID(), set.GetResourceVersion())
	r.Kind, r.Number, r.Retains = setKind(set), spec.Revision, retainedBy(set)
	r.Metadata = objects.ManagedMetadata{Labels: labels, Revision: spec.Revision, Owner: owner}
	r.Labels = drift.Digest(labels)

	l := loader{revision: r, set: set, namespace: set.GetNamespace(), scope: scope, at: map[objects.Key]string{}, remote: map[delegated]string{}}
	l.target(spec, owner)
	l.record(spec.Phases)
	for i := range spec.Phases {
		l.phase(&spec.Phases[i], stored)
	}

	judges, err := probes.Compile(spec.AvailabilityProbes)
	if err != nil {
		l.problem("%v", err)
		judges = &probes.Set{}
	}

	r.SetProbes(judges)
	r.Block(strings.Join(l.problems, "; "))
	return r
}

// loader loads one set, and collects its permanent faults.
type loader struct {
	revision *engine.Revision
	set      corev1alpha1.GenericObjectSet
	// namespace is the namespace of all objects. defaultNamespace is the namespace of objects
	// of cluster sets that do not name one.
	namespace, defaultNamespace string

	scope    Scope
	at       map[objects.Key]string // phase by object
	remote   map[delegated]string   // the same of objects that agents write elsewhere
	problems []string
}

// problem adds a fault that blocks the revision.
func (l *loader) problem(format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// target applies the target of the set.
func (l *loader) target(spec *corev1alpha1.ObjectSetSpec, owner objects.Owner) {
	ofPhase := strings.HasSuffix(owner.Kind, "ObjectSetPhase")
	if ofPhase && spec.Revision < 1 {
		l.problem("spec.revision is %d: revisions are numbered from 1", spec.Revision)
	}
	ref := spec.TargetRef
	if ref == nil {
		return
	}
	if ofPhase {
		l.namespace = "" // an agent's phase can have objects in every namespace of the target
		return
	}
	if l.namespace == "" {
		l.defaultNamespace = ref.Namespace
	}
	l.namespace = ref.NamespaceOf(l.namespace)
	if spec.ServiceAccountName != "" {
		l.problem("spec.serviceAccountName cannot be set together with targetRef: objects there are written by the user of the kubeconfig, remove it")
	}
}

// record checks that status.phases stays within limits.PhaseBytes.
func (l *loader) record(all []corev1alpha1.ObjectSetTemplatePhase) {
	const entry = `{"name":"","state":"TearingDown","ready":10000,"total":10000},`
	size := 0
	for i := range all {
		name, _ := json.Marshal(all[i].Name)
		size += len(entry) + len(name)
	}
	if size > limits.PhaseBytes {
		l.revision.TooManyPhases = true
		l.problem("%d phases take %d bytes of status; the limit is %d: have fewer, or shorter names", len(all), size, limits.PhaseBytes)
	}
}

// phase loads the objects of a phase; a phase with a class becomes one object.
func (l *loader) phase(spec *corev1alpha1.ObjectSetTemplatePhase, stored Stored) {
	l.revision.Sensitive = l.revision.Sensitive || len(spec.SecretSlices) > 0
	all := stored.Of(spec)
	if spec.Class != "" {
		l.revision.Phases = append(l.revision.Phases, l.delegate(spec, all))
		return
	}

	phase := phases.Phase{Name: spec.Name}
	for i := range all {
		if d := l.object(spec.Name, &all[i]); d != nil {
			phase.Objects = append(phase.Objects, d)
		}
	}

	l.revision.Phases = append(l.revision.Phases, phase)
}

// object checks one object by the local rules and returns it. It returns nil for an invalid key,
// because such an object cannot exist.
func (l *loader) object(phase string, o *corev1alpha1.ObjectSetObject) *objects.Desired {
	content := map[string]any{}
	if err := json.Unmarshal(o.Object.Raw, &content); err != nil {
		l.problem("Phase %q: an object is not valid JSON: %v", phase, err)
		return nil
	}

	u := &unstructured.Unstructured{Object: content}
	gvk := u.GroupVersionKind()
	d := &objects.Desired{
		Key: objects.Key{
			Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName(),
		},
		Version:   gvk.Version,
		Raw:       o.Object.Raw,
		Content:   drift.ContentDigest(apinames.Default, content),
		Mappings:  mappingsOf(o.ConditionMappings),
		Collision: cmp.Or(objects.CollisionProtection(o.CollisionProtection), objects.CollisionProtectionPrevent),
		Keep:      apinames.Default.Keeps(u.GetAnnotations()),
		Recreate:  apinames.Default.Recreates(u.GetAnnotations()),
	}

	where := fmt.Sprintf("Phase %q, %s", phase, d.Key)
	ignored, err := apinames.Default.ParseIgnoredFields(u.GetAnnotations()[corev1alpha1.IgnoredFieldsAnnotation])
	if err = cmp.Or(err, ignored.Check(content)); err != nil {
		l.problem("%.300s: metadata.annotations[%s]: %v", where, corev1alpha1.IgnoredFieldsAnnotation, err)
	}

	// Controllers of Kubernetes keep their fields even if a package states them, such as the rules of an
	// aggregated ClusterRole.
	d.Ignored = append(ignored, objects.LeftToControllers(d.Key.GroupKind(), content)...)

	if gvk.Kind == "" || gvk.Version == "" || d.Key.Name == "" {
		l.problem("%s: apiVersion, kind and metadata.name are required", where)
		return nil
	}
	if why := NameProblem(gvk, d.Key); why != "" {
		l.problem("Phase %q, %.100s: %s", phase, d.Key, why)
		return nil
	}
	if len(u.GetOwnerReferences()) > 0 {
		l.problem("%s: metadata.ownerReferences must be empty: the engine sets them", where)
	}
	if MarkedGenerated(u) {
		l.problem("%s: metadata.labels[%s] must not be set: the engine marks the packages by it that it installs for others", where, corev1alpha1.GeneratedLabel)
	}

	if !l.place(where, d, gvk) {
		return nil
	}
	if first, twice := l.at[d.Key]; twice {
		l.problem("%s: Duplicate Object, it is in phase %q already: remove one of them", where, first)
		return nil
	}

	l.at[d.Key] = phase
	return d
}

// place applies the scope rules: before the namespace is defaulted, so that a
// user of one namespace never gets a cluster-scoped object. It reports whether the scope
// is valid.
func (l *loader) place(where string, d *objects.Desired, gvk schema.GroupVersionKind) bool {
	namespaced, known := l.scope(gvk.GroupKind(), gvk.Version)
	if !known {
		l.revision.Unscoped = append(l.revision.Unscoped, d.Key)
	}

	if l.namespace == "" {
		switch {
		case known && namespaced && d.Key.Namespace == "" && l.defaultNamespace != "":
			d.Key.Namespace = l.defaultNamespace
		case known && namespaced && d.Key.Namespace == "":
			l.problem("%s: metadata.namespace is required for a namespaced kind in a cluster-scoped package", where)
			return false
		case known && !namespaced:
			d.Key.Namespace = ""
		}
		return true
	}
	if known && !namespaced {
		l.problem("%s: must be namespace scoped: a namespaced package cannot bring cluster-scoped objects, install it as a ClusterPackage", where)
		return false
	}
	if d.Key.Namespace != "" && d.Key.Namespace != l.namespace {
		l.problem("%s: must stay within the same namespace %q: remove metadata.namespace, or install a ClusterPackage", where, l.namespace)
		return false
	}

	d.Key.Namespace = l.namespace
	return true
}
