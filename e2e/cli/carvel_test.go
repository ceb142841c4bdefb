package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// pushBundle pushes files as imgpkg does: at the root of an image that is labelled as a bundle. It returns the reference by digest.
func pushBundle(t *testing.T, env *harness.Env, tag string, files map[string]string) string {
	t.Helper()
	content := map[string][]byte{".imgpkg/images.yml": []byte("apiVersion: imgpkg.carvel.dev/v1alpha1\nkind: ImagesLock\n")}
	for path, text := range files {
		content[path] = []byte(text)
	}
	layer, err := crane.Layer(content)
	require.NoError(t, err)
	image, err := mutate.AppendLayers(empty.Image, layer)
	require.NoError(t, err)
	file, err := image.ConfigFile()
	require.NoError(t, err)
	labelled := file.Config.DeepCopy()
	labelled.Labels = map[string]string{"dev.carvel.imgpkg.bundle": "true"}
	image, err = mutate.Config(image, *labelled)
	require.NoError(t, err)
	ref, err := name.NewTag(env.Registry()+"/"+tag, name.Insecure)
	require.NoError(t, err)
	require.NoError(t, remote.Write(ref, image, remote.WithContext(t.Context())))
	digest, err := image.Digest()
	require.NoError(t, err)
	return ref.Context().Digest(digest.String()).Name()
}

// carvelPackage is a Package of data.packaging.carvel.dev with a template.
func carvelPackage(name, version, template string) string {
	return "apiVersion: data.packaging.carvel.dev/v1alpha1\nkind: Package\nmetadata: {name: " + name + "." + version + "}\nspec:\n" +
		"  refName: " + name + "\n  version: " + version + "\n  releaseNotes: New in " + version + ".\n  licenses: [Apache-2.0]\n" +
		"  valuesSchema: {openAPIv3: {type: object, properties: {title: {type: string, default: x}}}}\n" +
		"  template:\n    spec:\n      fetch: [{imgpkgBundle: {image: " + template + "\n      deploy: [{kapp: {}}]\n"
}

