package operate

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// released is a version that is built of any commit.
const released = "v0.0.1-test.1"

// build makes a release of the last commit in a clone of the repository, for this platform alone, and returns its files.
func build(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	run := func(dir, name string, args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), name, args...)
		command.Dir, command.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
	}
	repository, out := filepath.Join(folder, "repository"), filepath.Join(folder, "out")
	run("..", "git", "clone", "--quiet", "--depth", "1", "file://"+abs(t, ".."), repository)
	run(repository, "go", "run", "./hack/release", "--out", out, "--platforms", "linux/amd64", released)
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(out, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func abs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Two releases of one commit, built in two folders, are the same bytes; what they list is there.
func TestRelease(t *testing.T) {
	t.Parallel()
	files := build(t, t.TempDir())
	again := build(t, filepath.Join(t.TempDir(), "another", "folder"))
	sums := map[string]string{}
	for name, content := range files {
		if !bytes.Equal(content, again[name]) {
			t.Errorf("%s differs: %d and %d bytes", name, len(content), len(again[name]))
		}
		digest := sha256.Sum256(content)
		sums[name] = hex.EncodeToString(digest[:])
	}
	if len(files) != len(again) {
		t.Errorf("%d files, and then %d", len(files), len(again))
	}
	t.Logf("\n%s", files["SHA256SUMS"])
	for line := range strings.Lines(string(files["SHA256SUMS"])) {
		if digest, name, _ := strings.Cut(strings.TrimSpace(line), "  "); sums[name] != digest {
			t.Errorf("the checksum of %s is another one", name)
		}
	}
	t.Run("plugin", func(t *testing.T) { plugin(t, files) })
	t.Run("chart", func(t *testing.T) { packedChart(t, files) })
	t.Run("krew", func(t *testing.T) { krew(t, files) })
}

// plugin runs the program of the archive, and compares its modules with the bill of materials.
func plugin(t *testing.T, files map[string][]byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubectl-package")
	compressed, err := gzip.NewReader(bytes.NewReader(files["kubectl-package-"+released+"-linux-amd64.tar.gz"]))
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Name != "kubectl-package" {
			continue
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), path, "--version").CombinedOutput(); err != nil || !strings.Contains(string(out), released) {
		t.Errorf("the plugin prints %q, %v", out, err)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(files["kubectl-package-"+released+".cdx.json"], &bill); err != nil {
		t.Fatal(err)
	}
	listed, linked := map[string]string{}, map[string]string{"std": strings.TrimPrefix(info.GoVersion, "go")}
	for _, component := range bill.Components {
		listed[component.Name] = strings.TrimPrefix(component.Version, "go")
	}
	for _, module := range info.Deps {
		linked[module.Path] = module.Version
	}
	if diff := cmp.Diff(linked, listed); diff != "" {
		t.Errorf("the bill of materials differs from the linked modules (-linked +listed):\n%s", diff)
	}
}

// packedChart compares the objects of the packed chart with those of the YAML.
func packedChart(t *testing.T, files map[string][]byte) {
	t.Helper()
	c, err := loader.LoadArchive(bytes.NewReader(files["lockstep-"+strings.TrimPrefix(released, "v")+".tgz"]))
	if err != nil {
		t.Fatal(err)
	}
	values, err := util.ToRenderValues(c, nil, common.ReleaseOptions{Name: "lockstep", Namespace: namespace}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(c, values)
	if err != nil {
		t.Fatal(err)
	}
	chart, manifests := objects{}, objects{}
	for name, content := range rendered {
		if strings.HasSuffix(name, ".yaml") {
			chart.add(t, content)
		}
	}
	for name, object := range chart {
		if strings.HasPrefix(name, "CustomResourceDefinition ") {
			delete(at(object, "metadata", "annotations").(map[string]any), keep)
		}
	}
	manifests.add(t, string(files["lockstep-"+released+".yaml"]))
	delete(manifests, "Namespace "+namespace)
	if diff := cmp.Diff(manifests, chart); diff != "" {
		t.Errorf("the chart is not the YAML (-YAML +chart):\n%s", diff)
	}
	if c.Metadata.Version != strings.TrimPrefix(released, "v") || c.Metadata.AppVersion != released || c.Metadata.Annotations["artifacthub.io/crds"] == "" {
		t.Errorf("the chart is %+v", c.Metadata)
	}
}

// krew checks the manifests with its own validator.
func krew(t *testing.T, files map[string][]byte) {
	t.Helper()
	for _, name := range []string{"lockstep", "package"} {
		path := filepath.Join(t.TempDir(), name+".yaml")
		if err := os.WriteFile(path, files["krew-"+name+".yaml"], 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), "go", "tool", "validate-krew-manifest", "-manifest", path, "-skip-install").CombinedOutput(); err != nil {
			t.Errorf("krew refuses %s: %v\n%s", name, err, out)
		}
	}
}
