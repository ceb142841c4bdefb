package carvel

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/golden"
	"lockstep.run/lockstep/test/require"
)

func convert(t *testing.T, text string) *Result {
	t.Helper()
	var documents []map[string]any
	for part := range strings.SplitSeq(text, "\n---\n") {
		raw, err := yaml.YAMLToJSON([]byte(part))
		require.NoError(t, err)
		var doc map[string]any
		require.NoError(t, json.Unmarshal(raw, &doc))
		documents = append(documents, doc)
	}
	return Convert(documents, GlobalNamespace)
}

func notes(r *Result) string {
	var b strings.Builder
	for _, n := range r.Notes {
		b.WriteString(strings.Join([]string{n.Object, n.Field, n.Text}, " | ") + "\n")
	}
	return b.String()
}

// The converted objects of a file and their notes are compared with files.
func TestConvert(t *testing.T) {
	t.Parallel()
	input, err := os.ReadFile("testdata/input.yaml")
	require.NoError(t, err)
	result := convert(t, string(input))
	var out strings.Builder
	for _, o := range result.Objects {
		text, err := yaml.Marshal(o)
		require.NoError(t, err)
		out.WriteString("---\n" + string(text))
	}
	for file, got := range map[string]string{"testdata/output.yaml": out.String(), "testdata/notes.txt": notes(result)} {
		golden.Text(t, file, got)
		if strings.Contains(got, "hunter2") || strings.Contains(got, "aHVudGVyMg") {
			t.Errorf("%s has a secret", file)
		}
	}
	for _, o := range result.Objects {
		raw, err := json.Marshal(o["spec"])
		require.NoError(t, err)
		var into any = &corev1alpha1.PackageSpec{}
		if o["kind"] != "Package" {
			into = &corev1alpha1.PackageRepositorySpec{}
		}
		if err := yaml.UnmarshalStrict(raw, into); err != nil {
			t.Errorf("%v: %v", o["metadata"], err)
		}
	}
}

// A Package that would be installed differently is paused.
func TestWhatIsDifferentIsPaused(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: packaging.carvel.dev/v1alpha1\nkind: PackageInstall\nmetadata: {name: shop, namespace: shop"
	for name, test := range map[string]struct {
		text   string
		paused bool
	}{
		"no content is lost":     {head + "}\nspec: {serviceAccountName: a, packageRef: {refName: shop.example.com, versionSelection: {constraints: 1.0.0}}}", false},
		"values are not there":   {head + "}\nspec: {packageRef: {refName: s}, values: [{secretRef: {name: none}}]}", true},
		"overlays":               {head + ", annotations: {ext.packaging.carvel.dev/ytt-paths-from-secret-name.1: a}}\nspec: {packageRef: {refName: s}}", true},
		"another cluster":        {head + "}\nspec: {packageRef: {refName: s}, cluster: {kubeconfigSecretRef: {name: a}}}", false},
		"a cluster of no effect": {head + "}\nspec: {packageRef: {refName: s}, serviceAccountName: a, cluster: {kubeconfigSecretRef: {name: a}}}", false},
		"no constraint":          {head + "}\nspec: {packageRef: {refName: s, versionSelection: {constraints: '^^1'}}}", true},
		"an unknown field":       {head + "}\nspec: {packageRef: {refName: s}, later: true}", false},
		"canceled":               {head + "}\nspec: {packageRef: {refName: s}, canceled: true}", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := convert(t, test.text)
			spec := result.Objects[0]["spec"].(map[string]any)
			require.Equal(t, test.paused, spec["paused"] == true, "paused")
		})
	}
}
