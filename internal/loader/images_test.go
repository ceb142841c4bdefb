package loader

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/test/require"
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

// The images of a package are the images of its containers and of its lock, in the form for the API
// server.
func TestImages(t *testing.T) {
	t.Parallel()
	files := pkg(
		"manifest.yaml", plain+"  images: [{name: web, image: 'nginx:1.2'}, {name: agent, image: quay.io/x/agent:v1}, {name: sum, image: quay.io/x/sum}, {name: unused, image: quay.io/x/unused}]\n",
		"manifest.lock.yaml", lockText(locked("web", "nginx:1.2", "a"), locked("agent", "quay.io/x/agent:v1", "b"), locked("sum", "quay.io/x/sum", "c"), locked("unused", "quay.io/x/unused", "d")),
		"web.yaml.gotmpl", workload("apps/v1", "Deployment", "web", "{template: {spec: {initContainers: [{image: 'busybox:1'}], containers: [{image: '{{.images.web}}', env: [{name: RELATED_IMAGE_AGENT, value: '{{.images.agent}}'}]}, {image: 'example.com/by@"+digestOf("1")+"'}]}}}"),
		"again.yaml.gotmpl", workload("apps/v1", "DaemonSet", "again", "{template: {spec: {containers: [{image: '{{.images.web}}', args: ['--sum={{.images.sum}},x']}, {image: 'nginx@"+digestOf("a")+"'}]}}}"),
		"cron.yaml", workload("batch/v1", "CronJob", "cron", "{jobTemplate: {spec: {template: {spec: {containers: [{image: 'cron:latest'}]}}}}}"),
		"pod.yaml", workload("v1", "Pod", "pod", "{containers: [{image: 'pod:1'}, {name: none}], volumes: [{image: {reference: 'quay.io/x/models:v2'}}, {name: other}]}"),
		"odd.yaml", workload("example.com/v1", "Odd", "odd", "{template: {spec: {containers: [{image: [a]}, {image: ''}, text, {image: '%not a reference%'}, {image: 'short@sha256:abc'}]}}}"),
	)

	p, err := Load(context.Background(), files, namespaced(func(o *Options) {
		o.ImageOverride = func(s string) string { return strings.Replace(s, "quay.io/", "mirror.example:5000/", 1) }
	}))
	require.NoError(t, err)
	want := []corev1alpha1.PackageImage{
		{Image: "%not a reference%"},
		{Image: "busybox:1"},
		{Image: "cron:latest"},
		{Image: "example.com/by", Digest: digestOf("1")},
		{Name: "agent", Image: "mirror.example:5000/x/agent:v1", Digest: digestOf("b")},
		{Name: "sum", Image: "mirror.example:5000/x/sum", Digest: digestOf("c")},
		{Name: "unused", Image: "mirror.example:5000/x/unused", Digest: digestOf("d")},
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

// Policies apply to images as they are written in the lock or in the object. Each is named once,
// with its user.
func TestRewrittenImages(t *testing.T) {
	t.Parallel()
	files := pkg(
		"manifest.yaml", plain+"  images: [{name: web, image: 'quay.io/x/web:v1'}]\n",
		"manifest.lock.yaml", lockText(locked("web", "quay.io/x/web:v1", "a")),
		"web.yaml.gotmpl", workload("apps/v1", "Deployment", "web", "{image: 'quay.io/x/field:v1', template: {spec: {initContainers: [&a {name: init, image: 'quay.io/x/init:v1'}], containers: [*a, {<<: *a, name: merged}, {name: web, image: '{{.images.web}}', env: [{name: AGENT, value: 'quay.io/x/agent:v1'}]}, {name: same, image: 'quay.io/x/web@"+digestOf("a")+"'}, "+
			"{name: other, image: 'ghcr.io/other:v1'}, {name: chained, image: 'mirror.example:5000/x/direct:v1'}, {name: odd, image: 'quay.io/not a reference'}]}}}"),
		"cron.yaml", workload("batch/v1", "CronJob", "cron", "{jobTemplate: {spec: {template: {spec: {containers: [{image: 'quay.io/x/cron'}]}}}}}"),
		"pod.yaml", workload("v1", "Pod", "pod", "{containers: [{image: 'quay.io/x/pod:v1'}], volumes: [{name: models, image: {reference: 'quay.io/x/models@"+digestOf("c")+"'}}]}"),
		"resource.yaml", workload("example.com/v1", "Database", "db", "{image: 'quay.io/x/db:v1', containers: [{image: 'quay.io/x/db:v1'}]}"),
	)

	set := imagepolicy.NewSet([]imagepolicy.Policy{
		{Name: "quay", Prefixes: []string{"quay.io"}, Rewrite: "mirror.example:5000"},
		{Name: "back", Prefixes: []string{"mirror.example:5000/x"}, Rewrite: "quay.io/x"}, // a circle
		{Name: "itself", Prefixes: []string{"ghcr.io"}, Rewrite: "ghcr.io"},
	}, false, time.Now())

	p, err := Load(context.Background(), files, namespaced(func(o *Options) {
		o.ImageOverride, o.Rewrite = set.Rewrite, set.Rewrite
	}))
	require.NoError(t, err)
	want := []corev1alpha1.PackageImage{
		{Image: "ghcr.io/other:v1"},
		{Image: "mirror.example:5000/x/cron"},
		{Image: "mirror.example:5000/x/init:v1"},
		{Image: "mirror.example:5000/x/models", Digest: digestOf("c")},
		{Image: "mirror.example:5000/x/pod:v1"},
		{Name: "web", Image: "mirror.example:5000/x/web:v1", Digest: digestOf("a")},
		{Image: "quay.io/not a reference"},
		{Image: "quay.io/x/direct:v1"},
	}

	require.Equal(t, want, p.Images)
	objects := ""
	for _, phase := range p.Phases {
		for _, object := range phase.Objects {
			objects += string(object.Object.Raw)
		}
	}

	for text, n := range map[string]int{
		`"quay.io/x/field:v1"`: 1, `"quay.io/x/agent:v1"`: 1, `"quay.io/x/db:v1"`: 2, `"quay.io/x/init:v1"`: 0, `"mirror.example:5000/x/init:v1"`: 3, `"mirror.example:5000/x/web@` + digestOf("a") + `"`: 2, `"mirror.example:5000/x/models@` + digestOf("c") + `"`: 1,
	} {
		require.Equal(t, n, strings.Count(objects, text), text)
	}
}

// Placeholders, images that are never pulled, and images of the lock whose reference a template
// takes apart are not rewritten. Kinds of other groups have their pods where all others have them.
func TestImagesThatAreNotRewritten(t *testing.T) {
	t.Parallel()
	files := pkg(
		"manifest.yaml", plain+"  images: [{name: web, image: 'quay.io/x/web:v1'}, {name: own, image: 'example.com/own:v1'}]\n",
		"manifest.lock.yaml", lockText(locked("web", "quay.io/x/web:v1", "a"), locked("own", "example.com/own:v1", "b")),
		"web.yaml.gotmpl", workload("apps/v1", "Deployment", "web", "{template: {spec: {containers: [{name: istio-proxy, image: auto}, {name: local, image: 'quay.io/x/local:dev', imagePullPolicy: Never}, "+
			"{name: cut, image: '{{ (splitList \"@\" .images.web) | first }}:v2'}, {name: debug, image: 'mirror.example:5000/x/web-debug:v1'}, {name: own, image: '{{ .images.own }}'}], "+
			"volumes: [{name: models, image: {reference: 'quay.io/x/models:v1', pullPolicy: Never}}]}}}"),
		"template.yaml", strings.Replace(workload("v1", "PodTemplate", "pods", "x"), "spec: x", "template: {spec: {containers: [{image: 'quay.io/x/pods:v1'}]}}", 1),
		"pod.yaml", workload("example.com/v1", "Pod", "pod", "{containers: [{image: 'quay.io/x/field:v1'}], template: {spec: {containers: [{image: 'quay.io/x/pod:v1'}]}}}"),
		"cron.yaml", workload("example.com/v1", "CronJob", "cron", "{jobTemplate: {spec: {template: {spec: {containers: [{image: 'quay.io/x/field:v1'}]}}}}}"),
	)

	set := imagepolicy.NewSet([]imagepolicy.Policy{
		{Name: "quay", Prefixes: []string{"quay.io"}, Rewrite: "mirror.example:5000"},
		{Name: "again", Prefixes: []string{"mirror.example:5000"}, Rewrite: "second.example"},
		{Name: "hub", Prefixes: []string{"docker.io"}, Rewrite: "mirror.example:5000/hub"},
	}, false, time.Now())

	p, err := Load(context.Background(), files, namespaced(func(o *Options) { o.ImageOverride, o.Rewrite = set.Rewrite, set.RewriteInObject }))
	require.NoError(t, err)
	raw := ""
	for _, phase := range p.Phases {
		for _, object := range phase.Objects {
			raw += string(object.Object.Raw)
		}
	}

	for text, n := range map[string]int{
		`"auto"`: 1, `"quay.io/x/local:dev"`: 1, `"quay.io/x/models:v1"`: 1, `"quay.io/x/field:v1"`: 2, `"mirror.example:5000/x/web:v2"`: 1,
		`"second.example/x/web-debug:v1"`: 1, `"mirror.example:5000/x/pods:v1"`: 1, `"mirror.example:5000/x/pod:v1"`: 1, `"example.com/own@` + digestOf("b") + `"`: 1,
	} {
		require.Equal(t, n, strings.Count(raw, text), text)
	}
}

// A rewrite does not take values of Secrets apart, so that messages and statuses can recognize
// them.
func TestSensitiveImagesAreNotRewritten(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", plain+anyConfig,
		"pod.yaml.gotmpl", strings.Replace(workload("v1", "Pod", "pod", "{containers: [{name: own, image: 'quay.io/{{.config.password}}:v1'}, {name: whole, image: '{{.config.short}}'}, {name: fine, image: 'quay.io/fine:v1'}]}"),
			"first\n", "first\n    package-operator.run/expose-secret-values: 'true'\n", 1))
	opts := withSecret()
	opts.Rewrite = func(s string) string { return "mirror.example/" + s[len(s)/2:] }
	p, err := Load(context.Background(), files, opts)
	require.NoError(t, err)
	raw := string(p.Phases[0].Objects[0].Object.Raw)
	if len(p.Images) != 1 || !strings.HasPrefix(p.Images[0].Image, "mirror.example/") || p.OmittedImages != 2 || strings.Count(raw, "mirror.example/") != 1 || !p.HoldsSensitive(0, 0) {
		t.Errorf("%v, %d left out: %s", p.Images, p.OmittedImages, raw)
	}

	if text := fmt.Sprint(p.Warnings); strings.Count(text, "is a value that came from a Secret, and is not rewritten") != 2 || strings.Contains(text, opts.Sensitive[0]) {
		t.Error(text)
	}
}

// A rewrite does not make an object exceed the size limit, regardless of the number of containers.
func TestManyRewrites(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "{image: a.io/%d},", i)
	}

	var policies []imagepolicy.Policy
	for i := range 10 {
		p := imagepolicy.Policy{Name: fmt.Sprint(i), Rewrite: "mirror.example"}
		for j := range 64 {
			p.Prefixes = append(p.Prefixes, fmt.Sprintf("a.io/team%d/x%d", i, j))
		}
		policies = append(policies, p)
	}

	set := imagepolicy.NewSet(append(policies, imagepolicy.Policy{Name: "all", Prefixes: []string{"a.io"}, Rewrite: "mirror.example/" + strings.Repeat("x/", 200) + "x"}), false, time.Now())
	files := pkg("manifest.yaml", plain, "pod.yaml", workload("v1", "Pod", "pod", "{containers: ["+b.String()+"]}"))
	_, err := Load(context.Background(), files, namespaced(func(o *Options) { o.Rewrite = set.Rewrite }))
	require.ErrorContains(t, err, "bytes of JSON; the limit is", "an object that a rewrite makes too large")
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
		require.NoError(t, err)
		text, _ := json.Marshal(p.Images)
		if len(p.Images)+p.OmittedImages != 91 || len(p.Images) > limits.StatusImages || len(text) > statusImagesBytes+1 || len(p.Images) != limits.StatusImages && len(text) < statusImagesBytes*9/10 {
			t.Errorf("%s: %d images in %d bytes, %d left out", name, len(p.Images), len(text), p.OmittedImages)
		}
		var rendered []map[string]any
		for i := range p.Phases {
			for _, o := range p.Phases[i].Objects {
				var object map[string]any
				require.NoError(t, json.Unmarshal(o.Object.Raw, &object))
				rendered = append(rendered, object)
			}
		}
		if images, omitted := ImagesOf(rendered); !cmp.Equal(images, p.Images) || omitted != p.OmittedImages {
			t.Errorf("%s: of the rendered objects %d images, %d left out", name, len(images), omitted)
		}
	}
}

