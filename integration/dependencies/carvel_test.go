package dependencies_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// carvelRepository has a Package without a template, and two of plain manifests.
const carvelRepository = `apiVersion: data.packaging.carvel.dev/v1alpha1
kind: Package
metadata: {name: bundle.example.com.1.0.0}
spec:
  refName: bundle.example.com
  version: 1.0.0
  dependencies:
  - {name: db, packageRef: {refName: db.example.com, versionSelection: {constraints: '>=1.0.0'}}}
  - {name: maps, gvk: {apiVersion: v1, kind: ConfigMap}}
---
apiVersion: data.packaging.carvel.dev/v1alpha1
kind: Package
metadata: {name: db.example.com.1.1.0}
spec:
  refName: db.example.com
  version: 1.1.0
  dependencies:
  - {name: log, packageRef: {refName: log.example.com}}
  template:
    spec:
      fetch:
      - inline: {paths: {a.yaml: '{apiVersion: v1, kind: ConfigMap, metadata: {name: db}}'}}
      template: []
      deploy:
      - kapp: {}
---
apiVersion: data.packaging.carvel.dev/v1alpha1
kind: Package
metadata: {name: log.example.com.2.0.0}
spec:
  refName: log.example.com
  version: 2.0.0
  template:
    spec:
      fetch:
      - inline: {paths: {a.yaml: '{apiVersion: v1, kind: ConfigMap, metadata: {name: log}}'}}
      deploy:
      - kapp: {}
`

// Packages of kapp-controller with dependencies as proposed for it are installed with these. One without a template has
// no objects, and is available when they are.
func TestCarvelPackages(t *testing.T) {
	ns := env.TestNamespace(t)
	repo := &corev1alpha1.PackageRepository{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "carvel"}}
	repo.Spec.Source.Inline = &corev1alpha1.RepositoryInlineSource{Files: map[string]string{"packages.yaml": carvelRepository}}
	env.Create(t, repo)
	from := env.Journal(t)
	env.Create(t, wish(ns, "bundle", "bundle.example.com", ""))
	pkg := awaitVersion(t, ns, "bundle", "1.0.0")
	got := []string{dependency(pkg, "db"), dependency(pkg, "maps"), dependency(awaitVersion(t, ns, "bundle-db", "1.1.0"), "log")}
	want := []string{"InstalledByThisPackage 1.1.0 Package/bundle-db", "ApiServed", "InstalledByThisPackage 2.0.0 Package/bundle-db-log"}
	require.Equal(t, want, got)
	require.Equal(t, []string{"bundle-db-log=2.0.0", "bundle-db=1.1.0", "bundle=1.0.0"}, packages(t, ns))
	env.Settle(t, ns)
	require.Equal(t, []string{"log", "db"}, created(from.Rest(t, ns), "configmaps"), "the order of objects")
}
