package author_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/signed"
)

// With --as-manager, an image is read from the place that the cluster's ImageConfigs name, after it
// is verified.
func TestInspectAsManager(t *testing.T) {
	t.Parallel()
	host, own := clitest.ServeRegistry(t), signed.NewPair(t)
	dir := clitest.Folder(t, clitest.GoodPackage+"-- job.yaml.gotmpl\napiVersion: v1\nkind: Pod\nmetadata: {name: job, namespace: {{ .package.metadata.namespace | default \"web\" }}, annotations: {package-operator.run/phase: settings}}\nspec: {containers: [{name: job, image: 'origin.example.com/acme/job:v1'}]}\n")
	if got := clitest.Invoke(t, "", "build", dir, "--push", "-t", host+"/team/web:v1"); got.Code != 0 {
		t.Fatalf("build: %+v", got)
	}
	config := &corev1alpha1.ImageConfig{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	config.Spec.MatchImages = []corev1alpha1.ImageMatch{{Prefix: "origin.example.com/acme"}}
	config.Spec.Rewrite = &corev1alpha1.ImageRewrite{Prefix: host + "/team"}
	config.Spec.Verification = &corev1alpha1.ImageVerification{Authorities: []corev1alpha1.ImageAuthority{{Name: "release", Key: &corev1alpha1.ImageAuthorityKey{PEM: string(own.Public)}}}}
	dial := clustertest.DialTo(clustertest.FakeCluster(t, config))
	const ref = "origin.example.com/acme/web:v1"
	if got := clitest.InvokeOn(t, dial, "", "inspect", ref, "--as-manager"); got.Code != 1 || !strings.Contains(got.Err, "NoSignature: the image "+ref+" is not verified") || !strings.Contains(got.Err, "(ImageConfig acme)") {
		t.Errorf("without a signature: %+v", got)
	}
	own.Sign(t, host+"/team/web:v1")
	if got := clitest.InvokeOn(t, dial, "", "inspect", ref, "--as-manager"); got.Code != 0 || !strings.HasPrefix(got.Out, "web 1.2.0\n") {
		t.Errorf("signed: %+v", got)
	}
	if got := clitest.InvokeOn(t, dial, "", "inspect", ref, "--as-manager", "-o", "json", "|jq", ".uses[].image"); got.Code != 0 || got.Out != host+"/team/job:v1\nweb\n" {
		t.Errorf("images: %+v", got)
	}
	if got := clitest.InvokeOn(t, dial, "", "inspect", ref, "--as-manager"); !strings.Contains(got.Out, "\nImages of its objects, as the manager writes them\n") {
		t.Errorf("images as a table: %+v", got)
	}
	if got := clitest.InvokeOn(t, dial, "", "inspect", dir, "--as-manager"); got.Code != 1 || !strings.Contains(got.Err, "--as-manager needs an image, but "+dir+" is a folder") {
		t.Errorf("a folder: %+v", got)
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, clitest.GoodPackage)
	got := clitest.Invoke(t, "", "inspect", dir)
	if got.Code != 0 || !strings.HasPrefix(got.Out, "web 1.2.0\n  Installs as  Package or ClusterPackage\n  Test cases   blue, cluster\n\nPhases\n  1  settings\n     ConfigMap shop/color-blue\n") {
		t.Errorf("got %+v", got)
	}
	for want, args := range map[string][]string{
		"color string red\n":         {"-o", "json", "|jq", `.config[] | "\(.key) \(.type) \(.default)"`},
		"lab\n":                      {"-n", "lab", "-o", "json", "|jq", ".phases[0].objects[0].namespace"},
		"web\n":                      {"--cluster", "-o", "json", "|jq", ".phases[0].objects[0].namespace"},
		"color-red\n":                {"--config-testcase", "cluster", "-o", "json", "|jq", ".phases[0].objects[0].name"},
		"condition Available=True\n": {"-o", "json", "|jq", ".phases[1].objects[0].probes[]"},
	} {
		if got := clitest.Invoke(t, "", append([]string{"inspect", dir}, args...)...); got.Code != 0 || got.Out != want {
			t.Errorf("%q: %+v, want %q", args, got, want)
		}
	}
	for want, args := range map[string][]string{
		"2 problems in ": {clitest.Folder(t, clitest.BadPackage)},
		"arguments invalid: --cluster and --namespace contradict each other": {dir, "--cluster", "-n", "x"},
		`unknown output format "xml"`:                                        {dir, "-o", "xml"},
		"there is no folder ":                                                {dir + "/nope"},
		"--tree and --values only print text":                                {dir, "--tree", "-o", "json"},
	} {
		if got := clitest.Invoke(t, "", append([]string{"inspect"}, args...)...); got.Code != 1 || got.Out != "" || !strings.Contains(got.Err, want) {
			t.Errorf("%q: %+v, want %q", args, got, want)
		}
	}
}

func TestInspectValues(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, clitest.GoodPackage)
	if got := clitest.Invoke(t, "", "inspect", dir, "--values"); got != (clitest.Result{Code: 0, Out: "# string\ncolor: red\n", Err: ""}) {
		t.Errorf("got %+v", got)
	}
	if got := clitest.Invoke(t, "", "inspect", dir, "--values", "--component", "x"); got.Code != 1 || !strings.Contains(got.Err, " has no component x") {
		t.Errorf("got %+v", got)
	}
}
