package testrunner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/require"
)

const manifest = `
apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifest
metadata: {name: shop}
spec: {scopes: [Namespaced], phases: [{name: one}]}
test: {template: [{name: first, context: {package: {metadata: {name: shop, namespace: shop}}}}]}
`

func packageFiles() loader.Files {
	return loader.Files{
		"manifest.yaml":        []byte(manifest),
		"folder/a.yaml.gotmpl": []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .package.metadata.name }}', annotations: {package-operator.run/phase: one}}\n"),
	}
}

const want = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'shop', annotations: {package-operator.run/phase: one}}\n"

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestRun(t *testing.T) {
	t.Parallel()
	const fixture = ".test-fixtures/first/folder/a.yaml"
	for _, test := range []struct {
		reason string
		make   func(dir string)
		want   Outcome
		change Change
	}{
		{"no fixtures", func(string) {}, NoFixtures, ""},
		{"the same", func(dir string) { write(t, dir, fixture, want) }, Passed, ""},
		{"another text", func(dir string) { write(t, dir, fixture, want+"# more\n") }, Failed, Differs},
		{"one too few", func(dir string) { write(t, dir, ".test-fixtures/first/other.yaml", "") }, Failed, Missing},
		{"one too many", func(dir string) { write(t, dir, fixture, want); write(t, dir, ".test-fixtures/first/b.yaml", "b") }, Failed, Extra},
	} {
		dir := t.TempDir()
		test.make(dir)
		result, err := Run(context.Background(), packageFiles(), Options{Folder: dir})
		if err != nil || len(result.Problems) > 0 || len(result.Cases) != 1 {
			t.Fatalf("%s: %+v, %v", test.reason, result, err)
		}
		c := result.Cases[0]
		require.Equal(t, test.want, c.Outcome, test.reason)
		var changes []Change
		for _, file := range c.Files {
			changes = append(changes, file.Change)
		}
		if test.change != "" && (len(changes) == 0 || !strings.Contains(strings.Join(texts(changes), " "), string(test.change))) {
			t.Errorf("%s: %v, want %s", test.reason, changes, test.change)
		}
		problems, warnings := result.Mismatches()
		if (len(problems) > 0) != (test.want == Failed) || (len(warnings) > 0) != (test.want == NoFixtures) {
			t.Errorf("%s: problems %v, warnings %v", test.reason, problems, warnings)
		}
	}
}

func TestFixturesOfPackageOperator(t *testing.T) {
	t.Parallel()
	static := []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, annotations: {package-operator.run/phase: one}}\n")
	for _, test := range []struct {
		reason   string
		fixtures map[string]string
		want     Outcome
		updated  []string
	}{
		{"files without templates, too", map[string]string{"folder/a.yaml": want, "b.yaml": string(static), "c.yaml": string(static)}, Passed, nil},
		{"templates alone", map[string]string{"folder/a.yaml": want}, Passed, nil},
		{"one of them differs", map[string]string{"folder/a.yaml": want, "b.yaml": "x: y\n", "c.yaml": string(static)}, Failed, []string{"b.yaml", "c.yaml", "folder/a.yaml"}},
		{"one of them is missing", map[string]string{"folder/a.yaml": want, "b.yaml": string(static)}, Failed, []string{"b.yaml", "c.yaml", "folder/a.yaml"}},
		{"templates alone, and updated", map[string]string{"folder/a.yaml": "x: y\n"}, Failed, []string{"folder/a.yaml"}},
	} {
		dir, files := t.TempDir(), packageFiles()
		files["b.yaml"], files["c.yaml"] = static, []byte(strings.Replace(string(static), "name: b", "name: c", 1))
		for p, text := range test.fixtures {
			if p == "c.yaml" {
				text = string(files[p])
			}
			write(t, dir, ".test-fixtures/first/"+p, text)
		}
		result, err := Run(context.Background(), files, Options{Folder: dir})
		if err != nil || len(result.Cases) != 1 || result.Cases[0].Outcome != test.want {
			t.Errorf("%s: %+v, %v", test.reason, result, err)
			continue
		}
		if test.updated == nil {
			continue
		}
		if _, err := Run(context.Background(), files, Options{Folder: dir, Update: true}); err != nil {
			t.Fatal(err)
		}
		written, err := loader.ReadFolder(filepath.Join(dir, ".test-fixtures/first"))
		if diff := cmp.Diff(test.updated, written.Paths()); err != nil || diff != "" {
			t.Errorf("%s: %s%v", test.reason, diff, err)
		}
	}
}

