package rollout_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

const gateCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gates.e2e.lockstep.run
spec:
  group: e2e.lockstep.run
  scope: Namespaced
  names: {kind: Gate, listKind: GateList, plural: gates, singular: gate}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

const gateProbes = `  availabilityProbes:
  - selector: {kind: {group: e2e.lockstep.run, kind: Gate}}
    probes:
    - condition: {type: Ready, status: "True"}
  - selector: {kind: {group: "", kind: ConfigMap}, selector: {matchLabels: {gated: "true"}}}
    probes:
    - cel: {rule: 'has(self.data.ready) && self.data.ready == "true"', message: "not ready"}
`

// gated returns a package of 10 phases with 20 objects each. Five objects have probes: three
// Gates by a condition, two ConfigMaps by CEL.
func gated() harness.Files {
	files := harness.Files{}
	var names []string
	for p := range 10 {
		phase := fmt.Sprintf("phase-%02d", p)
		names = append(names, phase)
		var docs []string
		for i := range 15 {
			docs = append(docs, harness.ConfigMap(fmt.Sprintf("plain-%02d-%02d", p, i), phase, "v1"))
		}
		for i := range 3 {
			docs = append(docs, fmt.Sprintf("apiVersion: e2e.lockstep.run/v1\nkind: Gate\nmetadata:\n  name: gate-%02d-%d\n  annotations: {package-operator.run/phase: %s}\nspec: {size: 1}\n", p, i, phase))
		}
		for i := range 2 {
			cm := harness.ConfigMap(fmt.Sprintf("gated-%02d-%d", p, i), phase, "v1")
			docs = append(docs, strings.Replace(cm, "  annotations:", "  labels: {gated: \"true\"}\n  annotations:", 1))
		}
		files[phase+".yaml"] = strings.Join(docs, "---\n")
	}
	files["manifest.yaml"] = harness.Manifest("gated", names, gateProbes)
	return files
}

// turn makes the probe of one object true or false, as its controller would.
func turn(t *testing.T, env *harness.Env, name string, ready bool) {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "phases", "name": name}}}
	if strings.HasPrefix(name, "gate-") {
		obj.SetAPIVersion("e2e.lockstep.run/v1")
		obj.SetKind("Gate")
		status := map[bool]string{true: "True", false: "False"}[ready]
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, status)
		require.NoError(t, env.Client.Status().Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch))))
		return
	}
	obj.SetAPIVersion("v1")
	obj.SetKind("ConfigMap")
	require.NoError(t, env.Client.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"ready":"%t"}}`, ready))))
}

// Invariant 1, in the audit log: no object of phase k+1 is written before all probes of phases 1 to
// k were true at the same time. Probes become true after random delays, and one probe per phase
// becomes false again before the others are true.
func TestPhaseOrder(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.Namespace(t, "phases")
	crd := &unstructured.Unstructured{}
	require.NoError(t, decode(gateCRD, crd))
	env.Create(t, crd)
	harness.Eventually(t, harness.Patience, "gates to be served", func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("e2e.lockstep.run/v1")
		list.SetKind("GateList")
		return env.Client.List(ctx, list)
	})
	audit, err := env.Audit()
	require.NoError(t, err)
	mark, err := audit.Mark(t.Context())
	require.NoError(t, err)
	env.Create(t, harness.Package("phases", "gated", env.Push(t, "gated:1", gated())))

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for p := range 10 {
		names := []string{
			fmt.Sprintf("gate-%02d-0", p), fmt.Sprintf("gate-%02d-1", p), fmt.Sprintf("gate-%02d-2", p),
			fmt.Sprintf("gated-%02d-0", p), fmt.Sprintf("gated-%02d-1", p),
		}
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		openPhase(t, env, names, random)
	}
	env.WaitAvailable(t, "phases", "gated")

	entries, err := audit.Since(t.Context(), mark)
	require.NoError(t, err)
	judgePhases(t, entries)
}

// openPhase waits for the phase's objects and turns their probes true one after the
// other; the first one becomes false again and is the last to be true.
func openPhase(t *testing.T, env *harness.Env, names []string, random *rand.Rand) {
	t.Helper()
	for _, name := range names {
		harness.Eventually(t, harness.Patience, name, func(ctx context.Context) error {
			obj := &unstructured.Unstructured{}
			obj.SetAPIVersion("v1")
			obj.SetKind("ConfigMap")
			if strings.HasPrefix(name, "gate-") {
				obj.SetAPIVersion("e2e.lockstep.run/v1")
				obj.SetKind("Gate")
			}
			return env.Client.Get(ctx, types.NamespacedName{Namespace: "phases", Name: name}, obj)
		})
	}
	pause := func() {
		timer := time.NewTimer(time.Duration(random.IntN(60)) * time.Millisecond)
		defer timer.Stop()
		<-timer.C // the random delay that the test is about
	}
	turn(t, env, names[0], true)
	pause()
	flip := 1 + random.IntN(len(names)-1)
	for i, name := range names[1:] {
		if i+1 == flip {
			turn(t, env, names[0], false)
			pause()
		}
		turn(t, env, name, true)
		pause()
	}
	turn(t, env, names[0], true)
}

// judgePhases checks the order of writes against the moments at which the test
// turned the probes.
func judgePhases(t *testing.T, entries []sandbox.Entry) {
	t.Helper()
	trueFrom := map[int]time.Time{} // by phase: when the last probe turned true
	first, writes := map[int]time.Time{}, 0
	for _, e := range entries {
		phase, ok := phaseOf(e.Object.Name)
		if !ok || e.Object.Namespace != "phases" || e.Code >= 300 || !sandbox.Writes()(e) {
			continue
		}
		if e.User == sandbox.AdminUser {
			trueFrom[phase] = later(trueFrom[phase], e.Received)
			continue
		}
		if e.User != harness.ManagerUser() {
			continue
		}
		writes++
		if at, seen := first[phase]; !seen || e.Received.Before(at) {
			first[phase] = e.Received
		}
	}
	if writes != 200 || len(first) != 10 {
		t.Fatalf("the manager made %d writes in %d phases, want 200 in 10", writes, len(first))
	}
	for p := range first {
		for earlier := range p {
			if first[p].Before(trueFrom[earlier]) {
				t.Errorf("phase %d started at %s, before the probes of phase %d were true together at %s", p, first[p], earlier, trueFrom[earlier])
			}
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// phaseOf returns the phase in names such as plain-03-07.
func phaseOf(name string) (int, bool) {
	var kind string
	var phase, i int
	parts := strings.Split(name, "-")
	if len(parts) != 3 {
		return 0, false
	}
	kind = parts[0]
	if _, err := fmt.Sscanf(parts[1]+" "+parts[2], "%d %d", &phase, &i); err != nil {
		return 0, false
	}
	return phase, kind == "plain" || kind == "gate" || kind == "gated"
}
