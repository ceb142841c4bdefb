package schemas

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/test/require"
)

// schema compiles the schema of a kind.
func schema(t *testing.T, kind string) *jsonschema.Schema {
	t.Helper()
	f, err := Files.Open(kind + ".json")
	require.NoError(t, err)
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("mem:"+kind, doc))
	compiled, err := c.Compile("mem:" + kind)
	require.NoError(t, err)
	return compiled
}

func decode(t *testing.T, text []byte) any {
	t.Helper()
	raw, err := yaml.YAMLToJSON(text)
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	require.NoError(t, err)
	return value
}

// Every manifest of the repository, Package Operator's among them, fits.
func TestManifestsFit(t *testing.T) {
	t.Parallel()
	manifests := schema(t, "PackageManifest")
	count := 0
	for _, root := range []string{"../../examples", "../../apis/manifests/v1alpha1/testdata"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".yaml") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(text), "kind: PackageManifest\n") {
				return err
			}
			count++
			if err := manifests.Validate(decode(t, text)); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			return nil
		})
		require.NoError(t, err)
	}
	if count < 4 {
		t.Errorf("only %d manifests found", count)
	}
}

func TestMistakesDoNotFit(t *testing.T) {
	t.Parallel()
	manifests := schema(t, "PackageManifest")
	const good = "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifest\nmetadata: {name: a}\nspec:\n  scopes: [Cluster]\n  phases: [{name: a}]\n"
	const bundle = "  dependencies: [{name: db, package: {name: db.example.com}}]\n"
	for _, text := range []string{good, strings.Replace(good, "  phases: [{name: a}]\n", bundle, 1)} {
		if err := manifests.Validate(decode(t, []byte(text))); err != nil {
			t.Error(err)
		}
	}
	for reason, replace := range map[string][2]string{
		"an unknown field":        {"scopes:", "skopes: []\n  scopes:"},
		"an unknown scope":        {"[Cluster]", "[Clustr]"},
		"another kind":            {"kind: PackageManifest", "kind: Package"},
		"another version":         {"v1alpha1", "v1"},
		"no phases":               {"  phases: [{name: a}]\n", ""},
		"a phase without a name":  {"{name: a}]", "{class: a}]"},
		"no name":                 {"metadata: {name: a}", "metadata: {}"},
		"an unknown schema field": {"  scopes:", "  config: {openAPIV3Schema: {type: object, propertys: {}}}\n  scopes:"},
		"components with content": {"  scopes:", "  components: {a: b}\n  scopes:"},
		"a number for a text":     {"  scopes:", "  version: 1\n  scopes:"},
	} {
		bad := strings.Replace(good, replace[0], replace[1], 1)
		if bad == good || manifests.Validate(decode(t, []byte(bad))) == nil {
			t.Errorf("%s fits", reason)
		}
	}
}

func TestOtherKinds(t *testing.T) {
	t.Parallel()
	for kind, text := range map[string]string{
		"PackageManifestLock": "spec: {images: [{name: a, image: b, digest: 'sha256:c'}]}",
		"Repository":          "",
		"RepositoryEntry":     "data: {name: a, image: b, digest: c, versions: [v1]}",
	} {
		head := "apiVersion: manifests.package-operator.run/v1alpha1\nkind: " + kind + "\nmetadata: {name: a, creationTimestamp: null}\n"
		if err := schema(t, kind).Validate(decode(t, []byte(head+text))); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if schema(t, kind).Validate(decode(t, []byte(head+"other: {}\n"+text))) == nil {
			t.Errorf("%s: an unknown field fits", kind)
		}
	}
}
