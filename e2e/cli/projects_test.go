package cli_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
)

// project is an input of kickstart with its next release.
type project struct {
	name string
	// release contains replacements in the input: old, new, …
	release []string
	// edit is a file of the package, followed by a replacement that its author makes.
	edit []string
	// broken is a file, and container a text in one of its containers. The test makes that
	// container too large for any node. Both are empty if the project has no workload.
	broken, container string
	// quick projects are part of every run.
	quick bool
}

var projects = []project{
	{
		name: "ingress", quick: true, release: []string{"controller:v1.12.0", "controller:v1.12.1", "certgen:v1.5.0", "certgen:v1.5.1"},
		edit:   []string{"deploy/ingress-nginx-controller.deployment.yaml", "  replicas: 1\n", "  replicas: 2 # for the load\n"},
		broken: "deploy/ingress-nginx-controller.deployment.yaml", container: "            cpu: 100m",
	},
	{
		name: "loadbalancer", release: []string{"controller:v0.14.0", "controller:v0.14.1"},
		edit:   []string{"deploy/controller.deployment.yaml", "  revisionHistoryLimit: 3\n", "  revisionHistoryLimit: 2\n"},
		broken: "deploy/controller.deployment.yaml", container: "        image: registry.example.com/metallb/controller:v0.14.1",
	},
	{
		name: "definitions", release: []string{"bundle-version: v1.2.0", "bundle-version: v1.3.0", "maxItems: 16", "maxItems: 32"},
		edit: []string{"admission/safe-upgrades.routes.example.com.validatingadmissionpolicybinding.yaml", "  - Deny\n", "  - Deny\n  - Audit\n"},
	},
	{
		name: "applications", release: []string{"argocd:v2.13.0", "argocd:v2.13.1"},
		edit:   []string{"deploy/argocd-cm.configmap.yaml", "kind: ConfigMap\n", "kind: ConfigMap\ndata:\n  server.insecure: \"true\"\n"},
		broken: "deploy/argocd-server.deployment.yaml", container: "        image: registry.example.com/argocd:v2.13.1",
	},
	{
		name: "certificates", release: []string{"cainjector:v1", "cainjector:v2", "webhook:v1", "webhook:v2"},
		edit:   []string{"deploy/certificates-cainjector.deployment.yaml", "      - name: cainjector\n", "      - name: cainjector\n        args: [--v=2]\n"},
		broken: "deploy/certificates-webhook.deployment.yaml", container: "        image: registry.example.com/certificates/webhook:v2",
	},
	{
		name: "monitoring", release: []string{"prometheus-operator:v0.80.0", "prometheus-operator:v0.81.0", "prometheus:v3.1.0", "prometheus:v3.2.0"},
		edit:   []string{"resources/k8s.prometheus.yaml", "  replicas: 2\n", "  replicas: 1\n"},
		broken: "dependents/prometheus-adapter.deployment.yaml", container: "        image: registry.example.com/prometheus-adapter:v0.12.0",
	},
}

// Published projects are kickstarted, edited, installed, upgraded to the next release with the same
// edit, rolled back, broken and deleted. The account only has the rights that rbac prints. If one
// of them is missing, no object is written, and the status names the right. A right that a role
// grants is only missed in the role's phase.
func TestProjects(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	for _, p := range projects {
		if !p.quick && !harness.Deep() {
			continue
		}
		t.Run(p.name, func(t *testing.T) { p.live(t, env) })
	}
}

