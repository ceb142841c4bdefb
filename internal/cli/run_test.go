package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
)

// result is what a command line did.
type result struct {
	code     int
	out, err string
}

// invoke runs a command line without a cluster.
func invoke(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return invokeOn(t, func(genericclioptions.RESTClientGetter, io.Writer) (*cluster.Cluster, error) {
		t.Error("a connection was made")
		return nil, os.ErrInvalid
	}, stdin, args...)
}

func invokeOn(t *testing.T, dial dialer, stdin string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var out, errOut bytes.Buffer
	all := streams(&out, &errOut)
	all.In = strings.NewReader(stdin)
	code := run(ctx, args, all, dial)
	return result{code, out.String(), errOut.String()}
}

func streams(out, errOut io.Writer) genericiooptions.IOStreams {
	return genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut}
}

// listing is a fake client, which cannot stream lists. onWatch, which may be nil,
// is called when a cluster package is watched.
type listing struct {
	client.WithWatch
	onWatch func()
}

func (*listing) IsWatchListSemanticsUnSupported() bool { return true }

func (l *listing) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	w, err := l.WithWatch.Watch(ctx, list, opts...)
	if _, ok := list.(*corev1alpha1.ClusterPackageList); ok && err == nil && l.onWatch != nil {
		l.onWatch()
	}
	return w, err
}

// fakeCluster holds objects in memory, and gives each that is created a UID and
// a generation, as an API server does.
func fakeCluster(t *testing.T, objects ...client.Object) *cluster.Cluster {
	t.Helper()
	c, err := cluster.New("https://fake", "shop", func(o client.Options) (client.WithWatch, error) {
		byName := func(obj client.Object) []string { return []string{obj.GetName()} }
		return &listing{WithWatch: fake.NewClientBuilder().WithScheme(o.Scheme).WithRESTMapper(o.Mapper).WithObjects(objects...).
			WithStatusSubresource(&corev1alpha1.Package{}, &corev1alpha1.ClusterPackage{}).
			WithIndex(&corev1alpha1.Package{}, "metadata.name", byName).
			WithIndex(&corev1alpha1.ClusterPackage{}, "metadata.name", byName).
			WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					obj.SetUID("new")
					obj.SetGeneration(1)
					return c.Create(ctx, obj, opts...)
				},
			}).Build()}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func dialTo(c *cluster.Cluster) dialer {
	return func(getter genericclioptions.RESTClientGetter, _ io.Writer) (*cluster.Cluster, error) {
		if namespace := *getter.(*genericclioptions.ConfigFlags).Namespace; namespace != "" {
			c.Namespace = namespace
		}
		return c, nil
	}
}

// folder writes files, "-- path" lines before their content, and returns the
// folder.
func folder(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	var path string
	var content strings.Builder
	flush := func() {
		defer content.Reset()
		if path == "" {
			return
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "-- "); ok {
			flush()
			path = filepath.Join(dir, strings.TrimSpace(name))
			continue
		}
		content.WriteString(line)
	}
	flush()
	return dir
}

// fixed writes the fixtures of a package, and returns its folder.
func fixed(t *testing.T, dir string) string {
	t.Helper()
	if got := invoke(t, "", "test", dir, "--update", "--ignore-schemas"); got.code != 0 {
		t.Fatalf("write the fixtures: %+v", got)
	}
	return dir
}

const goodPackage = `
-- manifest.yaml
apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifest
metadata:
  name: web
spec:
  version: 1.2.0
  scopes: [Namespaced, Cluster]
  phases:
  - name: settings
  - name: deploy
  availabilityProbes:
  - probes:
    - condition: {type: Available, status: "True"}
    selector:
      kind: {group: apps, kind: Deployment}
  config:
    openAPIV3Schema:
      type: object
      properties:
        color: {type: string, default: red}
test:
  template:
  - name: blue
    context:
      package: {metadata: {name: shop-web, namespace: shop}}
      config: {color: blue}
  - name: cluster
    context:
      package: {metadata: {name: web}}
-- settings/cm.yaml.gotmpl
apiVersion: v1
kind: ConfigMap
metadata:
  name: color-{{ .config.color }}
  namespace: {{ .package.metadata.namespace | default "web" }}
  annotations: {package-operator.run/phase: settings}
-- web.yaml.gotmpl
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: {{ .package.metadata.namespace | default "web" }}
  annotations: {package-operator.run/phase: deploy}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: {{ .package.metadata.namespace | default "web" }}
  annotations: {package-operator.run/phase: deploy}
spec: {ports: [{port: 80}]}
-- .hidden/file
not in the image
`

const badPackage = `
-- manifest.yaml
apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifest
metadata:
  name: web
spec:
  scopes: [Namespaced]
  phasse: []
  version: 1.0.0
  phases:
  - name: deploy
-- cm.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: first
  annotations: {package-operator.run/phase: deploy}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: "evil"
  annotations: {package-operator.run/phase: "de\e[31mploy"}
`
