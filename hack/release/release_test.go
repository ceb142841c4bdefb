package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/test/require"
)

const root = "../.."

// example makes a release, without compiled programs, and returns its files.
func example(t *testing.T) map[string]string {
	t.Helper()
	r := &release{
		version: "v1.2.3", commit: "abc", created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), image: "registry.example/lockstep-manager",
		digest: "sha256:" + strings.Repeat("1", 64), url: "https://example.test/v1.2.3", platforms: all, folder: t.TempDir(),
	}

	for _, p := range all {
		require.NoError(t, r.writeTar(r.archive(p), []file{{path: "LICENSE", content: []byte("license")}, {path: programOf(p), content: []byte(p.String())}}))
	}

	require.NoError(t, r.writeManifests(root+"/config"))
	require.NoError(t, r.writeChart(root+"/config/chart"))
	for _, list := range []func() error{r.writeKrew, r.writeProvenance, r.writeChecksums} {
		require.NoError(t, list())
	}

	files, err := readFolder(r.folder)
	require.NoError(t, err)
	contents := map[string]string{}
	for _, f := range files {
		contents[f.path] = string(f.content)
	}

	return contents
}

var once struct {
	sync.Once
	files map[string]string
}

// made returns the files of one release, which the tests share.
func made(t *testing.T) map[string]string {
	t.Helper()
	once.Do(func() { once.files = example(t) })
	return once.files
}

// unpack returns the files of an archive.
func unpack(t *testing.T, archive string) map[string]string {
	t.Helper()
	compressed, err := gzip.NewReader(strings.NewReader(archive))
	require.NoError(t, err)
	return untar(t, compressed)
}

func untar(t *testing.T, archive io.Reader) map[string]string {
	t.Helper()
	files, reader := map[string]string{}, tar.NewReader(archive)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		content, err := io.ReadAll(reader)
		require.NoError(t, err)
		files[header.Name] = string(content)
	}
}

// The same content gives the same bytes, and checksums of all files except those that list them.
func TestTwiceTheSame(t *testing.T) {
	t.Parallel()
	files := made(t)
	require.Equal(t, files, example(t), "a second release differs")
	listed := map[string]string{}
	for line := range strings.Lines(files[checksumsFile]) {
		digest, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		listed[name] = digest
	}

	want := map[string]string{}
	for name, content := range files {
		if name != checksumsFile {
			digest := sha256.Sum256([]byte(content))
			want[name] = hex.EncodeToString(digest[:])
		}
	}

	require.Equal(t, want, listed, "the checksums differ")
	names := slices.Sorted(maps.Keys(files))
	if diff := cmp.Diff([]string{
		"SHA256SUMS", "krew-lockstep.yaml", "krew-package.yaml", "kubectl-package-v1.2.3-darwin-amd64.tar.gz", "kubectl-package-v1.2.3-darwin-arm64.tar.gz",
		"kubectl-package-v1.2.3-linux-amd64.tar.gz", "kubectl-package-v1.2.3-linux-arm64.tar.gz", "kubectl-package-v1.2.3-windows-amd64.tar.gz",
		"kubectl-package-v1.2.3-windows-arm64.tar.gz", "lockstep-1.2.3.tgz", "lockstep-v1.2.3.yaml", "provenance.json",
	}, names); diff != "" {
		t.Error(diff)
	}
}

// YAML and chart name the image by tag and digest, and the chart has its versions.
func TestManifests(t *testing.T) {
	t.Parallel()
	files := made(t)
	image := "registry.example/lockstep-manager:v1.2.3@sha256:" + strings.Repeat("1", 64)
	if !strings.Contains(files["lockstep-v1.2.3.yaml"], "image: "+image+"\n") || strings.Count(files["lockstep-v1.2.3.yaml"], "\nkind: CustomResourceDefinition\n") != 18 {
		t.Errorf("the YAML does not name %s, or not all kinds", image)
	}

	chart := unpack(t, files["lockstep-1.2.3.tgz"])
	var metadata struct {
		Version, AppVersion string
		Annotations         map[string]string
	}
	require.NoError(t, yaml.Unmarshal([]byte(chart["lockstep/Chart.yaml"]), &metadata))
	var kinds []map[string]string
	require.NoError(t, yaml.Unmarshal([]byte(metadata.Annotations["artifacthub.io/crds"]), &kinds))
	if metadata.Version != "1.2.3" || metadata.AppVersion != "v1.2.3" || !strings.Contains(metadata.Annotations["artifacthub.io/images"], image) ||
		metadata.Annotations["artifacthub.io/prerelease"] != "false" || metadata.Annotations["artifacthub.io/license"] == "" || len(kinds) != 18 {
		t.Errorf("Chart.yaml has %+v, and %d kinds", metadata, len(kinds))
	}

	for _, kind := range kinds {
		if len(kind["description"]) < 20 || kind["name"] == "" {
			t.Errorf("a kind is listed as %v", kind)
		}
	}

	var values struct {
		Manager struct{ Image map[string]string }
	}
	require.NoError(t, yaml.Unmarshal([]byte(chart["lockstep/values.yaml"]), &values))
	if got := values.Manager.Image; got["repository"] != "registry.example/lockstep-manager" || got["digest"] != "" ||
		metadata.Annotations["lockstep.run/image-digest"] != "sha256:"+strings.Repeat("1", 64) {
		t.Errorf("the values name the image %v", got)
	}

	for _, name := range []string{"lockstep/files/crds/package-operator.run_packages.yaml", "lockstep/templates/manifests.yaml", "lockstep/README.md"} {
		if chart[name] == "" {
			t.Errorf("the chart lacks %s", name)
		}
	}

	if _, found := chart["lockstep/files/crds/kustomization.yaml"]; found {
		t.Error("the chart has a kustomization")
	}
}