func texts(changes []Change) []string {
	var out []string
	for _, c := range changes {
		out = append(out, string(c))
	}
	return out
}

func TestUpdateStaysInTheFolder(t *testing.T) {
	t.Parallel()
	outside, dir := t.TempDir(), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".test-fixtures"), 0o755))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, ".test-fixtures", "first")))
	if _, err := Run(context.Background(), packageFiles(), Options{Folder: dir, Update: true}); err == nil || !strings.Contains(err.Error(), "is not a folder") {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("written outside: %v, %v", entries, err)
	}
}

func TestLinksAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "outside.yaml", want)
	write(t, dir, ".test-fixtures/first/other.yaml", want)
	require.NoError(t, os.Symlink(filepath.Join(dir, "outside.yaml"), filepath.Join(dir, ".test-fixtures/first/link.yaml")))
	if _, err := Run(context.Background(), packageFiles(), Options{Folder: dir}); err == nil || !strings.Contains(err.Error(), "read the fixtures: ") {
		t.Errorf("got %v", err)
	}
}

// A link at .test-fixtures itself would let an update replace other files of the package, and let a
// comparison print files from outside.
func TestLinksOnTheWayAreRefused(t *testing.T) {
	t.Parallel()
	for _, outside := range []bool{false, true} {
		dir, target := t.TempDir(), "."
		write(t, dir, "first/notes.txt", "keep me")
		if outside {
			target = t.TempDir()
			write(t, target, "first/notes.txt", "outside")
		}
		require.NoError(t, os.Symlink(target, filepath.Join(dir, ".test-fixtures")))
		for _, update := range []bool{false, true} {
			_, err := Run(context.Background(), packageFiles(), Options{Folder: dir, Update: update})
			require.ErrorContains(t, err, "is not a folder", fmt.Sprintf("link to %s, update %t", target, update))
		}
		if data, err := os.ReadFile(filepath.Join(dir, "first/notes.txt")); err != nil || string(data) != "keep me" {
			t.Errorf("link to %s: %q, %v", target, data, err)
		}
	}
}

func TestFixturesAreWhatUpdateWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Run(context.Background(), packageFiles(), Options{Folder: dir, Update: true}); err != nil {
		t.Fatal(err)
	}
	fixtures, err := Fixtures(context.Background(), packageFiles())
	require.NoError(t, err)
	require.Equal(t, loader.Files{".test-fixtures/first/folder/a.yaml": []byte(want)}, fixtures)
	for p, data := range fixtures {
		got, err := os.ReadFile(filepath.Join(dir, p))
		if err != nil || string(got) != string(data) {
			t.Errorf("%s: %q, %v", p, got, err)
		}
	}
}

// An image has neither fixtures nor files of schemas.
func TestImage(t *testing.T) {
	t.Parallel()
	files := packageFiles()
	files["manifest.yaml"] = []byte(manifest[:len(manifest)-2] + ", kubeconform: {kubernetesVersion: v1.36.0, schemaLocations: ['/etc/{{ .ResourceKind }}.json']}}\n")
	result, err := Run(context.Background(), files, Options{})
	if err != nil || len(result.Problems) > 0 || len(result.Warnings) > 0 || len(result.Cases) > 0 {
		t.Errorf("got %+v, %v", result, err)
	}
}
