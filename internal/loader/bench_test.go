package loader

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"
)

// largePackage has this many template files: Deployments, Services and ConfigMaps in the style of
// charts, with helpers, loops, conditions and configuration.
func largePackage(files int) Files {
	f := pkg("manifest.yaml", head+`spec:
  version: 1.0.0
  scopes: [Namespaced]
  phases: [{name: config}, {name: deploy}, {name: publish}]
  availabilityProbes:
  - selector: {kind: {group: apps, kind: Deployment}}
    probes: [{condition: {type: Available, status: "True"}}]
  config:
    openAPIV3Schema:
      type: object
      properties:
        replicas: {type: integer, default: 2}
        tier: {type: string, default: web}
        env: {type: array, items: {type: object, properties: {name: {type: string}, value: {type: string}}}, default: [{name: A, value: x}, {name: B, value: "y"}]}
        resources: {type: object, x-kubernetes-preserve-unknown-fields: true, default: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: 100m, memory: 64Mi}}}
`, "_helpers.gotmpl", `{{define "labels"}}app.kubernetes.io/name: {{ .package.metadata.name }}
app.kubernetes.io/instance: {{ .package.metadata.name }}
tier: {{ .config.tier | quote }}{{end}}`)

	const (
		deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-%[1]d
  annotations:
    package-operator.run/phase: deploy
  labels:
{{ include "labels" . | indent 4 }}
spec:
  replicas: {{ .config.replicas }}
  selector:
    matchLabels: {app: web-%[1]d}
  template:
    metadata:
      labels: {app: web-%[1]d}
    spec:
      containers:
      - name: main
        image: registry.example/web:v%[1]d
        args: [--port=8080, --name={{ .package.metadata.name }}]
        env:
{{- range .config.env }}
        - name: {{ .name }}
          value: {{ .value | quote }}
{{- end }}
        resources:
{{ toYAML .config.resources | indent 10 }}
        readinessProbe:
          httpGet: {path: /healthz, port: 8080}
{{- if eq .config.tier "web" }}
        ports:
        - {containerPort: 8080, name: http}
{{- end }}
`
		service = `apiVersion: v1
kind: Service
metadata:
  name: web-%[1]d
  annotations:
    package-operator.run/phase: publish
  labels:
{{ include "labels" . | indent 4 }}
spec:
  selector: {app: web-%[1]d}
  ports:
  - {port: 80, targetPort: http, name: http}
`
		config = `apiVersion: v1
kind: ConfigMap
metadata:
  name: web-%[1]d
  annotations:
    package-operator.run/phase: config
    package-operator.run/condition: "config.replicas > 0.0"
data:
  config.yaml: |
    name: {{ .package.metadata.name }}
    tier: {{ .config.tier }}
    replicas: {{ .config.replicas }}
`
	)

	for i := range files {
		f[fmt.Sprintf("part-%d/object-%d.yaml.gotmpl", i/100, i)] = fmt.Appendf(nil, []string{deployment, service, config}[i%3], i)
	}

	return f
}

// A package of 5,000 template files must render in at most two seconds on two cores;
// docs/design/performance.md has the figures. With values from a Secret, every text of every object
// is searched, and a patch changes every Deployment.
func BenchmarkRender5000(b *testing.B) {
	files := largePackage(5000)
	for name, opts := range map[string]Options{
		"plain": namespaced(),
		"secret and patch": namespaced(func(o *Options) {
			for i := range 50 {
				o.Sensitive = append(o.Sensitive, fmt.Sprintf("a-value-of-a-secret-%d", i*7919))
			}
			o.Patches = []Patch{{Target: PatchTarget{Kind: "Deployment"}, Patch: "spec: {template: {spec: {containers: [{name: main, imagePullPolicy: Always}]}}}"}}
		}),
	} {
		b.Run(name, func(b *testing.B) {
			load := func() {
				p, err := Load(context.Background(), files, opts)
				if err != nil || objectsIn(p) != 5000 {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				load()
			}
			b.StopTimer()
			b.ReportMetric(float64(peak(load))/(1<<20), "MiB-peak")
		})
	}
}

// peak returns the growth of the heap while f runs.
func peak(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // the default, regardless of GOGC
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before := m.HeapInuse
	var most atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most.Store(max(most.Load(), m.HeapInuse))
			}
		}
	}()

	f()
	close(stop)
	<-stopped
	return most.Load() - min(before, most.Load())
}
