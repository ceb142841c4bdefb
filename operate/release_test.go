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
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// released is a version that can be built from any commit.
const released = "v0.0.1-test.1"

// build makes a release of the last commit in a clone of the repository, only for this platform, in
// the folder out, and returns its files.
func build(t *testing.T, folder string, args ...string) map[string][]byte {
	t.Helper()
	repository, out := filepath.Join(folder, "repository"), filepath.Join(folder, "out")
	execute(t, "..", nil, "git", "clone", "--quiet", "--depth", "1", "file://"+abs(t, ".."), repository)
	args = append([]string{"run", "./hack/release", "--out", out, "--platforms", "linux/amd64"}, args...)
	execute(t, repository, nil, "go", append(args, released)...)
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

// execute runs a command in a folder, and returns its output.
func execute(t *testing.T, folder string, env []string, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir, command.Env = folder, slices.Concat(os.Environ(), []string{"CGO_ENABLED=0"}, env)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func abs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Two releases of one commit, built in two folders, are the same bytes. The listed files exist, and
// their users accept them: krew, and the engine during moves between YAML, chart and package.
func TestRelease(t *testing.T) {
	folder := t.TempDir()
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(folder, "out"))))
	defer server.Close()
	files := build(t, folder, "--url", server.URL)
	sums := map[string]string{}
	for name, content := range files {
		digest := sha256.Sum256(content)
		sums[name] = hex.EncodeToString(digest[:])
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
	t.Run("ways", func(t *testing.T) { ways(t, filepath.Join(folder, "out"), files) })
	t.Run("twice", func(t *testing.T) {
		again := build(t, filepath.Join(t.TempDir(), "another", "folder"), "--url", server.URL)
		for name, content := range files {
			if other := again[name]; !bytes.Equal(content, other) {
				t.Errorf("%s differs: %d and %d bytes", name, len(content), len(other))
			}
			delete(again, name)
		}
		if len(again) > 0 {
			t.Errorf("the second one has more: %v", slices.Sorted(maps.Keys(again)))
		}
	})
}

// untar returns the files of an archive, which can be compressed.
func untar(t *testing.T, content []byte) map[string][]byte {
	t.Helper()
	var reader io.Reader = bytes.NewReader(content)
	if compressed, err := gzip.NewReader(bytes.NewReader(content)); err == nil {
		reader = compressed
	}

	files := map[string][]byte{}
	for archive := tar.NewReader(reader); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if files[header.Name], err = io.ReadAll(io.LimitReader(archive, 256<<20)); err != nil {
			t.Fatal(err)
		}
	}
}

// ofImage returns the files in all layers of the first platform of an image in an OCI layout.
func ofImage(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	layout := untar(t, archive)
	type descriptor struct{ Digest string }
	var manifest struct{ Manifests, Layers []descriptor }
	for text := layout["index.json"]; ; text = layout["blobs/sha256/"+strings.TrimPrefix(manifest.Manifests[0].Digest, "sha256:")] {
		manifest.Manifests, manifest.Layers = nil, nil
		if err := json.Unmarshal(text, &manifest); err != nil {
			t.Fatal(err)
		}
		if len(manifest.Layers) > 0 {
			break
		}
	}

	files := map[string][]byte{}
	for _, layer := range manifest.Layers {
		maps.Copy(files, untar(t, layout["blobs/sha256/"+strings.TrimPrefix(layer.Digest, "sha256:")]))
	}

	return files
}

// plugin runs the programs of the archive and of the image, and compares their modules with the
// bills of materials.
func plugin(t *testing.T, files map[string][]byte) {
	t.Helper()
	for name, program := range map[string][]byte{
		"kubectl-package":  untar(t, files["kubectl-package-"+released+"-linux-amd64.tar.gz"])["kubectl-package"],
		"lockstep-manager": ofImage(t, files["lockstep-manager-"+released+".oci.tar"])["lockstep-manager"],
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, program, 0o700); err != nil {
			t.Fatal(err)
		}
		if out := execute(t, ".", nil, path, "--version"); !strings.Contains(out, released) {
			t.Errorf("%s prints %q", name, out)
		}
		info, err := buildinfo.ReadFile(path) // like go version -m
		if err != nil {
			t.Fatal(err)
		}
		var bill struct {
			Components []struct{ Name, Version string }
		}
		if err := json.Unmarshal(files[name+"-"+released+".cdx.json"], &bill); err != nil {
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
			t.Errorf("the bill of materials of %s differs from the linked modules (-linked +listed):\n%s", name, diff)
		}
		t.Logf("%s: %d modules, each of which is listed", name, len(linked))
	}
}

// packedChart compares the objects of the packed chart with the YAML's.
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

// krew checks the manifests with its own validator, and installs the plugin from its own index and
// from the default one.
func krew(t *testing.T, files map[string][]byte) {
	t.Helper()
	for name, index := range map[string]string{"package": "own", "lockstep": "default"} {
		manifest := filepath.Join(t.TempDir(), name+".yaml")
		if err := os.WriteFile(manifest, files["krew-"+name+".yaml"], 0o600); err != nil {
			t.Fatal(err)
		}
		execute(t, ".", nil, "go", "tool", "validate-krew-manifest", "-manifest", manifest, "-skip-install")

		repository, root := t.TempDir(), t.TempDir()
		if err := os.MkdirAll(filepath.Join(repository, "plugins"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(repository, "plugins", name+".yaml"), files["krew-"+name+".yaml"], 0o600); err != nil {
			t.Fatal(err)
		}
		git := []string{"-c", "user.name=test", "-c", "user.email=test@example.test"}
		for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"commit", "--quiet", "-m", name}} {
			execute(t, repository, nil, "git", append(git, args...)...)
		}
		env := []string{"KREW_ROOT=" + root, "KREW_NO_UPGRADE_CHECK=1", "PATH=" + filepath.Join(root, "bin") + ":" + os.Getenv("PATH")}
		run := func(args ...string) {
			t.Helper()
			t.Logf("$ kubectl krew %s\n%s", strings.Join(args, " "), execute(t, ".", env, "go", append([]string{"tool", "krew"}, args...)...))
		}
		plugin, program := index+"/"+name, filepath.Join(root, "bin", "kubectl-"+name)
		if index == "default" {
			plugin = name
		}
		run("index", "add", index, "file://"+repository)
		run("install", plugin)
		if out := execute(t, ".", nil, program, "--version"); !strings.Contains(out, released) {
			t.Errorf("%s prints %q", program, out)
		}
		run("list")
		run("uninstall", name)
		if _, err := os.Lstat(program); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", program, err)
		}
	}
}
