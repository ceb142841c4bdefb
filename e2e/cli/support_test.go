package cli_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// The archive explains why a package is not available. It must not contain secrets that users
// have put into objects in any form, even if messages quote them.
func TestSupport(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.Namespace(t, "support")
	n := 0
	planted := func() string { n++; return fmt.Sprintf("planted-%02d-Xq7vB9", n) }
	var objects []client.Object
	create := func(obj client.Object) {
		t.Helper()
		obj.SetAnnotations(map[string]string{"example.com/a": planted(), "kubectl.kubernetes.io/last-applied-configuration": planted()})
		obj.SetLabels(map[string]string{"example.com/l": planted()})
		require.NoError(t, env.Client.Create(t.Context(), obj))
		objects = append(objects, obj)
	}
	secret := planted()
	image := env.Push(t, "support:v1", harness.Files{
		"manifest.yaml": harness.Manifest("support", []string{"deploy"}, "  config:\n    openAPIV3Schema:\n      type: object\n      properties:\n        password: {type: string}\n"),
		"secret.yaml.gotmpl": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: login\n  annotations: {package-operator.run/phase: deploy}\nstringData:\n" +
			"  password: {{ .config.password }}\n  other: " + planted() + "\n",
		// Refused with a message that quotes the value.
		"wrong.yaml.gotmpl": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: wrong\n  labels: {a: \"{{ .config.password }} !\"}\n  annotations: {package-operator.run/phase: deploy}\n",
	})
	for _, name := range []string{"one", "two"} {
		pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "support", Name: name}}
		pkg.Spec = corev1alpha1.PackageSpec{Image: image, Config: &runtime.RawExtension{Raw: []byte(`{"password":"` + secret + `"}`)}}
		if name == "two" {
			pkg.Spec.CommonMetadata = &corev1alpha1.CommonMetadata{Annotations: map[string]string{"a": planted()}}
			pkg.Spec.Patches = []corev1alpha1.PackagePatch{{Patch: "kind: ConfigMap\napiVersion: v1\nmetadata: {name: wrong}\ndata: {a: " + planted() + "}\n"}}
		}
		create(pkg)
	}
	create(&corev1alpha1.ObjectTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "support", Name: "t"}, Spec: corev1alpha1.ObjectTemplateSpec{Template: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: t}\ndata: {a: " + planted() + "}\n", Sources: []corev1alpha1.ObjectTemplateSource{}}})
	create(&corev1alpha1.PackageRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "support", Name: "r"}, Spec: corev1alpha1.PackageRepositorySpec{
		Source: corev1alpha1.RepositorySource{Inline: &corev1alpha1.RepositoryInlineSource{Files: map[string]string{"a.yaml": "a: " + planted()}}},
	}})
	create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "support", Name: "s"}, StringData: map[string]string{"a": planted()}})
	encoded := base64.StdEncoding.EncodeToString([]byte(planted()))
	rendered := func(text string) corev1alpha1.ObjectSetObject {
		return corev1alpha1.ObjectSetObject{Object: runtime.RawExtension{Raw: []byte(text)}}
	}
	create(&corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "support", Name: "lone"}, Spec: corev1alpha1.ObjectSetSpec{
		LifecycleState: corev1alpha1.ObjectSetLifecycleStatePaused,
		ObjectSetTemplateSpec: corev1alpha1.ObjectSetTemplateSpec{Phases: []corev1alpha1.ObjectSetTemplatePhase{{Name: "a", Objects: []corev1alpha1.ObjectSetObject{
			rendered(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"lone"},"data":{"a":"` + encoded + `"}}`),
			rendered(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"lone"},"data":{"a":"{\"password\":\"` + planted() + `\"}"}}`),
			rendered(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"lone"},"spec":{"containers":[{"name":"a","image":"a","args":["--token=` + planted() + `"],
				"env":[{"name":"A","value":"` + planted() + `"},{"name":"PROXY","value":"http://u:` + planted() + `@example.com/?sig=` + planted() + `"}]}]}}`),
		}}}},
	}})
	harness.Eventually(t, harness.Patience, "the package is refused", func(context.Context) error {
		if got := run(t, env, "explain", "one", "-n", "support"); !strings.Contains(got.out, "is not a valid label value") {
			return errors.New(got.out)
		}
		return nil
	})

	file := filepath.Join(t.TempDir(), "support.tar.gz")
	if got := ok(t, env, "support", "--dry-run", "-n", "support", "-o", file); !strings.Contains(got.out, "objects/package.json") || !strings.Contains(got.out, "logs: namespace package-operator-system has no pod of the manager") {
		t.Errorf("got %+v", got)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a dry run wrote a file: %v", err)
	}
	ok(t, env, "support", "-n", "support", "-o", file)
	files := untar(t, file)
	for name, text := range files {
		for i := 1; i <= n; i++ {
			value := fmt.Sprintf("planted-%02d-Xq7vB9", i)
			for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value)), hex.EncodeToString([]byte(value))} {
				if at := strings.Index(text, form); at >= 0 {
					t.Errorf("%s: %s", name, text[max(0, at-200):min(len(text), at+50)])
				}
			}
		}
	}
	if why := files["support/explain/package_support_one.txt"]; !strings.Contains(why, "ConfigMap wrong") || !strings.Contains(why, "[redacted]") {
		t.Errorf("explain: %q", why)
	}
	var packages corev1alpha1.PackageList
	if err := json.Unmarshal([]byte(files["support/objects/package.json"]), &packages); err != nil || !slices.ContainsFunc(packages.Items, func(pkg corev1alpha1.Package) bool {
		return pkg.Namespace == "support" && pkg.Name == "one" && len(pkg.Status.Conditions) > 0
	}) {
		t.Errorf("%v: %s", err, files["support/objects/package.json"])
	}
	t.Logf("%d secrets are planted in %d objects and an image, and none is in %d files", n, len(objects), len(files))
	if n < 30 || len(objects) == 0 {
		t.Errorf("only %d secrets are planted", n)
	}
}

func untar(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	zipped, err := gzip.NewReader(f)
	require.NoError(t, err)
	files := map[string]string{}
	for r := tar.NewReader(zipped); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		raw, err := io.ReadAll(r)
		require.NoError(t, err)
		files[head.Name] = string(raw)
	}
}
