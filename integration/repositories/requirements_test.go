package repositories_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// The dependencies and provided APIs of versions are published as they are in the repository, in
// both forms, even if names and ranges have the maximum length. Fetching them again causes no
// writes.
func TestRequirementsArePublished(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	name := strings.Repeat("a.", limits.AvailableNameBytes/2-1) + "bc"
	group := strings.Repeat("g.", 126) + "g"
	label := strings.Repeat("d", 63)
	dependencies := []corev1alpha1.Dependency{
		{Name: label, Optional: true, Package: &corev1alpha1.DependencyPackage{Name: name, VersionSelection: corev1alpha1.VersionSelection{
			Version: ">=1" + strings.Repeat(" ", limits.TemplatePatternBytes-3), Prereleases: &corev1alpha1.Prereleases{Identifiers: []string{strings.Repeat("r", 64)}},
		}}},
		{Name: "api", API: &corev1alpha1.DependencyAPI{APIVersion: group + "/" + strings.Repeat("v", 63), Kind: strings.Repeat("K", 63), FieldPaths: []string{"spec.a"}}},
	}
	text := strings.Replace(entry("shop", "1.0.0", ""), "data:\n", "data:\n  scopes: [Cluster]\n  constraints: [{uniqueInScope: {}}]\n  provides: [{apiVersion: example.com/v1, kind: Shop}]\n"+
		"  dependencies:\n  - {name: "+label+", optional: true, package: {name: "+name+", version: '"+dependencies[0].Package.Version+"', prereleases: {identifiers: ["+strings.Repeat("r", 64)+"]}}}\n"+
		"  - {name: api, api: {apiVersion: "+dependencies[1].API.APIVersion+", kind: "+dependencies[1].API.Kind+", fieldPaths: [spec.a]}}\n", 1)
	source := inline()
	source.Inline.Files = map[string]string{"entry.yaml": text, "carvel.yaml": carvelBundle}
	r := newRepository(ns, "stable", source)
	env.Create(t, r)
	awaitReady(t, r)
	awaitOffers(t, ns, "shop@1.0.0=stable", "bundle.example.com@1.0.0=stable")
	v := available(t, ns, "shop").Spec.Versions[0]
	if diff := cmp.Diff(dependencies, v.Dependencies); diff != "" || len(v.Provides) != 1 || v.UniqueInScope != corev1alpha1.UniqueScopeCluster || len(v.Scopes) != 1 {
		t.Errorf("%+v: %s", v, diff)
	}
	v = available(t, ns, "bundle.example.com").Spec.Versions[0]
	want := []corev1alpha1.Dependency{
		{Name: "shop", Package: &corev1alpha1.DependencyPackage{Name: "shop.example.com", VersionSelection: corev1alpha1.VersionSelection{Version: ">=1.0.0"}}},
	}
	if diff := cmp.Diff(want, v.Dependencies); diff != "" || len(v.Files) == 0 || v.UniqueInScope != corev1alpha1.UniqueScopeNamespace {
		t.Errorf("%+v: %s", v, diff)
	}
	env.Settle(t, ns)
	from, began := env.Journal(t), time.Now()
	retry(t, r, "again")
	awaitHandled(t, r, "again")
	require.Equal(t, map[string]int{"update packagerepositories/status": 1}, tally(began, from.Rest(t, ns)), "requests when all is read again")
}

const carvelBundle = `apiVersion: data.packaging.carvel.dev/v1alpha1
kind: Package
metadata: {name: bundle.example.com.1.0.0}
spec:
  refName: bundle.example.com
  version: 1.0.0
  installationType: onePerNamespace
  dependencies:
  - {name: shop, packageRef: {refName: shop.example.com, versionSelection: {constraints: '>=1.0.0'}}}
`
