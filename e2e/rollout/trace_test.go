package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/testing/collector"
	"lockstep.run/lockstep/internal/testing/require"
)

// An install of three phases, in whose second one the leader is killed, an upgrade and the deletion are one trace of each revision. The
// collector hangs while the first leader works, which delays nothing.
func TestTraces(t *testing.T) {
	t.Parallel()
	env := harness.Lend(t)
	c := collector.New(t)
	c.Hold()
	traced := tracedManager(t, c.URL)
	first := env.StartManagerOf(t, traced)
	env.Namespace(t, "traces")
	env.Create(t, harness.Package("traces", "shop", env.Push(t, "traces:1", threePhases("v1", "extra"))))
	harness.Eventually(t, harness.Patience, "the second phase to wait", func(ctx context.Context) error {
		list := &corev1alpha1.ObjectSetList{}
		if err := env.Client.List(ctx, list, client.InNamespace("traces")); err != nil {
			return err
		}
		for i := range list.Items {
			if timeline := list.Items[i].Status.Timeline; len(timeline) > 1 && timeline[1].WaitedFor != "" {
				return nil
			}
		}
		return errors.New("it does not yet")
	})
	<-c.Asked()
	first.Kill()
	c.Release()
	env.ClearLease(t)
	env.StartManagerOf(t, traced)
	gate := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "traces", Name: "gate"}}
	require.NoError(t, env.Client.Patch(t.Context(), gate, client.RawPatch(types.MergePatchType, []byte(`{"data":{"ready":"true"}}`))))
	env.WaitAvailable(t, "traces", "shop")
	env.SetImage(t, "traces", "shop", env.Push(t, "traces:2", threePhases("v2", "")))
	env.WaitAvailable(t, "traces", "shop")
	waitArchived(t, env, "traces", 1)
	ids := map[string]int64{}
	for number := range int64(2) {
		ids[strings.ReplaceAll(string(setOf(t, env, "traces", number+1).UID), "-", "")] = number + 1
	}
	pkg := harness.Package("traces", "shop", "")
	require.NoError(t, env.Client.Delete(t.Context(), pkg))
	env.WaitGone(t, harness.Patience, pkg)

	spans := c.Await(t, func(spans []collector.Span) bool {
		var handedOver, torn bool
		for _, s := range spans {
			handedOver, torn = handedOver || s.Name == "hand-over", torn || s.Name == "teardown"
		}
		return handedOver && torn
	})
	traces := collector.Traces(spans)
	if len(traces) != len(ids) {
		t.Errorf("%d traces of %d revisions", len(traces), len(ids))
	}
	for id, number := range ids {
		judgeTrace(t, number, traces[id])
	}
}

// judgeTrace compares the trace of a revision with what it did.
func judgeTrace(t *testing.T, number int64, trace map[string]collector.Span) {
	t.Helper()
	want := map[string]int{"rollout": 1, "load": 1, "claim": 1, "phase": 3, "apply": 3, "wait": 3}
	if number == 2 {
		want["hand-over"], want["teardown"] = 1, 1
	}
	got := map[string]int{}
	waited := ""
	for _, s := range trace {
		t.Logf("revision %d: %-9s %6.3fs %v", number, s.Name, s.End.Sub(s.Start).Seconds(), s.Attributes)
		got[s.Name]++
		if _, there := trace[s.Parent]; !there && s.Name != "rollout" {
			t.Errorf("%s of revision %d has no parent", s.Name, number)
		}
		if s.Numbers["lockstep.revision"] != number || s.Attributes["lockstep.package"] != "shop" || s.Failed != "" {
			t.Errorf("%s of revision %d is %+v", s.Name, number, s)
		}
		if s.Attributes["lockstep.waited_for"] != "" {
			waited = s.Attributes["lockstep.waited_for"]
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("revision %d has the spans %v, want %v", number, got, want)
	}
	if number == 1 && waited != "ConfigMap traces/gate" {
		t.Errorf("the second phase waited for %q", waited)
	}
}

// threePhases is a package whose second phase waits for a ConfigMap that another makes ready.
func threePhases(value, extra string) harness.Files {
	gate := strings.Replace(harness.ConfigMap("gate", "two", value), "  annotations:", "  labels: {gated: \"true\"}\n  annotations:", 1)
	files := harness.Files{
		"manifest.yaml": harness.Manifest("traces", []string{"one", "two", "three"}, gateProbes),
		"one.yaml":      harness.ConfigMap("one", "one", value), "two.yaml": gate, "three.yaml": harness.ConfigMap("three", "three", value),
	}
	if extra != "" {
		files["extra.yaml"] = harness.ConfigMap(extra, "three", value)
	}
	return files
}

// tracedManager returns a program that starts the manager with a collector in its environment.
func tracedManager(t *testing.T, endpoint string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "manager")
	script := fmt.Sprintf("#!/bin/sh\nOTEL_EXPORTER_OTLP_ENDPOINT=%s OTEL_BSP_SCHEDULE_DELAY=100 exec %s \"$@\"\n", endpoint, harness.Binary(t, "lockstep-manager"))
	require.NoError(t, os.WriteFile(program, []byte(script), 0o755))
	return program
}
