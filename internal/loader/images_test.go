package loader

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

func workload(apiVersion, kind, name, spec string) string {
	return strings.Replace(configMap(name, "first", "spec: "+spec+"\n"), "v1\nkind: ConfigMap", apiVersion+"\nkind: "+kind, 1)
}

func lockText(images ...string) string {
	return "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifestLock\nspec:\n  images: [" + strings.Join(images, ", ") + "]\n"
}

func digestOf(letter string) string { return "sha256:" + strings.Repeat(letter, 64) }

func locked(name, image, letter string) string {
	return fmt.Sprintf("{name: %s, image: %q, digest: %q}", name, image, digestOf(letter))
}

// The images of a package are those that its objects name, as the API server gets them.
func TestImages(t *testing.T) {
	t.Parallel()
	files := pkg(
		"manifest.yaml", plain+"  images: [{name: web, image: 'nginx:1.2'}, {name: agent, image: quay.io/x/agent:v1}, {name: sum, image: quay.io/x/sum}, {name: escaped, image: quay.io/x/escaped}, {name: copied, image: quay.io/x/copied}, {name: unused, image: quay.io/x/unused}]\n",
		"manifest.lock.yaml", lockText(locked("web", "nginx:1.2", "a"), locked("agent", "quay.io/x/agent:v1", "b"), locked("sum", "quay.io/x/sum", "c"), locked("escaped", "quay.io/x/escaped", "e"),
			locked("copied", "quay.io/x/copied", "f"), locked("unused", "quay.io/x/unused", "d")),
		"web.yaml.gotmpl", workload("apps/v1", "Deployment", "web", "{template: {spec: {initContainers: [{image: 'busybox:1'}], containers: [{image: '{{.images.web}}', env: [{name: RELATED_IMAGE_AGENT, value: '{{.images.agent}}'}]}, {image: 'example.com/by@"+digestOf("1")+"'}]}}}"),
		"again.yaml.gotmpl", workload("apps/v1", "DaemonSet", "again", "{template: {spec: {containers: [{image: '{{.images.web}}', args: ['--sum={{.images.sum}},x']}, {image: 'nginx@"+digestOf("a")+"'}]}}}"),
		"cron.yaml", workload("batch/v1", "CronJob", "cron", "{jobTemplate: {spec: {template: {spec: {containers: [{image: 'cron:latest'}]}}}}}"),
		"pod.yaml", workload("v1", "Pod", "pod", "{containers: [{image: 'pod:1'}, {name: none}], volumes: [{image: {reference: 'quay.io/x/models:v2'}}, {name: other}]}"),
		"odd.yaml", workload("example.com/v1", "Odd", "odd", "{template: {spec: {containers: [{image: [a]}, {image: ''}, text, {image: '%not a reference%'}, {image: 'short@sha256:abc'}]}}}"),
		"config.yaml.gotmpl", configMap("config", "first", "data:\n  images: |\n    more:\n    {{.images.escaped}}\n    docker://{{.images.copied}}\n"),
	)
	p, err := Load(context.Background(), files, namespaced(func(o *Options) {
		o.ImageOverride = func(s string) string { return strings.Replace(s, "quay.io/", "mirror.example:5000/", 1) }
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := []corev1alpha1.PackageImage{
		{Image: "%not a reference%"},
		{Image: "busybox:1"},
		{Image: "cron:latest"},
		{Image: "example.com/by", Digest: digestOf("1")},
		{Name: "agent", Image: "mirror.example:5000/x/agent:v1", Digest: digestOf("b")},
		{Name: "copied", Image: "mirror.example:5000/x/copied", Digest: digestOf("f")},
		{Name: "escaped", Image: "mirror.example:5000/x/escaped", Digest: digestOf("e")},
		{Name: "sum", Image: "mirror.example:5000/x/sum", Digest: digestOf("c")},
		{Image: "nginx", Digest: digestOf("a")},
		{Name: "web", Image: "nginx:1.2", Digest: digestOf("a")},
		{Image: "pod:1"},
		{Image: "quay.io/x/models:v2"},
		{Image: "short@sha256:abc"},
	}
	if diff := cmp.Diff(want, p.Images); diff != "" || p.OmittedImages != 0 {
		t.Errorf("%d are left out: %s", p.OmittedImages, diff)
	}
}

// Policies are about images as they are written in the lock, or in the object; each is named once, with what uses it.
func TestWorkloadImages(t *testing.T) {
	t.Parallel()
	files := pkg(
		"manifest.yaml", plain+"  images: [{name: web, image: 'quay.io/x/web:v1'}, {name: agent, image: quay.io/x/agent:v1}]\n",
		"manifest.lock.yaml", lockText(locked("web", "quay.io/x/web:v1", "a"), locked("agent", "quay.io/x/agent:v1", "b")),
		"web.yaml.gotmpl", workload("apps/v1", "Deployment", "web", "{template: {spec: {initContainers: [{name: init, image: 'quay.io/x/init:v1'}], containers: [{name: web, image: '{{.images.web}}', env: [{name: AGENT, value: '{{.images.agent}}'}]}, {name: other, image: 'ghcr.io/other:v1'}]}}}"),
		"again.yaml.gotmpl", workload("apps/v1", "DaemonSet", "again", "{template: {spec: {containers: [{name: again, image: '{{.images.web}}'}], volumes: [{name: models, image: {reference: 'quay.io/x/models@"+digestOf("c")+"'}}]}}}"),
	)
	load := func(policed func(string) (Policed, bool)) []WorkloadImage {
		p, err := Load(context.Background(), files, namespaced(func(o *Options) {
			o.ImageOverride = func(s string) string { return strings.Replace(s, "quay.io/", "mirror.example:5000/", 1) }
			o.Policed = policed
		}))
		if err != nil {
			t.Fatal(err)
		}
		return p.Workloads
	}
	enforced := Policed{Enforced: true, Pinned: true}
	how := func(image string) Policed {
		pinned := strings.Contains(image, "@")
		return Policed{Enforced: pinned, Pinned: pinned}
	}
	want := []WorkloadImage{
		{Image: "quay.io/x/web:v1@" + digestOf("a"), By: "container again of DaemonSet again", Policed: enforced},
		{Image: "quay.io/x/models@" + digestOf("c"), By: "volume models of DaemonSet again", Policed: enforced},
		{Image: "quay.io/x/init:v1", By: "init container init of Deployment web"},
		{Image: "quay.io/x/agent:v1@" + digestOf("b"), By: "Deployment web", Policed: enforced},
	}
	if diff := cmp.Diff(want, load(func(image string) (Policed, bool) { return how(image), strings.HasPrefix(image, "quay.io/") })); diff != "" {
		t.Error(diff)
	}
	if none := load(nil); none != nil {
		t.Errorf("without policies: %v", none)
	}
	files["many.yaml"] = []byte(workload("v1", "Pod", "many", "{containers: ["+strings.Repeat("{image: 'quay.io/N'}, ", 200)+"]}"))
	for i := range 200 {
		files["many.yaml"] = []byte(strings.Replace(string(files["many.yaml"]), "quay.io/N", fmt.Sprintf("quay.io/n%d", i), 1))
	}
	// However many others there are before them, the enforced ones are among them.
	if many := load(func(image string) (Policed, bool) { return how(image), true }); len(many) != limits.WorkloadImages+1+3 {
		t.Errorf("%d", len(many))
	}
}

// A status has room for some images; the others are counted.
func TestManyImages(t *testing.T) {
	t.Parallel()
	for name, length := range map[string]int{"many": 5, "long": 500} {
		var containers []string
		for i := range 90 {
			containers = append(containers, fmt.Sprintf("{image: 'a/%s%02d'}", strings.Repeat("x", length), i))
		}
		containers = append(containers, "{image: "+strings.Repeat("y", limits.ReferenceBytes+1)+"}")
		files := pkg("manifest.yaml", plain, "pod.yaml", workload("v1", "Pod", "pod", "{containers: ["+strings.Join(containers, ", ")+"]}"))
		p, err := Load(context.Background(), files, namespaced())
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(p.Images)
		if len(p.Images)+p.OmittedImages != 91 || len(p.Images) > limits.StatusImages || len(text) > limits.StatusImagesBytes+1 || len(p.Images) != limits.StatusImages && len(text) < limits.StatusImagesBytes*9/10 {
			t.Errorf("%s: %d images in %d bytes, %d left out", name, len(p.Images), len(text), p.OmittedImages)
		}
	}
}

// Values of Secrets are in no image, also where objects may hold them.
func TestImagesHoldNoSecrets(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", plain+anyConfig,
		"pod.yaml.gotmpl", strings.Replace(workload("v1", "Pod", "pod", "{containers: [{image: 'a/{{.config.password}}:v1'}, {image: '{{.config.short}}'}, {image: 'fine:v1'}]}"),
			"first\n", "first\n    package-operator.run/expose-secret-values: 'true'\n", 1),
		"secret.yaml.gotmpl", secretObject("spec: {template: {spec: {containers: [{image: 'in-a-secret'}]}}}"))
	p, err := Load(context.Background(), files, withSecret())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.Images, []corev1alpha1.PackageImage{{Image: "fine:v1"}}) || p.OmittedImages != 2 {
		t.Errorf("%v, %d left out", p.Images, p.OmittedImages)
	}
	policed := withSecret()
	policed.Policed = func(string) (Policed, bool) { return Policed{}, true }
	if p, err = Load(context.Background(), files, policed); err != nil {
		t.Fatal(err)
	}
	for _, w := range p.Workloads {
		if w.Image != "" && w.Image != "fine:v1" {
			t.Errorf("%+v", w)
		}
	}
}
