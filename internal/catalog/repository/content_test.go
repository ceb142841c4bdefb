package repository_test

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/test/require"
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

// golden compares a value with a file, which LOCKSTEP_UPDATE=1 rewrites.
func golden(t *testing.T, path string, value any) {
	t.Helper()
	got, err := yaml.Marshal(value)
	require.NoError(t, err)
	if os.Getenv("LOCKSTEP_UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), fmt.Sprintf("%s (LOCKSTEP_UPDATE=1 rewrites it)", path))
}

// The documents of a repository in Carvel's format are offered, and parts that are not carried over
// are named.
func TestReadCarvel(t *testing.T) {
	t.Parallel()
	content, err := repository.Read(filesIn(t, "testdata/carvel"))
	require.NoError(t, err)
	golden(t, "testdata/carvel.yaml", content)
}

// Each step that is not carried over is named, and the version cannot be installed.
func TestStepsOfCarvel(t *testing.T) {
	t.Parallel()
	const fetch, kapp = "- imgpkgBundle: {image: registry.example.com/shop:1.0.0}", "- kapp: {}"
	for _, test := range []struct {
		reason, old, new string
		want             []string
	}{
		{"a bundle alone", "", "", nil},
		{"a namespace, which is ignored", "metadata:\n", "metadata:\n  namespace: elsewhere\n", nil},
		{"no deploy step", "\n      deploy:\n      " + kapp, "", nil},
		{"kapp without anything", kapp, "- kapp:", nil},
		{"empty options", kapp, "- kapp: {delete: {}, rawOptions: [], intoNs: ''}", nil},
		{"an image", fetch, "- image: {url: registry.example.com/shop:1.0.0, subPath: ''}", nil},
		{"files", fetch, "- inline: {paths: {config/a.yaml: 'a: 1'}}", nil},
		{"no fetch", "\n      fetch:\n      " + fetch, "", []string{"template.spec.fetch"}},
		{"git", fetch, "- git: {url: a}", []string{"template.spec.fetch[0].git"}},
		{"http", fetch, "- http: {url: a}", []string{"template.spec.fetch[0].http"}},
		{"helmChart", fetch, "- helmChart: {name: a}", []string{"template.spec.fetch[0].helmChart"}},
		{"files of Secrets", fetch, "- inline: {pathsFrom: [{secretRef: {name: a}}]}", []string{"template.spec.fetch[0].inline"}},
		{"files of Secrets too", fetch, "- inline: {paths: {a.yaml: b}, pathsFrom: [{secretRef: {name: a}}]}", []string{"template.spec.fetch[0].inline.pathsFrom"}},
		{"a Secret", fetch, "- imgpkgBundle: {image: a/b, secretRef: {name: a}}", []string{"template.spec.fetch[0].imgpkgBundle.secretRef"}},
		{"a tag", fetch, "- image: {url: a/b, tagSelection: {semver: {}}}", []string{"template.spec.fetch[0].image.tagSelection"}},
		{"a folder", fetch, "- image: {url: a/b, subPath: c}", []string{"template.spec.fetch[0].image.subPath"}},
		{"a place", fetch, "- image: {url: a/b}\n        path: c", []string{"template.spec.fetch[0].path"}},
		{"two fetches", fetch, fetch + "\n      - git: {}", []string{"template.spec.fetch[0].imgpkgBundle", "template.spec.fetch[1].git"}},
		{"templates", "      deploy", "      template:\n      - ytt: {}\n      - kbld: {}\n      - sops: {}\n      - helmTemplate: {}\n      - cue: {}\n      - other: {}\n      deploy", []string{
			"template.spec.template[0].ytt", "template.spec.template[2].sops",
			"template.spec.template[3].helmTemplate", "template.spec.template[4].cue", "template.spec.template[5].other",
		}},
		{"kbld that resolves", "      deploy", "      template:\n      - kbld: {}\n      deploy", nil},
		{"kbld that applies the lock", "      deploy", "      template:\n      - kbld: {paths: ['-', .imgpkg/images.yml]}\n      deploy", nil},
		{"kbld of some files", "      deploy", "      template:\n      - kbld: {paths: [config]}\n      deploy", []string{"template.spec.template[0].kbld"}},
		{"kbld with options", "      deploy", "      template:\n      - kbld: {other: true}\n      deploy", []string{"template.spec.template[0].kbld"}},
		{"options", kapp, "- kapp: {intoNs: a, rawOptions: [b]}", []string{"template.spec.deploy[0].kapp.intoNs", "template.spec.deploy[0].kapp.rawOptions"}},
		{"two deploys", kapp, kapp + "\n      " + kapp, []string{"template.spec.deploy[1].kapp"}},
		{"another deploy", kapp, "- helm: {}", []string{"template.spec.deploy[0].helm"}},
		{"more than are kept", "      deploy", "      template:\n" + strings.Repeat("      - ytt: {}\n", 60) + "      deploy", append(ytts(50), "and 10 more")},
	} {
		content, err := repository.Read(map[string][]byte{"a.yaml": []byte(carvel(test.old, test.new))})
		if err != nil || len(content.Problems) > 0 {
			t.Errorf("%s: %v, %v", test.reason, err, content)
			continue
		}
		v := content.Packages[0].Versions[0]
		require.Equal(t, test.want, v.NotCarriedOver, test.reason)
		if installable := v.Image != "" || len(v.Files) > 0; installable == (len(test.want) > 0) {
			t.Errorf("%s: image %q, files %v", test.reason, v.Image, v.Files)
		}
	}
}

func ytts(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("template.spec.template[%d].ytt", i))
	}
	return out
}
