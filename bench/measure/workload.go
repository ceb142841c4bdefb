package measure

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/limits"
)

// Kinds of objects that a workload may consist of.
const (
	// ConfigMaps of about 300 bytes, without probes.
	ConfigMaps = "ConfigMap"
	// Deployments of one simulated pod, gated by the condition Available.
	Deployments = "Deployment"
	// Unready is ConfigMaps with a probe that stays false.
	Unready = "unready ConfigMap"
	// Gates are custom resources, one in each phase beside ConfigMaps, that
	// another client makes ready.
	Gates = "Gate"
	// Offers are versions of packages that one repository offers; nothing is installed.
	Offers = "offered version"
)

// Workload is the packages to install, of a number of objects each.
type Workload struct {
	// Objects of one package, in Phases of equal size.
	Objects  int `json:"objects"`
	Phases   int `json:"phases"`
	Packages int `json:"packages"`
	// Bytes of further data that each ConfigMap has.
	Bytes int `json:"bytes,omitempty"`
	// Kind of the objects; empty means ConfigMaps.
	Kind string `json:"kind,omitempty"`
}

// Total is the number of objects of all packages.
func (w Workload) Total() int { return w.Objects * w.Packages }

// slices is how many slices the objects take, at most: each phase has its own.
func (w Workload) slices() int {
	objectBytes := 700 + w.Bytes // of an object with its labels, as JSON, at most
	if w.Objects*objectBytes < limits.SliceThreshold {
		return 0
	}
	perPhase := (w.Objects/w.Phases*objectBytes + limits.SliceBytes - 1) / limits.SliceBytes
	return w.Packages * w.Phases * perPhase
}

// String describes the workload in a few words.
func (w Workload) String() string {
	kind := w.kind().plural
	if w.Kind == Gates {
		kind = "objects"
	}
	if w.Kind == Offers {
		return fmt.Sprintf("%d packages of %d versions in one repository", w.Packages, w.Objects)
	}
	phases := "1 phase"
	if w.Phases != 1 {
		phases = fmt.Sprintf("%d phases", w.Phases)
	}
	if w.Bytes > 0 {
		kind += fmt.Sprintf(" with %d bytes more each", w.Bytes)
	}
	packages := "1 package"
	if w.Packages != 1 {
		packages = fmt.Sprintf("%d packages", w.Packages)
	}
	return fmt.Sprintf("%s of %d %s in %s", packages, w.Objects, kind, phases)
}

// kind is how objects of one kind are made and read.
type kind struct {
	gvk schema.GroupVersionKind
	// resource as the audit log has it, and plural in words.
	resource, plural string
	// value is the path of the text that differs between revisions.
	value []string
	// yaml of an object in a phase, with the text.
	yaml func(name, phase, value string) string
	// probes is further YAML of the manifest.
	probes string
}

var configMap = kind{
	gvk:      schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
	resource: "configmaps", plural: "ConfigMaps", value: []string{"data", "value"}, yaml: harness.ConfigMap,
}

func (w Workload) kind() kind {
	switch w.Kind {
	case Deployments:
		return kind{
			gvk:      schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
			resource: "deployments.apps", plural: "Deployments",
			value: []string{"spec", "template", "metadata", "annotations", "value"},
			yaml:  func(name, phase, value string) string { return fmt.Sprintf(deployment, name, phase, name, name, value) },
			probes: `  availabilityProbes:
  - selector: {kind: {group: apps, kind: Deployment}}
    probes:
    - condition: {type: Available, status: "True"}
`,
		}
	case Unready:
		unready := configMap
		unready.plural = "ConfigMaps that fail to become ready"
		unready.probes = `  availabilityProbes:
  - selector: {kind: {group: "", kind: ConfigMap}}
    probes:
    - cel: {rule: 'has(self.data.ready)', message: "not ready"}
`
		return unready
	case Gates:
		gated := configMap
		gated.probes = gateProbes
		return gated
	default:
		return configMap
	}
}

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: %s
  annotations:
    package-operator.run/phase: %s
spec:
  replicas: 1
  selector: {matchLabels: {app: %s}}
  template:
    metadata:
      labels: {app: %s}
      annotations: {value: %q}
    spec:
      containers:
      - name: main
        image: example.invalid/none:v1
`

// release is what of a package differs from one revision to the next.
type release struct {
	// version is the manifest's spec.version.
	version string
	// value of every object, and of the one in the middle.
	value, middle string
}

var firstRelease = release{version: "1.0.0", value: "v1", middle: "v1"}

// files returns the package of number i.
func (w Workload) files(i int, r release) harness.Files {
	k, files := w.kind(), harness.Files{}
	var names []string
	perPhase := w.Objects / w.Phases
	for p := range w.Phases {
		phase := fmt.Sprintf("phase-%02d", p)
		names = append(names, phase)
		docs := make([]string, perPhase)
		for n := range perPhase {
			name, value := objectName(i, p, n), r.value
			if name == w.middle(i) {
				value = r.middle
			}
			docs[n] = k.yaml(name, phase, value) + w.more(name)
		}
		if w.Kind == Gates {
			docs[0] = gate(objectName(i, p, 0), phase)
		}
		files[phase+".yaml"] = strings.Join(docs, "---\n")
	}
	files["manifest.yaml"] = harness.Manifest(packageName(i), names, k.probes+"  version: "+r.version+"\n")
	return files
}

// more is the last line of the YAML of a ConfigMap that has further data, which hardly compresses.
func (w Workload) more(name string) string {
	if w.Bytes == 0 {
		return ""
	}
	return fmt.Sprintf("  more: %q\n", text(name, w.Bytes))
}

// text is so many characters that depend on a seed.
func text(seed string, length int) string {
	var b strings.Builder
	for sum := sha256.Sum256([]byte(seed)); b.Len() < length; sum = sha256.Sum256(sum[:]) {
		b.WriteString(base64.RawStdEncoding.EncodeToString(sum[:]))
	}
	return b.String()[:length]
}

func packageName(i int) string { return fmt.Sprintf("shop-%03d", i) }

func objectName(i, phase, n int) string { return fmt.Sprintf("%s-%02d-%03d", packageName(i), phase, n) }

// middle is the name of the object in the middle of a package.
func (w Workload) middle(i int) string { return objectName(i, w.Phases/2, w.Objects/w.Phases/2) }
