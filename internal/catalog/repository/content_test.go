package repository_test

import (
	"io/fs"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/catalog/repository"
)

// filesIn returns the files of a folder by their paths below it.
func filesIn(t testing.TB, folder string) map[string][]byte {
	t.Helper()
	files, root := map[string][]byte{}, os.DirFS(folder)
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[path], err = fs.ReadFile(root, path)
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	return files
}

// golden compares a value with a file, which LOCKSTEP_UPDATE=1 writes anew.
func golden(t *testing.T, path string, value any) {
	t.Helper()
	got, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("LOCKSTEP_UPDATE") != "" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (LOCKSTEP_UPDATE=1 writes it anew): %s", path, diff)
	}
}

// A repository in the form of Carvel's: what its documents say is offered, and what is not carried over has a name.
func TestReadCarvel(t *testing.T) {
	t.Parallel()
	content, err := repository.Read(filesIn(t, "testdata/carvel"))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/carvel.yaml", content)
}
