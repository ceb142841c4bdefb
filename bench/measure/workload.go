package measure

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/limits"
)

// These are special kinds of workloads. Others consist of ConfigMaps of about 300 bytes, without
// probes.
const (
	// Unready is ConfigMaps with a probe that stays false.
	Unready = "unready ConfigMap"
	// Gates are custom resources that another client makes ready. Each phase has one in addition to
	// its ConfigMaps.
	Gates = "gated object"
	// Offers are versions of packages that one repository offers. They are not installed.
	Offers = "offered version"
)

// Workload describes the packages to install.
type Workload struct {
	// Objects of one package are spread evenly over Phases.
	Objects, Phases, Packages int
	// Bytes is the size of additional data in each ConfigMap.
	Bytes int
	// Kind is empty or a special kind.
	Kind string
}

// Total is the number of objects of all packages.
func (w Workload) Total() int { return w.Objects * w.Packages }

// slices is the maximum number of slices for the objects. Each phase has its own.
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
	if w.Kind == Offers {
		return fmt.Sprintf("%d packages of %d versions in one repository", w.Packages, w.Objects)
	}
	objects := "ConfigMaps"
	switch {
	case w.Kind != "":
		objects = w.Kind + "s"
	case w.Bytes > 0:
		objects += fmt.Sprintf(" with %d bytes more each", w.Bytes)
	}
	return fmt.Sprintf("%s of %d %s in %s", counted(w.Packages, "package"), w.Objects, objects, counted(w.Phases, "phase"))
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// The names of the workload's objects in the API and the audit log.
const (
	objectKind     = "ConfigMap"
	objectResource = "configmaps"
)

// probes is the YAML of the manifest's probes for the kind.
func (w Workload) probes() string {
	switch w.Kind {
	case Unready:
		return `  availabilityProbes:
  - selector: {kind: {group: "", kind: ConfigMap}}
    probes:
    - cel: {rule: 'has(self.data.ready)', message: "not ready"}
`
	case Gates:
		return gateProbes
	default:
		return ""
	}
}

// release is the part of a package that differs between revisions.
type release struct {
	// version is the manifest's spec.version.
	version string
	// value is the value of every object, middle the value of the one in the middle.
	value, middle string
}

var firstRelease = release{version: "1.0.0", value: "v1", middle: "v1"}

// files returns the package with number i.
func (w Workload) files(i int, r release) harness.Files {
	files := harness.Files{}
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
			docs[n] = harness.ConfigMap(name, phase, value) + w.more(name)
		}
		if w.Kind == Gates {
			docs[0] = gate(objectName(i, p, 0), phase)
		}
		files[phase+".yaml"] = strings.Join(docs, "---\n")
	}

	files["manifest.yaml"] = harness.Manifest(packageName(i), names, w.probes()+"  version: "+r.version+"\n")
	return files
}

// more is the last line of a ConfigMap's YAML, with the additional data, which hardly compresses.
func (w Workload) more(name string) string {
	if w.Bytes == 0 {
		return ""
	}
	return fmt.Sprintf("  more: %q\n", text(name, w.Bytes))
}

// text returns this many characters, which depend on a seed.
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
