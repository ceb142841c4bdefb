package cli_test

import (
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/imagetest"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/signed"
)

// A repository with a package, two dependencies and six images, all of them signed, is copied to
// another registry. While the first registry is off, the package is installed from the copy under
// the original names: with a flag of the manager, and with an ImageConfig that requires all
// signatures. There must be no connection to the first registry.
func TestBundle(t *testing.T) {
	t.Parallel()
	env := harness.Lend(t)
	var off atomic.Bool
	var asked atomic.Int32
	var mu sync.Mutex
	var requests []string
	content := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if off.Load() {
			mu.Lock()
			defer mu.Unlock()
			requests = append(requests, r.UserAgent()+": "+r.Method+" "+r.URL.Path)
			http.Error(w, "the registry is off", http.StatusBadGateway)
			return
		}
		content.ServeHTTP(w, r)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if off.Load() && state == http.StateNew {
			asked.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	origin := strings.TrimPrefix(server.URL, "http://")
	dir := t.TempDir()

	for _, image := range []string{"web:1", "proxy:1", "db:1", "backup:1", "tool:1"} {
		imagetest.PushRandom(t, origin+"/images/"+image)
	}
	platforms, err := random.Index(64, 1, 2)
	require.NoError(t, err)
	ref, err := name.ParseReference(origin+"/images/cache:1", name.Insecure)
	require.NoError(t, err)
	require.NoError(t, remote.WriteIndex(ref, platforms))

	tool := origin + "/images/tool@" + digestOf(t, origin+"/images/tool:1")
	for pkg, spec := range map[string]string{
		"web":   "  images:\n  - {name: one, image: ORIGIN/images/web:1}\n  - {name: two, image: ORIGIN/images/proxy:1}\n  dependencies:\n  - {name: db, package: {name: db.example.com, version: '*'}}\n  - {name: cache, package: {name: cache.example.com, version: '*'}}\n",
		"db":    "  images:\n  - {name: one, image: ORIGIN/images/db:1}\n  - {name: two, image: ORIGIN/images/backup:1}\n",
		"cache": "  images:\n  - {name: one, image: ORIGIN/images/cache:1}\n",
	} {
		folder := filepath.Join(dir, "packages", pkg)
		require.NoError(t, os.MkdirAll(folder, 0o700))
		files := harness.Files{
			"manifest.yaml":      harness.Manifest(pkg, []string{"deploy"}, "  version: 1.0.0\n  packageName: "+pkg+".example.com\n"+strings.ReplaceAll(spec, "ORIGIN", origin)),
			"images.yaml.gotmpl": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + pkg + "-images\n  annotations: {package-operator.run/phase: deploy}\ndata:\n{{- range $k, $v := .images }}\n  {{ $k }}: {{ $v }}\n{{- end }}\n",
		}
		if pkg == "web" { // one of its images is not in spec.images
			files["web.yaml.gotmpl"] = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  annotations: {package-operator.run/phase: deploy}\nspec:\n  replicas: 0\n  selector: {matchLabels: {app: web}}\n" +
				"  template:\n    metadata: {labels: {app: web}}\n    spec:\n      initContainers: [{name: tool, image: '" + tool + "'}]\n      containers: [{name: one, image: '{{ .images.one }}'}, {name: two, image: '{{ .images.two }}'}]\n"
		}
		for file, text := range files {
			require.NoError(t, os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600))
		}
		ok(t, env, "update", folder)
	}
	ok(t, env, "repository", "build", filepath.Join(dir, "packages"), "--images", origin+"/packages", "--name", "shop", "--push", origin+"/repositories/shop:latest")
	pair, public := signed.NewPair(t), filepath.Join(dir, "release.pub")
	require.NoError(t, os.WriteFile(public, pair.Public, 0o600))
	for _, image := range []string{"packages/web:v1.0.0", "packages/db:v1.0.0", "packages/cache:v1.0.0", "repositories/shop:latest", "images/web:1", "images/proxy:1", "images/db:1", "images/backup:1", "images/cache:1", "images/tool:1"} {
		pair.Sign(t, origin+"/"+image)
	}

	file, again := filepath.Join(dir, "shop.tar"), filepath.Join(dir, "again.tar")
	if got := ok(t, env, "bundle", "save", origin+"/repositories/shop:latest", "-o", file).out; got != "10 images and 10 signatures saved to "+file+"\n" {
		t.Errorf("saved: %s", got)
	}
	ok(t, env, "bundle", "save", origin+"/repositories/shop:latest", "-o", again)
	first, err := os.ReadFile(file)
	require.NoError(t, err)
	second, err := os.ReadFile(again)
	require.NoError(t, err)
	if string(first) != string(second) {
		t.Error("the same content made other bytes")
	}
	server.CloseClientConnections()
	off.Store(true) // from now on, requests to the first registry fail and are counted

	mirror := env.Registry() + "/mirror"
	var loaded struct {
		ImageConfigs string
		Images       []struct{ From, To string }
	}
	require.NoError(t, json.Unmarshal([]byte(ok(t, env, "bundle", "load", file, "--to", mirror, "-o", "json").out), &loaded))
	overrides := origin + "/=" + mirror + "/" + strings.ReplaceAll(origin, ":", "-") + "/"
	for _, image := range loaded.Images {
		if strings.Contains(image.From, "packages/web") {
			ok(t, env, "verify", image.To, "--key", public)
		}
	}

	manager := env.StartManager(t, "--pace=0.1", "--allow-local-sources", "--image-prefix-overrides="+overrides)
	installsFrom(t, env, env.TestNamespace(t), origin, mirror)
	manager.Stop()
	// Requests of the command line are expected, because it does not know the manager's flags.
	if slices.ContainsFunc(requests, func(r string) bool { return !strings.HasPrefix(r, "kubectl-package/") }) {
		t.Errorf("the manager asked the registry that is off: %v", requests)
	}
	asked.Store(0)

	config := &corev1alpha1.ImageConfig{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(loaded.ImageConfigs), config))
	config.Spec.Verification = &corev1alpha1.ImageVerification{
		Images:      []corev1alpha1.VerifiedImages{corev1alpha1.VerifiedImagesPackage, corev1alpha1.VerifiedImagesRepository},
		Authorities: []corev1alpha1.ImageAuthority{{Name: "release", Key: &corev1alpha1.ImageAuthorityKey{PEM: string(pair.Public)}}},
	}
	env.Create(t, config)
	manager = env.StartManager(t, "--pace=0.1")
	const ns = "bundle-verified"
	env.Namespace(t, ns)
	installsFrom(t, env, ns, origin, mirror)
	for _, name := range []string{"web.example.com", "db.example.com", "cache.example.com"} {
		pkgs := &corev1alpha1.PackageList{}
		require.NoError(t, env.Client.List(t.Context(), pkgs, client.InNamespace(ns)))
		found := slices.IndexFunc(pkgs.Items, func(p corev1alpha1.Package) bool {
			return p.Status.Resolved != nil && p.Status.Resolved.CatalogName == name
		})
		if found < 0 {
			t.Fatalf("%s is not installed", name)
		}
		require.NoError(t, harness.HasCondition(&pkgs.Items[found], corev1alpha1.ConditionVerified, metav1.ConditionTrue, corev1alpha1.ReasonVerified, "Signed by the authority release"))
	}
	web := &appsv1.Deployment{}
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "web"}, web))
	pod := web.Spec.Template.Spec
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		if !strings.HasPrefix(c.Image, mirror+"/") {
			t.Errorf("the container %s has the image %s, which is not of the mirror", c.Name, c.Image)
		}
	}
	manager.Stop()
	require.NoError(t, env.Client.Delete(t.Context(), config))
	if n := asked.Load(); n != 0 {
		t.Errorf("%d connections to the registry that is off: %v", n, requests)
	}
}

