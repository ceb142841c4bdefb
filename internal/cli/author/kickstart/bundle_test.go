package kickstart_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/cli/author/kickstart"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/require"
)

const csv = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: cache-operator.v1.2.0
  annotations: {operatorframework.io/suggested-namespace: cache-system}
spec:
  version: 1.2.0
  installModes: [{type: OwnNamespace, supported: true}, {type: AllNamespaces, supported: true}]
  webhookdefinitions: [{type: ValidatingAdmissionWebhook, generateName: v.example.com}]
  install:
    strategy: deployment
    spec:
      clusterPermissions: [{serviceAccountName: cache-operator, rules: [{apiGroups: [cache.example.com], resources: [caches], verbs: ['*']}]}]
      permissions: [{serviceAccountName: cache-operator, rules: [{apiGroups: [''], resources: [configmaps], verbs: [get]}]}]
      deployments:
      - name: cache-operator
        label: {app: cache-operator}
        spec:
          replicas: 1
          selector: {matchLabels: {app: cache-operator}}
          template:
            metadata: {labels: {app: cache-operator}}
            spec:
              serviceAccountName: cache-operator
              containers: [{name: manager, image: registry.example.com/cache-operator:v1.2.0}]
`

const bundleCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: caches.cache.example.com}
spec:
  group: cache.example.com
  names: {kind: Cache, plural: caches}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

func annotations(lines ...string) loader.Files {
	return loader.Files{"annotations.yaml": []byte("annotations:\n  operators.operatorframework.io.bundle.package.v1: cache-operator\n" + strings.Join(lines, ""))}
}

func TestBundle(t *testing.T) {
	t.Parallel()
	manifests := loader.Files{"csv.yaml": []byte(csv), "crd.yaml": []byte(bundleCRD), "README.md": []byte("no object")}
	b, err := kickstart.ReadBundle(manifests, annotations("  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n"), "")
	require.NoError(t, err)
	if b.Name != "cache-operator" || b.Namespace != "cache-system" || len(b.Notes) != 1 || !strings.Contains(b.Notes[0], "the bundle has 1 webhooks") {
		t.Errorf("got %+v", b)
	}
	result, err := kickstart.Make(b.Inputs, kickstart.Options{Name: b.Name, Namespace: b.Namespace})
	require.NoError(t, err)
	objects := objectsOf(t, load(t, result))
	want := []string{
		"crds/CustomResourceDefinition caches.cache.example.com", "deploy/Deployment cache-operator", "namespaces/Namespace cache-system",
		"rbac/ClusterRole cache-operator-cache-operator", "rbac/ClusterRoleBinding cache-operator-cache-operator",
		"rbac/Role cache-operator-cache-operator", "rbac/RoleBinding cache-operator-cache-operator", "rbac/ServiceAccount cache-operator",
	}
	require.Equal(t, want, slices.Sorted(maps.Keys(objects)))
	deployment := objects["deploy/Deployment cache-operator"]
	if dig(deployment, "metadata", "namespace") != "cache-system" || dig(deployment, "spec", "template", "metadata", "annotations", "olm.targetNamespaces") != "" {
		t.Errorf("got %v", deployment)
	}
}

func TestBundleRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		manifests, metadata loader.Files
		want                string
	}{
		"no name":        {loader.Files{"csv.yaml": []byte(csv)}, nil, "names no package"},
		"no CSV":         {loader.Files{"crd.yaml": []byte(bundleCRD)}, annotations(), "there is no ClusterServiceVersion in /manifests"},
		"two CSVs":       {loader.Files{"a.yaml": []byte(csv), "b.yaml": []byte(csv)}, annotations(), "two objects of the kind ClusterServiceVersion"},
		"more in a file": {loader.Files{"a.yaml": []byte(csv + "---\n" + bundleCRD)}, annotations(), "other objects in addition to"},
		"other format":   {loader.Files{"csv.yaml": []byte(csv)}, annotations("  operators.operatorframework.io.bundle.mediatype.v1: helm\n"), `has the format "helm"`},
		"other strategy": {loader.Files{"csv.yaml": []byte(strings.Replace(csv, "strategy: deployment", "strategy: other", 1))}, annotations(), `install strategy "other"`},
		"no spec":        {loader.Files{"csv.yaml": []byte(csv[:strings.Index(csv, "        label:")])}, annotations(), `the deployment "cache-operator" of the ClusterServiceVersion has no spec`},
		"broken":         {loader.Files{"csv.yaml": []byte("a: [")}, annotations(), "Invalid YAML in manifests/csv.yaml"},
	} {
		if _, err := kickstart.ReadBundle(tc.manifests, tc.metadata, ""); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	own, err := kickstart.ReadBundle(loader.Files{"csv.yaml": []byte(strings.Replace(csv, "{type: AllNamespaces, supported: true}", "{type: AllNamespaces, supported: false}", 1))}, annotations(), "mine")
	if err != nil || own.Namespace != "mine" || !slices.ContainsFunc(own.Notes, func(n string) bool { return strings.HasPrefix(n, "the operator does not support all namespaces") }) {
		t.Errorf("%+v, %v", own, err)
	}
}