// Values of Secrets do not appear in images, even if objects can hold them.
func TestImagesHoldNoSecrets(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", plain+anyConfig,
		"pod.yaml.gotmpl", strings.Replace(workload("v1", "Pod", "pod", "{containers: [{image: 'a/{{.config.password}}:v1'}, {image: '{{.config.short}}'}, {image: 'fine:v1'}]}"),
			"first\n", "first\n    package-operator.run/expose-secret-values: 'true'\n", 1),
		"secret.yaml.gotmpl", secretObject("spec: {template: {spec: {containers: [{image: 'in-a-secret'}]}}}"))
	p, err := Load(context.Background(), files, withSecret())
	require.NoError(t, err)
	if !slices.Equal(p.Images, []corev1alpha1.PackageImage{{Image: "fine:v1"}}) || p.OmittedImages != 2 {
		t.Errorf("%v, %d left out", p.Images, p.OmittedImages)
	}

}

// The object, the manifest and the Package can state fields that others own. They all end up in the
// annotation.
func TestIgnoredFields(t *testing.T) {
	t.Parallel()
	entry := func(kind, name string, pointers ...string) corev1alpha1.IgnoredFields {
		return corev1alpha1.IgnoredFields{Kind: kind, Name: name, JSONPointers: pointers}
	}

	of := func(all ...corev1alpha1.IgnoredFields) func(*Options) {
		return func(o *Options) { o.IgnoredFields = all }
	}
	const own = "    package-operator.run/ignored-fields: "
	for name, tc := range map[string]struct {
		manifest, more string
		change         func(*Options)
		want, problem  string
	}{
		"none":                 {change: of()},
		"of the object":        {more: own + "/data/b\n", change: of(), want: "/data/b"},
		"of the manifest":      {manifest: "  ignoredFields: [{kind: ConfigMap, jsonPointers: [/data/a]}, {kind: Secret, jsonPointers: [/data/a]}]\n", change: of(), want: "/data/a"},
		"of all":               {manifest: "  ignoredFields: [{kind: ConfigMap, jsonPointers: [/data/a]}]\n", more: own + "/data/b\n", change: of(entry("ConfigMap", "a", "/data/c", "/data/a")), want: "/data/a\n/data/b\n/data/c"},
		"of no object":         {change: of(entry("ConfigMap", "other", "/data/a")), problem: "spec.ignoredFields[0]: it matches no object of the package"},
		"protected":            {change: of(entry("ConfigMap", "", "/kind")), problem: `spec.ignoredFields[0].jsonPointers[0]: "/kind" identifies the object`},
		"protected there":      {manifest: "  ignoredFields: [{kind: ConfigMap, jsonPointers: [/metadata/name]}]\n", change: of(), problem: `spec.ignoredFields[0].jsonPointers[0]: "/metadata/name" is in the metadata`},
		"protected here":       {more: own + "/metadata/labels/package-operator.run~1cache\n", change: of(), problem: "is set by the engine"},
		"no kind":              {change: of(entry("", "", "/data/a")), problem: "spec.ignoredFields[0].kind: Required value"},
		"no field":             {change: of(entry("ConfigMap", "")), problem: "spec.ignoredFields[0].jsonPointers: Required value"},
		"too many":             {change: of(entry("ConfigMap", "", strings.Split(strings.Repeat("/data/a ", 33), " ")[:33]...)), problem: "33 fields; the limit is 32"},
		"too many entries":     {change: of(make([]corev1alpha1.IgnoredFields, 101)...), problem: "101 entries; the limit is 100"},
		"an element":           {more: own + "/immutable/0\n", change: of(), want: "/immutable/0"},
		"an element of a list": {more: "    a: b\n  finalizers: [a.b/c]\nlist: [a]\n", change: of(entry("ConfigMap", "", "/list/0")), problem: `"/list/0" is an element of a list`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := pkg("manifest.yaml", plain+tc.manifest, "a.yaml", configMap("a", "first", tc.more))
			if tc.problem != "" {
				require.Contains(t, lines(t, files, namespaced(tc.change)), tc.problem)
				return
			}
			p, err := Load(context.Background(), files, namespaced(tc.change))
			require.NoError(t, err)
			var u unstructured.Unstructured
			require.NoError(t, json.Unmarshal(p.Phases[0].Objects[0].Object.Raw, &u.Object))
			require.Equal(t, tc.want, u.GetAnnotations()[corev1alpha1.IgnoredFieldsAnnotation])
		})
	}
}
