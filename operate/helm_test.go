package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/cmd"
)

// control is a sandbox with Helm.
type control struct {
	t       *testing.T
	sandbox string // program
	data    string
}

// newControl starts a sandbox. LOCKSTEP_SANDBOX names its program.
func newControl(t *testing.T) *control {
	t.Helper()
	c := &control{t: t, sandbox: os.Getenv("LOCKSTEP_SANDBOX"), data: t.TempDir()}
	if c.sandbox == "" {
		t.Fatal("LOCKSTEP_SANDBOX names no sandbox: run ./task test:operate")
	}

	var up struct{ Kubeconfig string }
	output := c.run("", c.sandbox, "up", "--name", "operate", "--data", c.data, "--pod-ready-after", "0s", "-o", "json")
	t.Cleanup(func() {
		if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), c.sandbox, "down", "--name", "operate", "--data", c.data).CombinedOutput(); err != nil {
			t.Errorf("the sandbox does not end: %v\n%s", err, out)
		}
	})

	if err := json.Unmarshal([]byte(output), &up); err != nil {
		t.Fatalf("%v in %s", err, output)
	}

	t.Setenv("KUBECONFIG", up.Kubeconfig)
	for _, variable := range []string{"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} {
		t.Setenv(variable, t.TempDir())
	}

	return c
}

