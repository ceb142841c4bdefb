package cli

import (
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Every command refuses a package in a scope that it does not allow, names the flag, and
// creates nothing.
func TestWrongScope(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	for scope, tc := range map[string]struct {
		scope corev1alpha1.Scope
		flags []string
		want  string
	}{
		"Cluster":    {corev1alpha1.ScopeNamespaced, []string{"-n", "shop"}, " can be installed as a ClusterPackage only: add --cluster\n"},
		"Namespaced": {corev1alpha1.ScopeCluster, []string{"--cluster"}, " can be installed as a Package only, in a namespace: leave out --cluster\n"},
	} {
		dir := t.TempDir() + "/web"
		args := []string{"init", dir}
		if scope == "Cluster" {
			args = append(args, "--cluster")
		}
		image := host + "/" + strings.ToLower(scope) + ":v1"
		for _, args := range [][]string{args, {"build", dir, "--push", "-t", image}} {
			if got := invoke(t, "", args...); got.code != 0 {
				t.Fatal(got)
			}
		}
		for _, command := range []string{"render", "tree", "explain"} {
			if got := invoke(t, "", append([]string{command, dir}, tc.flags...)...); got != (result{1, "", "Error: " + dir + tc.want}) {
				t.Errorf("%s: %+v", command, got)
			}
		}
		c := fakeCluster(t)
		if got := invokeOn(t, dialTo(c), "", append([]string{"install", image, "web", "--wait=false"}, tc.flags...)...); got != (result{1, "", "Error: " + image + tc.want}) {
			t.Errorf("install: %+v", got)
		}
		if _, err := c.Read(t.Context(), c.Target(tc.scope, "web")); err == nil {
			t.Error("the package was made")
		}
	}
}
