package kickstart

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/fields"
	"lockstep.run/lockstep/internal/loader"
)

// Options of a package.
type Options struct {
	Name string

	// Namespace of objects without one. If empty, the package is for any namespace if possible.
	// Otherwise it is the namespace of the other objects, or Name.
	Namespace string
	// Parameters are the fields that become configuration.
	Parameters []Parameter
	// Version of the package. If empty, it is the chart's, if there is one.
	Version string

	// Scope of the package. If empty, the objects decide.
	Scope corev1alpha1.Scope
	// KeepCRDs orphans definitions when the package is deleted.
	KeepCRDs bool
	// NoNamespaces omits the Namespaces that the package would add for its objects.
	NoNamespaces bool

	// RecreateJobs replaces Jobs when an immutable field changes.
	RecreateJobs bool
}

// Result is a new package.
type Result struct {
	Files loader.Files

	// Objects is the number of objects.
	Objects int
	// Unprobed are kinds without a known probe.
	Unprobed []string
	// Notes explain the decisions, one sentence each.
	Notes []string

	// ProvisionalLock has zero digests, to check the package before its images are resolved. It is
	// nil if there are no images.
	ProvisionalLock []byte
	// Cluster is set for a ClusterPackage.
	Cluster bool
}

// Make makes a package. Its error is of type violation.Violations.
func Make(inputs []Input, opts Options) (*Result, error) {
	all, notes, err := read(inputs)
	if err != nil {
		return nil, err
	}

	m := maker{opts: opts, notes: notes, charts: map[string]bool{}, defined: definitions(all)}
	all = m.helm(all)

	if all, err = m.scope(all); err != nil {
		return nil, err
	}
	m.autoscaled(all)
	m.annotations(all)
	phases := m.phases(all)
	m.ignoredFields(all)
	m.secrets(all)

	// Parameters come last, because the steps above compare names and namespaces, which become
	// expressions here.
	if m.wants(Namespaces) {
		m.namespaces(all)
	}
	for _, o := range all {
		m.workload(o)
	}

	files := loader.Files{}
	if err := m.write(files, all); err != nil {
		return nil, err
	}
	probes, unknown := m.probesOf(all)
	if files[manifestFile], err = m.manifest(phases, probes); err != nil {
		return nil, err
	}

	lock, err := m.lock()
	if err != nil {
		return nil, err
	}

	return &Result{
		ProvisionalLock: lock, Files: files, Objects: len(all), Unprobed: unknown, Notes: m.notes,
		Cluster: m.packageScope == corev1alpha1.ScopeCluster,
	}, nil
}

// maker is one run of Make.
type maker struct {
	opts    Options
	defined map[schema.GroupKind]*definition

	// charts of Helm that the objects name.
	charts       map[string]bool
	packageScope corev1alpha1.Scope
	config       configuration
	images       []any
	notes        []string
}

// note adds a note once.
func (m *maker) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(m.notes, text) {
		m.notes = append(m.notes, text)
	}
}

// autoscaled removes replicas that an autoscaler sets, because they would be drift.
func (m *maker) autoscaled(all []*object) {
	for _, scaler := range all {
		if scaler.gvk.Kind != "HorizontalPodAutoscaler" {
			continue
		}

		target := fields.Map(scaler.value, "spec", "scaleTargetRef")
		for _, o := range all {
			spec := fields.Map(o.value, "spec")
			if o.gvk.Kind != target["kind"] || o.name() != target["name"] || o.namespace() != scaler.namespace() || spec["replicas"] == nil {
				continue
			}

			delete(spec, "replicas")
			m.note("%s is scaled by %s, so its replicas were left out", o, scaler)
		}
	}
}

// annotations sets the annotations of the options.
func (m *maker) annotations(all []*object) {
	lost := 0
	for _, o := range all {
		switch {
		case o.is("batch", "Job") && m.opts.RecreateJobs:
			o.annotate(corev1alpha1.OnImmutableAnnotation, corev1alpha1.OnImmutableRecreate)
		// Only definitions take resources of others with them.
		case !o.is("apiextensions.k8s.io", "CustomResourceDefinition"):
		case m.opts.KeepCRDs:
			o.annotate(corev1alpha1.DeletionPolicyAnnotation, corev1alpha1.DeletionPolicyKeep)
		default:
			if policy, _ := o.annotation(corev1alpha1.DeletionPolicyAnnotation); policy != corev1alpha1.DeletionPolicyKeep {
				lost++
			}
		}
	}

	if lost > 0 {
		m.note("deleting the package deletes its definitions (%d) along with all of their resources; --keep crds keeps them in the cluster", lost)
	}
}
