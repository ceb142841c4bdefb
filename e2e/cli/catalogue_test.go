package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// shop is a version of a package with values.
func shop(version string) harness.Files {
	return harness.Files{
		"manifest.yaml": harness.Manifest("shop", []string{"deploy"}, `  version: `+version+`
  packageName: shop.example.com
  provides: [{apiVersion: shop.example.com/v1, kind: Shop}]
  display: {name: Shop, shortDescription: Sells what there is.}
  release: {notes: "What is new in `+version+`.", licenses: [Apache-2.0]}
  config:
    openAPIV3Schema:
      type: object
      required: [title]
      properties:
        title: {type: string, description: The title of the shop., minLength: 1}
        color: {type: string, description: The colour of the front., enum: [red, blue], default: red}
        token: {type: string, format: password}
`),
		"front.yaml.gotmpl": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: front\n  annotations: {package-operator.run/phase: deploy}\n" +
			"data:\n  title: {{ .config.title }}\n  color: {{ .config.color }}\n  version: " + version + "\n",
	}
}

// text runs a command in a namespace, checks the exit code, and returns all output.
func text(t *testing.T, env *harness.Env, namespace string, code int, args ...string) string {
	t.Helper()
	got := run(t, env, append(args, "-n", namespace)...)
	if got.code != code {
		t.Fatalf("%s: exit code %d\n%s%s", strings.Join(args, " "), got.code, got.err, got.out)
	}
	return got.err + got.out
}