func (c *control) run(stdin, name string, args ...string) string {
	c.t.Helper()
	var stderr bytes.Buffer
	command := exec.CommandContext(c.t.Context(), name, args...)
	command.Stdin, command.Stderr = strings.NewReader(stdin), &stderr
	out, err := command.Output()
	if err != nil {
		c.t.Fatalf("%s %s: %v\n%s%s", filepath.Base(name), strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// kubectl runs kubectl, which is the sandbox's program under another name.
func (c *control) kubectl(stdin string, args ...string) string {
	c.t.Helper()
	return c.run(stdin, filepath.Join(filepath.Dir(c.sandbox), "kubectl"), args...)
}

// helm runs Helm in the namespace of the engine.
func (c *control) helm(args ...string) (string, error) {
	c.t.Helper()
	var out bytes.Buffer
	args = append(args, "--namespace", namespace)
	root, err := cmd.NewRootCmd(&out, args, func(bool) {})
	if err != nil {
		c.t.Fatal(err)
	}
	root.SetArgs(args)
	err = root.ExecuteContext(c.t.Context())
	c.t.Logf("$ helm %s\n%s%v", strings.Join(args, " "), out.String(), err)
	return out.String(), err
}

func (c *control) mustHelm(args ...string) {
	c.t.Helper()
	if _, err := c.helm(args...); err != nil {
		c.t.Fatal(err)
	}
}

// expect compares a field of an object.
func (c *control) expect(when, want, object, path string) {
	c.t.Helper()
	if got := c.kubectl("", "get", object, "--namespace", namespace, "--ignore-not-found", "-o", "jsonpath={"+path+"}"); got != want {
		c.t.Errorf("%s: %s of %s is %q, want %q", when, path, object, got, want)
	}
}

// later copies the chart as a later version: its CRDs have a new label, and specs of Packages a new
// field.
func later(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "lockstep")
	for _, link := range []string{"crds", "rbac", "admission", "flowcontrol", "manager", "tenancy", "monitoring"} {
		if err := os.CopyFS(filepath.Join(folder, "files", link), os.DirFS("../config/"+link)); err != nil {
			t.Fatal(err)
		}
	}

	err := fs.WalkDir(os.DirFS(chartFolder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(chartFolder, path))
		if err != nil {
			return err
		}
		switch path {
		case "Chart.yaml":
			content = bytes.ReplaceAll(content, []byte("0.0.0-dev"), []byte("0.0.1-dev"))
		case "templates/crds.yaml":
			const changes = `{{- $_ := set $object.metadata "labels" (dict "later" "yes") }}
{{- if eq $object.spec.names.kind "Package" }}
{{- $_ := set (index $object.spec.versions 0).schema.openAPIV3Schema.properties.spec.properties "later" (dict "type" "string") }}
{{- end }}
---
`
			content = bytes.Replace(content, []byte("---\n"), []byte(changes), 1)
		}
		if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(path)), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(folder, path), content, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}

	return folder
}

// Helm installs, upgrades, rolls back and uninstalls the engine. CRDs are upgraded and rolled back
// with the chart, and survive its removal along with the installed packages.
func TestHelm(t *testing.T) {
	const (
		deployment = "deployment/lockstep-manager"
		crd        = "crd/packages.package-operator.run"
		shop       = "packages.package-operator.run/shop"
	)
	c := newControl(t)
	c.mustHelm("install", "lockstep", chartFolder, "--create-namespace", "--wait", "--timeout", "10m")
	c.expect("installed", "2", deployment, ".status.readyReplicas")
	c.kubectl("{apiVersion: package-operator.run/v1alpha1, kind: Package, metadata: {name: shop, namespace: "+namespace+"}, spec: {image: example.test/shop}}", "apply", "-f", "-")

	c.mustHelm("upgrade", "lockstep", later(t), "--set", "manager.replicas=3", "--wait", "--timeout", "10m")
	c.expect("upgraded", "3", deployment, ".status.readyReplicas")
	c.expect("upgraded", "yes", crd, ".metadata.labels.later")

	if _, err := c.helm("upgrade", "lockstep", chartFolder, "--set", "manager.replica=1"); err == nil || !strings.Contains(err.Error(), "'replica' not allowed") {
		t.Errorf("a misspelt value: %v", err)
	}
	c.expect("after a refused upgrade", "3", deployment, ".spec.replicas")

	const field = ".spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.later.type"
	c.mustHelm("upgrade", "lockstep", chartFolder, "--set", "crds.enabled=false", "--set", "manager.replicas=1", "--wait", "--timeout", "10m")
	c.expect("the former chart without its CRDs", "1", deployment, ".spec.replicas")
	c.expect("the former chart without its CRDs", "string", crd, field)
	c.expect("the former chart without its CRDs", "shop", shop, ".metadata.name")
	c.mustHelm("upgrade", "lockstep", later(t), "--set", "manager.replicas=3", "--wait", "--timeout", "10m")
	c.expect("upgraded again", "3", deployment, ".spec.replicas")
	c.expect("upgraded again", "string", crd, field)

	c.mustHelm("rollback", "lockstep", "1", "--wait", "--timeout", "10m")
	c.expect("rolled back", "2", deployment, ".spec.replicas")
	c.expect("rolled back", "", crd, ".metadata.labels.later")
	c.expect("rolled back", "", crd, field)

	c.mustHelm("uninstall", "lockstep", "--wait", "--timeout", "10m")
	c.expect("uninstalled", "", deployment, ".metadata.name")
	c.expect("uninstalled", "packages.package-operator.run", crd, ".metadata.name")
	c.expect("uninstalled", "shop", shop, ".metadata.name")

	c.kubectl("", "apply", "--server-side", "--force-conflicts", "-k", "../config")
	if _, err := c.helm("install", "lockstep", chartFolder); err == nil || !strings.Contains(err.Error(), "cannot be imported") {
		t.Errorf("over the YAML without being told to: %v", err)
	}
	c.mustHelm("install", "lockstep", chartFolder, "--take-ownership", "--force-conflicts", "--wait", "--timeout", "10m")
	c.expect("over the YAML", "2", deployment, ".status.readyReplicas")
	c.expect("over the YAML", "shop", shop, ".metadata.name")
	c.kubectl("", "apply", "--server-side", "--force-conflicts", "-k", "../config")
	c.expect("the YAML over Helm", "2", deployment, ".spec.replicas")

	// One command restores the former pods, and the same YAML rolls the newer ones out again.
	const image = ".spec.template.spec.containers[0].image"
	before := c.kubectl("", "get", deployment, "-n", namespace, "-o", "jsonpath={"+image+"}")
	next := strings.ReplaceAll(c.kubectl("", "kustomize", "../config"), before, "example.test/lockstep-manager:next")
	c.kubectl(next, "apply", "--server-side", "--force-conflicts", "-f", "-")
	c.expect("the next YAML", "example.test/lockstep-manager:next", deployment, image)
	c.kubectl("", "rollout", "undo", deployment, "-n", namespace)
	c.expect("undone", before, deployment, image)
	c.kubectl(next, "apply", "--server-side", "--force-conflicts", "-f", "-")
	c.expect("the next YAML again", "example.test/lockstep-manager:next", deployment, image)
}