// The manifests of krew name existing archives, with their checksums.
func TestKrew(t *testing.T) {
	t.Parallel()
	files := made(t)
	for _, name := range []string{"lockstep", "package"} {
		var plugin struct {
			Metadata struct{ Name string }
			Spec     struct {
				Version, ShortDescription string
				Platforms                 []struct {
					URI, SHA256, Bin string
					Selector         struct{ MatchLabels map[string]string }
					Files            []struct{ From, To string }
				}
			}
		}
		require.NoError(t, yaml.UnmarshalStrict([]byte(regexp.MustCompile(`(?m)^(apiVersion|kind|  homepage|  description): ?(.*\n(    .*\n)*)`).ReplaceAllString(files["krew-"+name+".yaml"], "")), &plugin))
		if plugin.Metadata.Name != name || plugin.Spec.Version != "v1.2.3" || len(plugin.Spec.Platforms) != 6 || len(plugin.Spec.ShortDescription) > 50 {
			t.Errorf("the manifest of %s is %+v", name, plugin)
		}
		for _, p := range plugin.Spec.Platforms {
			archive := files[strings.TrimPrefix(p.URI, "https://example.test/v1.2.3/")]
			if digest := sha256.Sum256([]byte(archive)); archive == "" || hex.EncodeToString(digest[:]) != p.SHA256 {
				t.Errorf("%s: the checksum of %s is another one", name, p.URI)
			}
			content := unpack(t, archive)
			if content[p.Bin] != p.Selector.MatchLabels["os"]+"/"+p.Selector.MatchLabels["arch"] {
				t.Errorf("%s: %s has another program: %q", name, p.URI, content[p.Bin])
			}
			for _, f := range p.Files {
				if content[f.From] == "" {
					t.Errorf("%s: %s lacks %s", name, p.URI, f.From)
				}
			}
		}
	}
}

// The provenance names the commit, and all files with their checksums except those that come after
// it.
func TestProvenance(t *testing.T) {
	t.Parallel()
	files := made(t)
	var statement struct {
		Type          string `json:"_type"`
		PredicateType string
		Subject       []struct {
			Name   string
			Digest map[string]string
		}
		Predicate struct {
			BuildDefinition struct {
				InternalParameters   struct{ UncommittedChanges *bool }
				ResolvedDependencies []struct{ Digest map[string]string }
			}
		}
	}

	require.NoError(t, json.Unmarshal([]byte(files[provenanceFile]), &statement))
	if statement.Type != "https://in-toto.io/Statement/v1" || statement.PredicateType != "https://slsa.dev/provenance/v1" ||
		statement.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"] != "abc" ||
		statement.Predicate.BuildDefinition.InternalParameters.UncommittedChanges == nil {
		t.Errorf("the provenance is %+v", statement)
	}

	for _, subject := range statement.Subject[1:] {
		if digest := sha256.Sum256([]byte(files[subject.Name])); hex.EncodeToString(digest[:]) != subject.Digest["sha256"] {
			t.Errorf("the checksum of %s is another one", subject.Name)
		}
	}

	if len(statement.Subject) != len(files)-1 { // the image replaces the provenance and the checksums
		t.Errorf("%d subjects of %d files", len(statement.Subject), len(files))
	}
}

// A release that could not be rebuilt, or that the changelog lacks, is refused before the build.
func TestRefusals(t *testing.T) { // not parallel: it changes the folder
	t.Chdir(root)
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "name the version"},
		{[]string{"0.2.0"}, "not a semantic one"},
		{[]string{"v0.2"}, "not a semantic one"},
		{[]string{"--platforms", "plan9/arm", "v0.2.0-rc.1"}, "plan9/arm is not one of"},
		{[]string{"--out", t.TempDir(), "v0.2.0-rc.1"}, "must be a new one"},
		{[]string{"v999.0.0"}, ""},
	} {
		err := run(context.Background(), tc.args)
		require.ErrorContains(t, err, tc.want, tc.args)
	}
}