// has fails the test if a text lacks one of the wanted ones.
func has(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// A consumer adds a repository, lists its packages, installs with values, upgrades by a
// constraint, pauses and deletes.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.Namespace(t, "catalogue")
	in := func(code int, args ...string) string {
		t.Helper()
		return text(t, env, "catalogue", code, args...)
	}

	dir := t.TempDir()
	file, at := filepath.Join(dir, "shop.yaml"), env.Registry()+"/repositories/shop:latest"
	offer := func(version string) {
		image := env.Push(t, "shop:"+version, shop(version))
		ok(t, env, "repository", "add", file, image, version)
		ok(t, env, "repository", "push", file, at)
	}
	ok(t, env, "repository", "initialize", file)
	offer("1.0.0")
	offer("1.1.0")
	offer("2.0.0")

	has(t, in(0, "repo", "add", "stable", at), "packagerepository catalogue/stable added", "is ready: 1 package, 3 versions")
	has(t, in(0, "repo", "list"), "stable", "ready")
	has(t, in(0, "available"), "shop.example.com  Shop", "2.0.0", "PackageRepository/stable")
	has(t, in(0, "available", "shop.example.com"), "Sells what there is.", "2.0.0", "1.1.0", "1.0.0")
	has(t, in(0, "available", "shop.example.com/1.0.0", "--values-schema"), "title", "required", "red, blue")
	has(t, in(0, "available", "shop.example.com/1.0.0"), "What is new in 1.0.0.", "Apache-2.0")

	has(t, in(1, "install", "shpo.example.com", "--version", "1.0.0"), "Did you mean", "shop.example.com")
	has(t, in(1, "install", "shop.example.com", "shop", "--version", ">=3"), "no version of shop.example.com can be installed with \">=3\"\n  2.0.0  is not within")
	has(t, in(1, "install", "shop.example.com", "shop", "--version", "1.0.0"), "title: Required value", "kubectl package available shop.example.com/1.0.0 --values")
	values := filepath.Join(dir, "values.yaml")
	example := ok(t, env, "available", "shop.example.com/1.0.0", "--values", "-n", "catalogue").out
	has(t, example, "# The title of the shop.", "# string; red, blue", "color: red")
	require.NoError(t, os.WriteFile(values, []byte(strings.Replace(example, `title: ""`, "title: Corner", 1)), 0o600))
	has(t, in(0, "plan", "shop.example.com/1.0.0", "shop", "--values", values), "shop 1.0.0", "+ ConfigMap catalogue/front", "Plan: 1 to create")
	has(t, in(1, "install", "stable/shop.example.com", "shop"), "names no registry")
	has(t, in(0, "install", "shop.example.com/1.0.0", "shop", "--values", values), "package catalogue/shop created", "shop 1.0.0, revision 1")
	has(t, in(0, "status", "shop"), "shop.example.com 1.0.0", "PackageRepository/stable", "available")
	front := frontOf(t, env)
	if front["title"] != "Corner" || front["color"] != "red" || front["version"] != "1.0.0" {
		t.Errorf("front: %v", front)
	}
	has(t, in(0, "list", "--outdated"), "shop.example.com", "1.0.0", "2.0.0")
	// Columns are as wide as the packages of other tests make them.
	has(t, strings.Join(strings.Fields(in(0, "list")), " "), "shop.example.com 1.0.0 available")
	has(t, in(0, "plan", "package/shop", "--version", "2.0.0"), "shop 1.0.0 → shop 2.0.0", `"1.0.0" → "2.0.0"`, "Plan: 1 to change")
	has(t, in(0, "upgrade", "shop", "--version", ">=1, <2"), "1.0.0 → shop.example.com >=1, <2", "shop 1.1.0, revision 2")
	if v := frontOf(t, env)["version"]; v != "1.1.0" {
		t.Errorf("after the upgrade: %s", v)
	}
	has(t, in(0, "upgrade", "shop"), "is already at 1.1.0, the highest version that it allows")

	// The same package, selected by the API that it provides.
	require.NoError(t, env.Client.Patch(t.Context(), &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "catalogue", Name: "shop"}}, client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"packageRef":{"name":null,"version":">=1.0, <2","api":{"apiVersion":"shop.example.com/v1","kind":"Shop"}}}}`))))
	harness.Eventually(t, harness.Patience, "the package to be chosen by its API", func(ctx context.Context) error {
		pkg := &corev1alpha1.Package{}
		err := env.Client.Get(ctx, client.ObjectKey{Namespace: "catalogue", Name: "shop"}, pkg)
		if last := pkg.Status.LastAttempted; err == nil && (last == nil || last.API == nil) {
			err = errors.New("it is not")
		}
		return err
	})
	has(t, in(0, "upgrade", "shop", "--version", ">=1, <2"), "what provides shop.example.com/v1 Shop >=1.0, <2 → what provides shop.example.com/v1 Shop >=1, <2", "shop 1.1.0, revision 2")
	has(t, in(0, "status", "shop"), "what provides shop.example.com/v1 Shop >=1, <2", "PackageRepository/stable", "available")
	has(t, in(0, "list", "--outdated"), "shop.example.com", "1.1.0", "2.0.0")

	// A new version within the constraint is followed, one outside of it is not.
	offer("1.2.0")
	in(0, "repo", "update", "stable")
	harness.Eventually(t, harness.Patience, "the new version to be installed", func(context.Context) error {
		if v := frontOf(t, env)["version"]; v != "1.2.0" {
			return fmt.Errorf("it is %s", v)
		}
		// The status also reports the resolved version.
		if r := env.Package(t, "catalogue", "shop").PackageStatus().Resolved; r == nil || r.Version != "1.2.0" {
			return fmt.Errorf("reported is %+v", r)
		}
		return nil
	})
	has(t, in(1, "upgrade", "shop", "--version", "1.0.0"), "1.0.0  is lower than 1.2.0, which was chosen before", "--allow-downgrade")

	// The file only contains the colour. That removes the title, because a file replaces all
	// values.
	require.NoError(t, os.WriteFile(values, []byte("title: Corner\ncolor: blue\n"), 0o600))
	has(t, in(0, "upgrade", "shop", "--values", values), "changed: values", "available")
	if color := frontOf(t, env)["color"]; color != "blue" {
		t.Errorf("after the change of values: %s", color)
	}
	has(t, in(0, "pause", "shop", "-m", "holidays"), "is paused")
	has(t, in(0, "unpause", "shop"), "is resumed")

	// If the repository is deleted, the package keeps its version, and its values can change.
	has(t, in(0, "repo", "delete", "stable"), "is deleted")
	harness.Eventually(t, harness.Patience, "the offers to be withdrawn", func(context.Context) error {
		if got := run(t, env, "upgrade", "shop", "-n", "catalogue"); got.code != 1 || !strings.Contains(got.err, "no repository offers shop.example.com") {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	require.NoError(t, os.WriteFile(values, []byte("title: Corner\ncolor: red\n"), 0o600))
	has(t, in(0, "plan", "package/shop", "--values", values), "no repository offers", `"blue" → "red"`)
	has(t, in(0, "upgrade", "shop", "--values", values), "changed: values", "is available: shop 1.2.0", "note: shop.example.com, chosen for shop.example.com/v1 Shop: no repository offers")
	if color := frontOf(t, env)["color"]; color != "red" {
		t.Errorf("after a change of values of a withdrawn version: %s", color)
	}
	has(t, in(0, "delete", "shop"), "is deleted")
	var left corev1.ConfigMap
	harness.Eventually(t, harness.Patience, "the values to be deleted with the package", func(ctx context.Context) error {
		err := env.Client.Get(ctx, client.ObjectKey{Namespace: "catalogue", Name: "shop-values"}, &left)
		if err == nil {
			return errors.New("they are there")
		}
		return client.IgnoreNotFound(err)
	})
}

func frontOf(t *testing.T, env *harness.Env) map[string]string {
	t.Helper()
	var front corev1.ConfigMap
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKey{Namespace: "catalogue", Name: "front"}, &front))
	return front.Data
}
