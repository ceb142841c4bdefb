package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
)

// A Helm chart, as helm template prints it, becomes a package that validates,
// installs, and says truthfully whether it works.
func TestKickstartedChart(t *testing.T) {
	env := harness.Shared(t)
	folder := filepath.Join(t.TempDir(), "shop")
	ok(t, env, "kickstart", folder, "-f", "testdata/shop-rendered.yaml", "-p", "replicas,resources,images")
	for _, image := range []string{"shop/web:2.3.1", "shop/agent:v0.9.0", "library/redis:7.4"} {
		pushImage(t, env.Registry()+"/"+image)
	}
	t.Setenv("PKO_REPOSITORY_HOST", env.Registry())
	ok(t, env, "update", folder, "--insecure-registry", env.Registry())
	ok(t, env, "validate", folder)
	image := env.Registry() + "/kickstarted:v1"
	ok(t, env, "build", folder, "--push", "-t", image, "--insecure-registry", env.Registry())
	installed := ok(t, env, "install", image, "shop", "--cluster")
	if !strings.Contains(installed.out, "clusterpackage shop is available: shop 1.4.0, revision 1") {
		t.Errorf("got %+v", installed)
	}

	// What the probes waited for is so.
	var deployment appsv1.Deployment
	var cache appsv1.StatefulSet
	var agent appsv1.DaemonSet
	var migrate batchv1.Job
	for name, obj := range map[string]client.Object{"main-shop": &deployment, "main-shop-cache": &cache, "main-shop-agent": &agent, "main-shop-migrate": &migrate} {
		if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: "store", Name: name}, obj); err != nil {
			t.Fatal(err)
		}
	}
	switch {
	case deployment.Status.AvailableReplicas < 1:
		t.Errorf("Deployment: %+v", deployment.Status)
	case cache.Status.ReadyReplicas != 2 || cache.Status.UpdatedReplicas != 2:
		t.Errorf("StatefulSet: %+v", cache.Status)
	case agent.Status.NumberAvailable < 1 || agent.Status.NumberAvailable != agent.Status.DesiredNumberScheduled:
		t.Errorf("DaemonSet: %+v", agent.Status)
	case migrate.Status.Succeeded != 1:
		t.Errorf("Job: %+v", migrate.Status)
	}
	if got := cache.Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(got, "index.docker.io/library/redis@sha256:") {
		t.Errorf("the image is not pinned: %s", got)
	}
	tree := ok(t, env, "status", "shop", "--objects")
	for _, line := range []string{"apps/v1, Kind=StatefulSet store/main-shop-cache  Current", "batch/v1, Kind=Job store/main-shop-migrate  Current", "shop.example.com/v1, Kind=Coupon store/welcome  Current"} {
		if !strings.Contains(tree.out, line) {
			t.Errorf("%q is missing in\n%s", line, tree.out)
		}
	}

	// A StatefulSet whose pods cannot run is not taken for one that works.
	config := filepath.Join(t.TempDir(), "config.yaml")
	values := "statefulSets: {mainShopCache: {containers: {redis: {resources: {requests: {cpu: '5000'}}}}}}\n"
	if err := os.WriteFile(config, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	ok(t, env, "install", image, "shop", "--cluster", "--config", config, "--wait=false")
	awaitText(t, env, "", "shop", "main-shop-cache: not all replicas are")
	broken := run(t, env, "install", image, "shop", "--cluster", "--config", config, "--timeout", "1s")
	if broken.code != 1 || !strings.Contains(broken.err, "phase deploy waits for:\n  StatefulSet store/main-shop-cache: not all replicas are") {
		t.Errorf("got %+v", broken)
	}
	ok(t, env, "delete", "shop")
}
