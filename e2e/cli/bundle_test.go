package cli_test

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/testing/require"
	"lockstep.run/lockstep/internal/testing/signed"
)

// A repository with a package, two that it depends on and five images is carried to another registry, and installed from there
// by its own names when the first registry is gone.
func TestBundle(t *testing.T) {
	t.Parallel()
	env := harness.Lend(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	origin := strings.TrimPrefix(server.URL, "http://")
	dir := t.TempDir()

	for _, image := range []string{"web:1", "proxy:1", "db:1", "backup:1"} {
		pushImage(t, origin+"/images/"+image)
	}
	platforms, err := random.Index(64, 1, 2)
	require.NoError(t, err)
	ref, err := name.ParseReference(origin+"/images/cache:1", name.Insecure)
	require.NoError(t, err)
	require.NoError(t, remote.WriteIndex(ref, platforms))

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
		for file, text := range files {
			require.NoError(t, os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600))
		}
		ok(t, env, "update", folder)
	}
	ok(t, env, "repository", "build", filepath.Join(dir, "packages"), "--images", origin+"/packages", "--name", "shop", "--push", origin+"/repositories/shop:latest")
	pair, private, public := signed.NewPair(t), filepath.Join(dir, "release.key"), filepath.Join(dir, "release.pub")
	require.NoError(t, os.WriteFile(private, pair.Private, 0o600))
	require.NoError(t, os.WriteFile(public, pair.Public, 0o600))
	ok(t, env, "sign", origin+"/packages/web:v1.0.0", "--key", private)

	file, again := filepath.Join(dir, "shop.tar"), filepath.Join(dir, "again.tar")
	if got := ok(t, env, "bundle", "save", origin+"/repositories/shop:latest", "-o", file).out; got != "9 images and 1 signature saved to "+file+"\n" {
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
	server.Close() // whatever asks the first registry from now on fails

	mirror := env.Registry() + "/mirror"
	loaded := strings.Split(ok(t, env, "bundle", "load", file, "--to", mirror, "--query", ".imagePrefixOverrides, (.images[] | select(.from | contains(\"packages/web\")) | .to)").out, "\n")
	overrides := loaded[0]
	if want := origin + "/=" + mirror + "/" + strings.ReplaceAll(origin, ":", "-") + "/"; overrides != want {
		t.Fatalf("overrides %q, want %q", overrides, want)
	}
	ok(t, env, "verify", loaded[1], "--key", public)

	env.StartManager(t, "--pace=0.1", "--allow-local-sources", "--image-prefix-overrides="+overrides)
	ns := env.TestNamespace(t)
	ok(t, env, "repo", "add", "shop", origin+"/repositories/shop:latest", "-n", ns)
	ok(t, env, "install", "web.example.com", "web", "-n", ns, "--timeout", "60s")
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
}
