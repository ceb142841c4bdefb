package kickstart

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader"
)

// Options say what the package is to be. They are recorded in it.
type Options struct {
	// Name of the package.
	Name string `json:"name"`
	// Namespace of objects that name none. Empty: the package is for a namespace
	// where it can be, else that of the others or Name.
	Namespace string `json:"namespace,omitempty"`
	// Parameters say which fields become configuration.
	Parameters []Parameter `json:"parameters,omitempty"`
	// Version of the package; empty: that of the chart, where there is one.
	Version string `json:"version,omitempty"`
	// Scope that it is for; empty: the one that the objects allow.
	Scope corev1alpha1.Scope `json:"scope,omitempty"`
	// KeepCRDs makes definitions outlive the package.
	KeepCRDs bool `json:"keepCRDs,omitempty"`
	// RecreateJobs lets Jobs run again when a field changes that cannot be changed.
	RecreateJobs bool `json:"recreateJobs,omitempty"`
}

// Result is a package to go on working on.
type Result struct {
	// Files of the package.
	Files loader.Files
	// IDs of the objects by file. They are the same in every release.
	IDs map[string]string
	// Objects counts them.
	Objects int
	// Unprobed are kinds without a known probe.
	Unprobed []string
	// Notes say what was decided, one sentence each.
	Notes []string
	// ProvisionalLock is a lock with digests of nothing, to check the package with
	// before its images are looked up; nil where there are none.
	ProvisionalLock []byte
	// Scope of the test case: true for a ClusterPackage.
	Cluster bool
}

// Make makes a package. Its error is of type violation.Violations.
func Make(inputs []Input, opts Options) (*Result, error) {
	all, notes, err := read(inputs)
	if err != nil {
		return nil, err
	}
	m := maker{opts: opts, ids: map[string]string{}, notes: notes, charts: map[string]bool{}, defined: definitions(all)}
	all = m.helm(all)
	if all, err = m.scope(all); err != nil {
		return nil, err
	}
	for _, o := range all {
		o.id = identity(o.kind(), o.namespace(), o.name())
	}
	m.autoscaled(all)
	m.annotations(all)
	phases := m.phases(all)
	m.secrets(all)
	m.parametrize(all)
	files := loader.Files{}
	if err := m.write(files, all); err != nil {
		return nil, err
	}
	probes, unknown := m.probesOf(all)
	if files[manifestFile], err = m.manifest(phases, probes); err != nil {
		return nil, err
	}
	lock, err := ProvisionalLock(files[manifestFile])
	if err != nil {
		return nil, err
	}
	return &Result{
		ProvisionalLock: lock, Files: files, IDs: m.ids, Objects: len(all), Unprobed: unknown, Notes: m.notes,
		Cluster: m.scopes[0] == "Cluster",
	}, nil
}

// maker is one run of Make.
type maker struct {
	opts    Options
	ids     map[string]string
	defined map[schema.GroupKind]*definition
	// charts of Helm that the objects name.
	charts map[string]bool
	scopes []string
	// namespace that was given to objects without one.
	namespace string
	config    *setting
	images    []image
	notes     []string
}

func (m *maker) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(m.notes, text) {
		m.notes = append(m.notes, text)
	}
}

// autoscaled takes the replicas out of what an autoscaler sets them for: they
// would be drift.
func (m *maker) autoscaled(all []*object) {
	for _, scaler := range all {
		if scaler.gvk.Kind != "HorizontalPodAutoscaler" {
			continue
		}
		kind, name := text(scaler.value, "spec", "scaleTargetRef", "kind"), text(scaler.value, "spec", "scaleTargetRef", "name")
		for _, o := range all {
			spec, _ := o.value["spec"].(map[string]any)
			if o.gvk.Kind != kind || o.name() != name || o.namespace() != scaler.namespace() || spec["replicas"] == nil {
				continue
			}
			delete(spec, "replicas")
			m.note("%s is scaled by %s, so its replicas were left out", o, scaler)
		}
	}
}

// annotations sets the annotations that the options want for kinds.
func (m *maker) annotations(all []*object) {
	lost := 0
	for _, o := range all {
		switch {
		case o.is("batch", "Job") && m.opts.RecreateJobs:
			o.annotate(corev1alpha1.OnImmutableAnnotation, corev1alpha1.OnImmutableRecreate)
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
		m.note("deleting the package deletes its definitions (%d) with all of their resources; --keep crds leaves them in the cluster", lost)
	}
}