// installsFrom installs the package of the bundle by its own names.
func installsFrom(t *testing.T, env *harness.Env, ns, origin, mirror string) {
	t.Helper()
	ok(t, env, "repo", "add", "shop", origin+"/repositories/shop:latest", "-n", ns)
	ok(t, env, "install", "web.example.com", "web", "-n", ns, "--timeout", patience)
	var all corev1.ConfigMapList
	require.NoError(t, env.Client.List(t.Context(), &all, client.InNamespace(ns)))
	images := 0
	for i := range all.Items {
		if !strings.HasSuffix(all.Items[i].Name, "-images") {
			continue
		}
		for _, image := range all.Items[i].Data {
			if images++; !strings.HasPrefix(image, mirror+"/") {
				t.Errorf("%s names %s, which is not of the mirror", all.Items[i].Name, image)
			}
		}
	}
	if images != 5 {
		t.Errorf("%d images are used, not five", images)
	}
	// An undo writes this image into the spec.
	var deployments corev1alpha1.ObjectDeploymentList
	require.NoError(t, env.Client.List(t.Context(), &deployments, client.InNamespace(ns)))
	for i := range deployments.Items {
		if image := deployments.Items[i].Annotations[corev1alpha1.PackageSourceImageAnnotation]; !strings.HasPrefix(image, origin+"/packages/") {
			t.Errorf("%s is recorded as of the image %s, which is not of %s", deployments.Items[i].Name, image, origin)
		}
	}
}

func digestOf(t *testing.T, image string) string {
	t.Helper()
	ref, err := name.ParseReference(image, name.Insecure)
	require.NoError(t, err)
	found, err := remote.Head(ref)
	require.NoError(t, err)
	return found.Digest.String()
}