// A repository of kapp-controller and the packages installed of it are imported, and work.
func TestImportCarvel(t *testing.T) {
	t.Parallel()
	env, ns := harness.Shared(t), "carvel"
	env.Namespace(t, ns)
	shopImage := env.Push(t, "carvel-shop:1.0.0", shop("1.0.0"))
	locked := "registry.example.com/shop@sha256:" + strings.Repeat("1", 64)
	plain := pushBundle(t, env, "carvel/plain", map[string]string{
		"config/a.yml":       "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\ndata: {image: team/shop:1.0}\n",
		".imgpkg/images.yml": "apiVersion: imgpkg.carvel.dev/v1alpha1\nkind: ImagesLock\nimages:\n- annotations: {kbld.carvel.dev/id: team/shop:1.0}\n  image: " + locked + "\n",
	})
	pushBundle(t, env, "carvel/repository:1.2.0", map[string]string{
		"packages/shop.example.com/metadata.yml": "apiVersion: data.packaging.carvel.dev/v1alpha1\nkind: PackageMetadata\nmetadata: {name: shop.example.com}\n" +
			"spec: {displayName: Corner shop, shortDescription: Sells., providerName: Example, maintainers: [{name: Ann}], categories: [trade]}\n",
		"packages/shop.example.com/1.0.0.yml":  carvelPackage("shop.example.com", "1.0.0", shopImage+"}}]\n      template: []"),
		"packages/shop.example.com/1.1.0.yml":  carvelPackage("shop.example.com", "1.1.0", shopImage+"}}]\n      template: [{ytt: {paths: [config/]}}, {kbld: {}}]"),
		"packages/plain.example.com/0.1.0.yml": strings.Replace(carvelPackage("plain.example.com", "0.1.0", plain+"}}]\n      template: [{kbld: {paths: ['-', .imgpkg/images.yml]}}]"), "{type: object,", "{type: object, nullable: true,", 1),
	})
	input := strings.ReplaceAll(strings.ReplaceAll(`apiVersion: v1
kind: List
items:
- apiVersion: packaging.carvel.dev/v1alpha1
  kind: PackageRepository
  metadata: {name: stable, namespace: NS}
  spec:
    syncPeriod: 1h
    fetch: {imgpkgBundle: {image: REGISTRY/carvel/repository, tagSelection: {semver: {constraints: '>=1.0.0'}}}}
- apiVersion: packaging.carvel.dev/v1alpha1
  kind: PackageInstall
  metadata: {name: shop, namespace: NS}
  spec:
    serviceAccountName: seller
    packageRef: {refName: shop.example.com, versionSelection: {constraints: '>=1.0.0'}}
    values: [{secretRef: {name: shop-config}}]
- apiVersion: packaging.carvel.dev/v1alpha1
  kind: PackageInstall
  metadata: {name: plain, namespace: NS, annotations: {packaging.carvel.dev/ignore-kubernetes-version-selection: ""}}
  spec: {serviceAccountName: seller, packageRef: {refName: plain.example.com, versionSelection: {constraints: 0.1.0}}}
- apiVersion: packaging.carvel.dev/v1alpha1
  kind: PackageInstall
  metadata: {name: overlaid, namespace: NS, annotations: {ext.packaging.carvel.dev/ytt-paths-from-secret-name: overlays}}
  spec: {serviceAccountName: seller, packageRef: {refName: shop.example.com, versionSelection: {constraints: 1.0.0}}}
- {apiVersion: v1, kind: Secret, metadata: {name: shop-config, namespace: NS}, stringData: {values.yaml: "title: Corner"}}
`, "NS", ns), "REGISTRY", env.Registry())
	file := filepath.Join(t.TempDir(), "kapp.yaml")
	require.NoError(t, os.WriteFile(file, []byte(input), 0o600))
	imported := ok(t, env, "import", "carvel", file)
	has(t, imported.err, "PackageRepository carvel/stable", "+ spec.fetch.imgpkgBundle: becomes spec.source.image", "+ spec.values[0]: becomes spec.configFrom: values.yaml of Secret shop-config",
		"+ annotation packaging.carvel.dev/ignore-kubernetes-version-selection: is the same", "- annotation ext.packaging.carvel.dev/ytt-paths-from-secret-name", "of which 1 not carried over")

	// What import prints is applied as it is, beside what the cluster of the import had.
	env.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "shop-config"}, StringData: map[string]string{"values.yaml": "title: Corner"}})
	env.Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "seller"}})
	env.Create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "seller"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "seller"}},
	})
	for _, document := range strings.Split(imported.out, "---\n") {
		var meta metav1.TypeMeta
		if require.NoError(t, yaml.Unmarshal([]byte(document), &meta)); meta.Kind == "" {
			continue
		}
		obj := map[string]client.Object{"Package": &corev1alpha1.Package{}, "PackageRepository": &corev1alpha1.PackageRepository{}}[meta.Kind]
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), obj))
		env.Create(t, obj)
	}
	env.WaitAvailable(t, ns, "shop")
	env.WaitAvailable(t, ns, "plain")
	var front corev1.ConfigMap
	require.NoError(t, env.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "front"}, &front))
	if front.Data["title"] != "Corner" || front.Data["version"] != "1.0.0" {
		t.Errorf("front: %v", front.Data)
	}
	require.NoError(t, env.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "plain"}, &front))
	if front.Data["image"] != locked {
		t.Errorf("the image of the lock of the bundle: %v", front.Data)
	}
	env.WaitCondition(t, ns, "overlaid", corev1alpha1.ConditionPaused, "True")

	has(t, ok(t, env, "repo", "list", "-n", ns).out, "stable", "ready")
	has(t, ok(t, env, "available", "-n", ns).out, "shop.example.com   Corner shop", "1.0.0", "plain.example.com")
	has(t, ok(t, env, "available", "shop.example.com", "-n", ns).out, "Sells.", "Ann", "1.1.0", "cannot be installed: it asks for template.spec.template[0].ytt, which packages do not have here: render it with the tools of kapp-controller, and make a package of the objects by kubectl package kickstart")
	has(t, ok(t, env, "available", "plain.example.com/0.1.0", "-n", ns).out, "Values       not checked: its schema is not one that Kubernetes has: ", "nullable")
	has(t, ok(t, env, "list", "--outdated", "-n", ns).out, "shop.example.com")
	has(t, ok(t, env, "plan", "package/plain", "-n", ns).out, "1 unchanged")
}
