package operate

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// folded leaves out the middle of long output.
func folded(output string) string {
	const ends = 8
	lines := strings.Split(strings.TrimSpace(output), "\n")
	if more := len(lines) - 2*ends; more > 1 {
		lines = slices.Concat(lines[:ends], []string{fmt.Sprintf("… %d lines", more)}, lines[len(lines)-ends:])
	}
	return strings.Join(lines, "\n")
}

// ways installs, upgrades, rolls back and uninstalls the engine with YAML and with Helm, and moves
// it from each to the other. No object of the engine is recreated.
func ways(t *testing.T, folder string, files map[string][]byte) {
	t.Helper()
	w := &way{
		control: newControl(t), file: filepath.Join(folder, "lockstep-"+released+".yaml"), laterFile: filepath.Join(t.TempDir(), "lockstep-"+next+".yaml"),
		chart: filepath.Join(folder, "lockstep-"+strings.TrimPrefix(released, "v")+".tgz"),
	}
	if err := os.WriteFile(w.laterFile, ofVersion(files["lockstep-"+released+".yaml"], next), 0o600); err != nil {
		t.Fatal(err)
	}
	w.image = imageIn(t, w.file)

	t.Log("=== by YAML: install, upgrade, back")
	w.apply(w.file)
	w.before = w.identities()
	w.apply(w.laterFile)
	w.expect("upgraded", strings.Replace(w.image, released, next, 1), managerDeployment, imagePath)
	w.apply(w.file)
	w.same("by YAML")

	t.Log("=== from YAML to Helm")
	w.take()
	t.Log("=== from Helm to YAML")
	w.apply(w.file)
	w.kubectlTyped("delete", "secret", "--namespace", namespace, "-l", "owner=helm,name=lockstep")
	if _, err := w.helm("uninstall", "lockstep"); err == nil || !strings.Contains(err.Error(), "release: not found") {
		t.Errorf("Helm uninstalls: %v", err)
	}
	w.same("from Helm to YAML")

	t.Log("=== uninstall by Helm, and by YAML")
	w.take()
	w.mustHelm("uninstall", "lockstep", "--wait", "--timeout", "10m")
	w.expect("uninstalled by Helm", "", managerDeployment, ".metadata.name")
	w.expect("uninstalled by Helm", "packages.package-operator.run", "crd/packages.package-operator.run", ".metadata.name")
	w.apply(w.file)
	w.kubectlTyped("delete", "-f", w.file, "--ignore-not-found", "--timeout=10m")
	w.expect("uninstalled by YAML", "", "crd/packages.package-operator.run", ".metadata.name")
}

const (
	// next is a version after the released one.
	next = "v0.0.1-test.2"

	managerDeployment = "deployment/lockstep-manager"
	imagePath         = ".spec.template.spec.containers[0].image"
)

// way is a cluster, with the files that the engine is installed from.
type way struct {
	*control
	file, laterFile, chart string
	image                  string // of the manager
	before                 string // identities
}

// kubectlTyped types a command of kubectl.
func (w *way) kubectlTyped(args ...string) {
	w.t.Helper()
	out, err := exec.CommandContext(w.t.Context(), filepath.Join(filepath.Dir(w.sandbox), "kubectl"), args...).CombinedOutput()
	w.t.Logf("$ kubectl %s\n%s", strings.Join(args, " "), folded(string(out)))
	if err != nil {
		w.t.Fatal(err)
	}
}

// apply installs by YAML.
func (w *way) apply(file string) {
	w.t.Helper()
	w.kubectlTyped("apply", "--server-side", "--force-conflicts", "-f", file)
	w.kubectlTyped("rollout", "status", managerDeployment, "--namespace", namespace, "--timeout=10m")
}

// take installs with Helm over the existing objects.
func (w *way) take() {
	w.t.Helper()
	w.mustHelm("upgrade", "--install", "lockstep", w.chart, "--take-ownership", "--force-conflicts", "--wait", "--timeout", "10m")
	w.same("by Helm")
}

// same compares the objects of the engine with the previous ones.
func (w *way) same(step string) {
	w.t.Helper()
	if after := w.identities(); after != w.before {
		w.t.Errorf("%s: other objects than before:\n%s\nbefore:\n%s", step, after, w.before)
	}
	w.expect(step, w.image, managerDeployment, imagePath)
}

// identities are the objects of the engine with their UIDs, and when their deletion started.
func (w *way) identities() string {
	w.t.Helper()
	return w.kubectl("", "get", "-f", w.file, "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.metadata.deletionTimestamp}{"\n"}{end}`)
}

// imageIn is the image of the manager in a file.
func imageIn(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(content), " image: ")
	line, _, _ := strings.Cut(after, "\n")
	return line
}

// ofVersion replaces the version of the release in a file.
func ofVersion(content []byte, version string) []byte {
	content = bytes.ReplaceAll(content, []byte(released), []byte(version))
	return bytes.ReplaceAll(content, []byte(strings.TrimPrefix(released, "v")), []byte(strings.TrimPrefix(version, "v")))
}
