package cluster

import (
	"os"
	"strings"
	"testing"

	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/yaml"
)

func TestCompleteRefusesWrongOptions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options Options
		want    string
	}{
		"name with slash":        {Options{Name: "../x"}, `sandbox name "../x" is invalid`},
		"unknown component":      {Options{Components: []string{"kubelet"}}, `unknown component "kubelet"`},
		"API server alone":       {Options{Components: []string{"kube-apiserver"}}, "kube-apiserver needs etcd"},
		"kwok alone":             {Options{Components: []string{"kwok"}}, "kwok needs kube-apiserver"},
		"negative nodes":         {Options{Nodes: -1}, "number of nodes -1 is negative"},
		"negative time":          {Options{PodReadyAfter: -1}, "time until pods are ready -1ns is negative"},
		"audit policy not there": {Options{AuditPolicy: "absent.yaml"}, "audit policy: "},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := test.options.Complete(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestStartTimeFromStat(t *testing.T) {
	t.Parallel()
	const rest = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"
	for stat, want := range map[string]string{
		"12 (etcd) S" + rest:          "4711",
		"12 (evil ) Z name) R" + rest: "4711",
		"12 (zombie) Z" + rest:        "",
		"12 (short) S 1":              "",
		"":                            "",
	} {
		if got := startTimeFromStat(stat); got != want {
			t.Errorf("start time of %q: %q, want %q", stat, got, want)
		}
	}
}

func TestProcessOfAnotherStartIsNotAlive(t *testing.T) {
	t.Parallel()
	self := processOf(os.Getpid())
	if !self.Alive() {
		t.Error("this process counts as dead")
	}
	self.Started += "0"
	if self.Alive() {
		t.Error("a process that reuses the id counts as ours")
	}
}

func TestPodsAreReadyAfterATime(t *testing.T) {
	t.Parallel()
	var stage v1alpha1.Stage
	if err := yaml.UnmarshalStrict([]byte(delayed(podfast.DefaultPodReady, DefaultPodReadyAfter)), &stage); err != nil {
		t.Fatal(err)
	}
	if delay := stage.Spec.Delay; delay == nil || *delay.DurationMilliseconds != 2000 || stage.Spec.ResourceRef.Kind != "Pod" {
		t.Errorf("got %+v", stage.Spec)
	}
}