func (p project) live(t *testing.T, env *harness.Env) {
	input, err := os.ReadFile(filepath.Join("../../internal/cli/author/kickstart/testdata/projects", p.name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	folder, objects := filepath.Join(dir, p.name), filepath.Join(dir, "release.yaml")
	write := func(file, text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replace := func(file, from, to string) {
		data, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil || !strings.Contains(string(data), from) {
			t.Fatalf("%v: %q is not in\n%s", err, from, data)
		}
		write(filepath.Join(folder, file), strings.Replace(string(data), from, to, 1))
	}
	do := func(args ...string) string {
		r := ok(t, env, args...)
		return r.out + r.err
	}
	build := func(tag string) string {
		image := env.Registry() + "/" + p.name + ":" + tag
		ok(t, env, "build", folder, "--push", "-t", image)
		return image
	}
	if p.name == "monitoring" {
		stop := operate(t, env)
		defer stop()
	}

	write(objects, string(input))
	do("kickstart", folder, "-f", objects, "--version", "1.0.0", "--keep", "crds", "--recreate", "jobs")
	ok(t, env, "validate", folder)
	ok(t, env, "lint", folder)
	replace(p.edit[0], p.edit[1], p.edit[2])
	first := build("v1")
	do("plan", first, p.name, "--cluster")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: p.name}}
	env.Create(t, account)
	p.lacking(t, env, first)
	grant(t, env, first, p.name, "--cluster", "--account", p.name)
	do("install", first, p.name, "--cluster", "--service-account", p.name, "--timeout", patience)

	write(objects, strings.NewReplacer(p.release...).Replace(string(input)))
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	do("kickstart", folder, "-f", objects, "--version", "1.1.0", "--keep", "crds", "--recreate", "jobs")
	replace(p.edit[0], p.edit[1], p.edit[2])
	second := build("v2")
	do("plan", second, p.name, "--cluster")
	grant(t, env, second, p.name, "--cluster")
	if got := do("install", second, p.name, "--cluster", "--timeout", patience); !strings.Contains(got, p.name+" 1.1.0, revision 2") {
		t.Errorf("got %s", got)
	}
	do("rollout", "undo", "clusterpackage/"+p.name, "--yes")
	if p.broken != "" {
		p.breaks(t, env, replace, build)
	}
	do("delete", "clusterpackage/"+p.name, "--yes")
	removeKept(t, env, string(input))
}

// grant applies the roles that rbac prints.
func grant(t *testing.T, env *harness.Env, args ...string) {
	t.Helper()
	for _, u := range printed(t, env, args...) {
		if err := env.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("admin"), client.ForceOwnership); err != nil {
			t.Fatalf("%v: %v", err, u.Object)
		}
	}
}

// printed are the roles and bindings that rbac prints.
func printed(t *testing.T, env *harness.Env, args ...string) (all []*unstructured.Unstructured) {
	t.Helper()
	ok(t, env, append([]string{"rbac", "-o", "json"}, args...)...)
	text := ok(t, env, append([]string{"rbac"}, args...)...).out
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		all = append(all, u)
	}
}

// breaks upgrades to a container that fits on no node, which is not available, and rolls
// back.
func (p project) breaks(t *testing.T, env *harness.Env, replace func(file, from, to string), build func(string) string) {
	impossible := strings.Replace(p.container, "cpu: 100m", `cpu: "5000"`, 1)
	if impossible == p.container {
		impossible += "\n        resources: {requests: {cpu: \"5000\"}}"
	}
	replace(p.broken, p.container, impossible)
	r := run(t, env, "install", build("broken"), p.name, "--cluster", "--timeout", "8s")
	if r.code != 1 || strings.Contains(r.out+r.err, " is available: ") {
		t.Errorf("got %+v", r)
	}
	ok(t, env, "rollout", "undo", "clusterpackage/"+p.name, "--yes")
}

// operate sets Available of resources, as the operator of the monitoring project does.
func operate(t *testing.T, env *harness.Env) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ticker := time.NewTicker(200 * time.Millisecond); ctx.Err() == nil; {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(schema.GroupVersionKind{Group: "monitoring.example.com", Version: "v1", Kind: "PrometheusList"})
			_ = env.Client.List(ctx, list)
			for i := range list.Items {
				patch := client.RawPatch(types.MergePatchType, []byte(`{"status": {"conditions": [{"type": "Available", "status": "True"}]}}`))
				_ = env.Client.Status().Patch(ctx, &list.Items[i], patch)
			}
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	}()
	return func() { cancel(); <-done }
}

// removeKept deletes the CRDs of a project, which outlived its package.
func removeKept(t *testing.T, env *harness.Env, project string) {
	t.Helper()
	var all apiextensionsv1.CustomResourceDefinitionList
	if err := env.Client.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		if strings.Contains(project, "name: "+all.Items[i].Name) {
			if err := env.Client.Delete(t.Context(), &all.Items[i], client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				t.Error(err)
			}
		}
	}
}
