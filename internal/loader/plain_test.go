package loader_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/test/require"
)

const plainObjects = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: example.com/web}]}}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: web}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: last, annotations: {package-operator.run/phase: own}}}
`

// loadPlain makes a package from plain manifests and loads it as a Package.
func loadPlain(ctx context.Context, files loader.Files) (*loader.Package, error) {
	made, err := loader.Plain("shop.example.com", files, loader.Declared{})
	if err != nil {
		return nil, err
	}
	return loader.Load(ctx, made, loader.Options{Package: manifestsv1alpha1.TemplateContextPackage{
		Metadata: manifestsv1alpha1.TemplateContextObjectMeta{Name: "shop", Namespace: "team"},
	}})
}

// Plain manifests become phases by their kinds, with probes.
func TestPlain(t *testing.T) {
	t.Parallel()
	pkg, err := loadPlain(t.Context(), loader.Files{
		"config/all.yaml": []byte(plainObjects), "README.md": []byte("{"), ".imgpkg/images.yml": []byte("images: []"),
		"more.json": []byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "json"}}`),
	})
	require.NoError(t, err)
	var got []string
	for i, phase := range pkg.Phases {
		for j := range phase.Objects {
			got = append(got, phase.Name+" "+pkg.Sources[i][j].Object)
		}
	}

	want := []string{"rbac v1 ServiceAccount web", "deploy apps/v1 Deployment web", "deploy v1 ConfigMap json", "own v1 ConfigMap last"}
	require.Equal(t, want, got)
	if pkg.Name != "shop.example.com" || len(pkg.Probes) != 1 || pkg.Probes[0].Selector.Kind.Kind != "Deployment" {
		t.Errorf("name %s, probes %+v", pkg.Name, pkg.Probes)
	}
}

// The scopes of plain manifests are known as far as their kinds determine them.
func TestPlainScopes(t *testing.T) {
	t.Parallel()
	object := func(apiVersion, kind string) string {
		return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: a}\n"
	}
	cluster := []corev1alpha1.Scope{corev1alpha1.ScopeCluster}
	for reason, tc := range map[string]struct {
		files map[string]string
		want  []corev1alpha1.Scope
	}{
		"nothing":                    {nil, nil},
		"objects of a namespace":     {map[string]string{"a.yaml": object("v1", "ConfigMap") + "---\n" + object("apps/v1", "Deployment")}, nil},
		"a CustomResourceDefinition": {map[string]string{"a.yaml": object("v1", "ConfigMap") + "---\n" + object("apiextensions.k8s.io/v1", "CustomResourceDefinition")}, cluster},
		"in a list":                  {map[string]string{"a.json": `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}]}`}, cluster},
		"of another project":         {map[string]string{"a.yaml": object("gateway.networking.k8s.io/v1", "GatewayClass")}, cluster},
		"a kind that is not known":   {map[string]string{"a.yaml": object("example.com/v1", "ClusterShop")}, nil},
		"what cannot be read":        {map[string]string{"a.yaml": "a: [", "b.yaml": object("v1", "Namespace")}, cluster},
		"files that are not read":    {map[string]string{"a.txt": object("v1", "Namespace"), ".b/c.yaml": object("v1", "Namespace")}, nil},
		"with a manifest":            {map[string]string{"manifest.yaml": "{}", "a.yaml": object("v1", "Namespace")}, nil},
	} {
		require.Equal(t, tc.want, loader.PlainScopes(tc.files), reason)
	}
}

// The package has the declarations of its repository.
func TestPlainDeclarations(t *testing.T) {
	t.Parallel()
	dependencies := []corev1alpha1.Dependency{
		{Name: "db", Package: &corev1alpha1.DependencyPackage{Name: "db.example.com", VersionSelection: corev1alpha1.VersionSelection{Version: "1.x"}}},
		{Name: "certs", Optional: true, API: &corev1alpha1.DependencyAPI{APIVersion: "cert-manager.io/v1", Kind: "Certificate"}},
	}

	for reason, files := range map[string]loader.Files{"with objects": {"a.yaml": []byte(plainObjects)}, "alone": {}} {
		made, err := loader.Plain("shop.example.com", files, loader.Declared{Dependencies: dependencies, UniqueInScope: corev1alpha1.UniqueScopeNamespace})
		require.NoError(t, err)
		pkg, err := loader.Load(t.Context(), made, loader.Options{Package: manifestsv1alpha1.TemplateContextPackage{
			Metadata: manifestsv1alpha1.TemplateContextObjectMeta{Name: "shop", Namespace: "team"},
		}})
		require.NoError(t, err)
		if diff := cmp.Diff(dependencies, pkg.Dependencies); diff != "" || pkg.UniqueInScope != corev1alpha1.UniqueScopeNamespace || len(pkg.Warnings) > 0 {
			t.Errorf("%s: %+v: %s", reason, pkg, diff)
		}
	}
}

// Invalid plain manifests are refused with the file.
func TestPlainRefuses(t *testing.T) {
	t.Parallel()
	for reason, files := range map[string]loader.Files{
		"there is no object":            {"README.md": []byte("text")},
		"a.yaml":                        {"a.yaml": []byte("a: [")},
		"the document is not an object": {"a.yaml": []byte("values: {a: 1}")},
	} {
		_, err := loadPlain(t.Context(), files)
		var wrong violation.Violations
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}
