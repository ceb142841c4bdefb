package plan_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// draft is a package that is changed at random.
type draft struct {
	version int
	phases  []string
	objects []*piece
	next    int // number of the next object
}

// piece is one object of a draft.
type piece struct {
	kind, name, phase string
	annotations       map[string]string
	labels            map[string]string
	data              map[string]string
	// number is a field that some kinds have: replicas, a port, a size; 0 leaves it
	// to its default.
	number int
	// list are elements with names: environment variables, ports, verbs.
	list []string
	// frozen is a field that cannot be changed: a selector, a role, immutable data.
	frozen string
}

func (p *piece) clone() *piece {
	c := *p
	c.annotations, c.labels, c.data, c.list = maps.Clone(p.annotations), maps.Clone(p.labels), maps.Clone(p.data), slices.Clone(p.list)
	return &c
}

func (d *draft) clone() *draft {
	c := *d
	c.phases, c.objects = slices.Clone(d.phases), nil
	for _, p := range d.objects {
		c.objects = append(c.objects, p.clone())
	}
	return &c
}

var pieceKinds = []string{"ConfigMap", "ConfigMap", "Secret", "Service", "Deployment", "Role", "RoleBinding", "Gauge"}

// newDraft draws a package of 2 to 4 phases.
func newDraft(r *rand.Rand) *draft {
	d := &draft{version: 1}
	for i := range 2 + r.IntN(3) {
		d.phases = append(d.phases, fmt.Sprintf("phase-%d", i))
	}
	for range 4 + r.IntN(5) {
		d.add(r)
	}
	return d
}

func (d *draft) add(r *rand.Rand) *piece {
	p := &piece{
		kind: pick(r, pieceKinds), name: fmt.Sprintf("object-%02d", d.next), phase: pick(r, d.phases),
		annotations: map[string]string{}, labels: map[string]string{}, data: map[string]string{"a": "1", "b": "2"},
		number: r.IntN(3), list: []string{"one", "two"}, frozen: "first",
	}
	d.next++
	d.objects = append(d.objects, p)
	return p
}

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// mutate changes the draft as a new release does.
func (d *draft) mutate(r *rand.Rand) {
	for range 1 + r.IntN(4) {
		d.mutateOnce(r)
	}
}

func (d *draft) mutateOnce(r *rand.Rand) {
	p := pick(r, d.objects)
	switch r.IntN(14) {
	case 0, 1:
		d.add(r)
	case 2, 3:
		if len(d.objects) > 2 {
			d.objects = slices.DeleteFunc(d.objects, func(o *piece) bool { return o == p })
		}
	case 4:
		p.data["a"] = fmt.Sprint(r.IntN(1000))
	case 5:
		p.data[fmt.Sprintf("key-%d", r.IntN(3))] = "new"
	case 6:
		delete(p.data, pick(r, slices.Sorted(maps.Keys(p.data))))
		p.data["z"] = "always one"
	case 7:
		p.phase = pick(r, d.phases)
	case 8:
		p.number = r.IntN(4)
	case 9:
		p.list = append(p.list, fmt.Sprintf("more-%d", len(p.list)))
	case 10:
		p.list = p.list[:max(1, len(p.list)-1)]
	case 11:
		toggle(p.annotations, "package-operator.run/deletion-policy", "Keep")
	case 12:
		toggle(p.labels, "team", pick(r, []string{"blue", "green"}))
	case 13:
		d.version++
	}
}

func toggle(m map[string]string, key, value string) {
	if m[key] == value {
		delete(m, key)
		return
	}
	m[key] = value
}

// files renders the draft.
func (d *draft) files(t testing.TB) harness.Files {
	t.Helper()
	files := harness.Files{"manifest.yaml": harness.Manifest("drawn", d.phases, fmt.Sprintf("  version: %d.0.0\n", d.version))}
	for _, p := range d.objects {
		raw, err := json.Marshal(p.object())
		require.NoError(t, err)
		files[p.name+".yaml"] = string(raw)
	}
	return files
}

func (p *piece) object() map[string]any {
	annotations := maps.Clone(p.annotations)
	annotations["package-operator.run/phase"] = p.phase
	obj := map[string]any{"kind": p.kind, "apiVersion": "v1", "metadata": map[string]any{"name": p.name, "annotations": annotations, "labels": p.labels}}
	switch p.kind {
	case "ConfigMap":
		obj["data"] = p.data
		if p.frozen != "first" {
			obj["immutable"] = true
		}
	case "Secret":
		obj["stringData"] = p.data
	case "Service":
		obj["spec"] = map[string]any{"selector": p.data, "ports": elements(p.list, func(i int, name string) map[string]any {
			return map[string]any{"name": name, "port": 80 + i + 10*p.number}
		})}
	case "Deployment":
		obj["apiVersion"], obj["spec"] = "apps/v1", p.workload()
	case "Role":
		obj["apiVersion"] = "rbac.authorization.k8s.io/v1"
		obj["rules"] = []any{map[string]any{"apiGroups": []string{""}, "resources": []string{"configmaps"}, "verbs": append([]string{"get"}, p.list...)}}
	case "RoleBinding":
		obj["apiVersion"] = "rbac.authorization.k8s.io/v1"
		obj["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "role-" + p.frozen}
		obj["subjects"] = elements(p.list, func(_ int, name string) map[string]any {
			return map[string]any{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}
		})
	case "Gauge":
		obj["apiVersion"] = "generated.example.com/v1"
		spec := map[string]any{"marks": p.data, "parts": elements(p.list, func(i int, name string) map[string]any {
			return map[string]any{"name": name, "size": i + p.number}
		})}
		if p.number > 0 {
			spec["size"] = p.number
		}
		obj["spec"] = spec
	}
	return obj
}

func (p *piece) workload() map[string]any {
	labels := map[string]string{"app": p.name, "selected": p.frozen}
	spec := map[string]any{
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec": map[string]any{"containers": []any{map[string]any{
				"name": "main", "image": "registry.example.com/app:" + p.data["a"],
				"env": elements(p.list, func(_ int, name string) map[string]any {
					return map[string]any{"name": name, "value": p.data["b"]}
				}),
			}}},
		},
	}
	if p.number > 0 {
		spec["replicas"] = p.number
	}
	return spec
}

func elements(names []string, element func(i int, name string) map[string]any) []any {
	var list []any
	for i, name := range names {
		list = append(list, element(i, name))
	}
	return list
}
