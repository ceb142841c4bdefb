package kickstart

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/loader"
)

// Options say what the package is to be.
type Options struct {
	// Name of the package.
	Name string
	// Namespace of objects that name none. Empty: the package is for a namespace
	// where it can be, else that of the others or Name.
	Namespace string
	// Parameters say which fields become configuration.
	Parameters []Parameter
}

// Result is a package to go on working on.
type Result struct {
	// Files of the package.
	Files loader.Files
	// Objects counts them.
	Objects int
	// Unprobed are the kinds that nobody knows how to wait for.
	Unprobed []string
	// Notes say what was decided, one sentence each.
	Notes []string
	// Images tells that the manifest lists images, which need a lock.
	Images bool
	// ProvisionalLock is a lock with digests of nothing, to check the package with
	// before its images are looked up; nil where there are none.
	ProvisionalLock []byte
	// Scope of the test case: true for a ClusterPackage.
	Cluster bool
}

// Make makes a package. Its error is of type violation.Violations.
func Make(inputs []Input, opts Options) (*Result, error) {
	all, err := read(inputs)
	if err != nil {
		return nil, err
	}
	m := maker{opts: opts, charts: map[string]bool{}, defined: definitions(all)}
	all = m.helm(all)
	all = m.scope(all)
	m.autoscaled(all)
	m.secrets(all)
	phases := m.phases(all)
	m.parametrize(all)
	files := loader.Files{}
	if err := m.write(files, all); err != nil {
		return nil, err
	}
	probes, unknown := m.probesOf(all)
	if files["manifest.yaml"], err = m.manifest(phases, probes); err != nil {
		return nil, err
	}
	lock, err := m.provisionalLock()
	if err != nil {
		return nil, err
	}
	return &Result{
		ProvisionalLock: lock, Files: files, Objects: len(all), Unprobed: unknown, Notes: m.notes, Images: len(m.images) > 0,
		Cluster: m.scopes[0] == "Cluster",
	}, nil
}

// maker is one run of Make.
type maker struct {
	opts    Options
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

// secrets names what everybody can read who can pull the image.
func (m *maker) secrets(all []*object) {
	n := 0
	for _, o := range all {
		if o.gvk.Kind == "Secret" && o.gvk.Group == "" && (dig(o.value, "data") != nil || dig(o.value, "stringData") != nil) {
			n++
		}
	}
	if n > 0 {
		m.note("values in Secrets (%d) can be read by everybody who can pull the image: let them come from spec.configFrom, or leave the Secrets out", n)
	}
}