// The headings of the changelog are the unreleased changes, and then versions with dates, starting
// with the newest. Their sections follow Keep a Changelog.
func TestChangelog(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(root + "/CHANGELOG.md")
	require.NoError(t, err)
	headings := regexp.MustCompile(`(?m)^## .*$`).FindAll(content, -1)
	if len(headings) == 0 || !bytes.Equal(headings[0], []byte("## [Unreleased]")) {
		t.Fatalf("the first heading is not ## [Unreleased]: %q", headings)
	}

	last := semver.MustParse("999.0.0")
	for _, heading := range headings[1:] {
		found := regexp.MustCompile(`^## \[(.+)\] - \d{4}-\d\d-\d\d$`).FindSubmatch(heading)
		if found == nil {
			t.Fatalf("%s is not ## [VERSION] - DATE", heading)
		}
		version, err := semver.StrictNewVersion(string(found[1]))
		require.NoError(t, err)
		if !version.LessThan(last) {
			t.Errorf("%s is not older than the one before", heading)
		}
		last = version
	}

	if len(headings) == 1 {
		return
	}

	_, released, _ := bytes.Cut(content, headings[1])
	sections := []string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
	for _, section := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllSubmatch(released, -1) {
		if !slices.Contains(sections, string(section[1])) {
			t.Errorf("### %s is not one of %v", section[1], sections)
		}
	}
}

// The processor level in the environment does not affect a release.
func TestCommand(t *testing.T) {
	t.Setenv("GOAMD64", "v3")
	level, err := command(t.Context(), nil, "go", "env", "GOAMD64")
	require.NoError(t, err)
	require.Equal(t, "v1", level, "GOAMD64")
}

// layoutOf writes the layout of two programs into a folder, and returns the release with its
// digest.
func layoutOf(t *testing.T, folder string, change func(*release)) *release {
	t.Helper()
	r := &release{version: "v1.2.3", commit: "abc", created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	change(r)
	require.NoError(t, r.writeLayout(folder, map[string][]byte{"amd64": []byte("program for amd64"), "arm64": []byte("program for arm64")}))
	return r
}

func same(*release) {}

func TestLayout(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	other := filepath.Join(folder, "thesis.txt")
	require.NoError(t, os.WriteFile(other, []byte("x"), 0o600))
	layoutOf(t, folder, func(r *release) { r.version = "v1" })
	r := layoutOf(t, folder, same) // no file of the first one stays
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}

	root, err := layout.ImageIndexFromPath(folder)
	require.NoError(t, err)
	manifest, err := root.IndexManifest()
	require.NoError(t, err)
	if len(manifest.Manifests) != 1 {
		t.Fatalf("the layout has %d entries, want 1", len(manifest.Manifests))
	}

	entry := manifest.Manifests[0]
	if entry.Digest.String() != r.digest || entry.MediaType != types.OCIImageIndex || entry.Annotations["org.opencontainers.image.ref.name"] != "v1.2.3" {
		t.Errorf("the layout holds %+v, want %s", entry, r.digest)
	}

	index, err := root.ImageIndex(entry.Digest)
	require.NoError(t, err)
	require.NoError(t, validate.Index(index))
	manifest, err = index.IndexManifest()
	require.NoError(t, err)
	var platforms []string
	for _, entry := range manifest.Manifests {
		platforms = append(platforms, entry.Platform.String())
		image, err := index.Image(entry.Digest)
		require.NoError(t, err)
		checkImage(t, image, entry.Platform.Architecture)
	}

	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) {
		t.Errorf("platforms are %v, want %v", platforms, want)
	}
}

func checkImage(t *testing.T, image v1.Image, arch string) {
	t.Helper()
	config, err := image.ConfigFile()
	require.NoError(t, err)
	if config.Architecture != arch || config.OS != "linux" || config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/lockstep-manager"}) {
		t.Errorf("the config is %+v", config)
	}

	manifest, err := image.Manifest()
	require.NoError(t, err)
	if manifest.MediaType != types.OCIManifestSchema1 || manifest.Config.MediaType != types.OCIConfigJSON || manifest.Annotations["org.opencontainers.image.version"] != "v1.2.3" {
		t.Errorf("the manifest is %+v", manifest)
	}

	layers, err := image.Layers()
	require.NoError(t, err)
	stream, err := layers[0].Uncompressed()
	require.NoError(t, err)
	defer stream.Close()
	files := untar(t, stream)
	if files["lockstep-manager"] != "program for "+arch {
		t.Errorf("the program is %q", files["lockstep-manager"])
	}

	want := []string{"lockstep-manager", "tmp/", "var/", "var/cache/", "var/cache/lockstep/"}
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		t.Errorf("the files are %v, want %v", got, want)
	}
}

func TestSameContentSameDigest(t *testing.T) {
	t.Parallel()
	first := layoutOf(t, t.TempDir(), same).digest
	require.Equal(t, first, layoutOf(t, t.TempDir(), same).digest, "the same content gives")
	if layoutOf(t, t.TempDir(), func(r *release) { r.version = "v2" }).digest == first {
		t.Error("another version gives the same digest")
	}
}
