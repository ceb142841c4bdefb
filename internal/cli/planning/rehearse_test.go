package planning

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/testing/golden"
)

// What a rehearsal found is a line each; a probe counts where the deployment was available.
func TestCompareRehearsal(t *testing.T) {
	t.Parallel()
	available := func(status metav1.ConditionStatus, message string) []metav1.Condition {
		return []metav1.Condition{{Type: corev1alpha1.ConditionAvailable, Status: status, Reason: "ProbesFail", Message: message}}
	}
	web := dryrun.Refusal{Phase: "deploy", Kind: "Deployment", Namespace: "shop", Name: "web", Message: "why"}
	for _, tc := range []struct {
		reason string
		result dryrun.Rehearsal
		want   []string
	}{
		{"at rest", dryrun.Rehearsal{Was: available("True", ""), Is: available("True", "")}, nil},
		{"a probe", dryrun.Rehearsal{Was: available("True", ""), Is: available("False", ""), NotReady: []dryrun.Refusal{web}}, []string{"NotReady deploy Deployment shop/web: why"}},
		{"a probe that failed before", dryrun.Rehearsal{Was: available("False", ""), Is: available("False", ""), NotReady: []dryrun.Refusal{web}}, nil},
		{"not available, for no object", dryrun.Rehearsal{Was: available("True", ""), Is: available("False", "paused")}, []string{"NotReady  : paused"}},
		{"a refusal", dryrun.Rehearsal{Refusals: []dryrun.Refusal{web, {Message: "all of it"}}}, []string{"Refused deploy Deployment shop/web: why", "Refused  : all of it"}},
		{
			"writes", dryrun.Rehearsal{
				Changes: []dryrun.Change{{Action: dryrun.ActionCorrect, Kind: "ConfigMap", Namespace: "shop", Name: "web", Fields: []dryrun.Field{{Path: ".data.a"}}}},
				Ours:    []string{"patch ObjectSet shop/web-1"},
			},
			[]string{"Written  ConfigMap shop/web: correct: .data.a", "Written  ObjectSet shop/web-1: patch"},
		},
		{"what is not known", dryrun.Rehearsal{Warnings: []string{"you may not read ObjectSet objects"}}, []string{"NotRehearsed  : you may not read ObjectSet objects"}},
	} {
		r := &rehearsed{Target: progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: "web"}}
		r.compare(&tc.result)
		var got []string
		for _, f := range r.found {
			got = append(got, fmt.Sprintf("%s %s %s: %s", f.Finding, f.Phase, f.Object, f.Message))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

// The worst comes first, and of one package so many lines alone.
func TestRehearsalReport(t *testing.T) {
	t.Parallel()
	r := &rehearsalReport{Version: "v0.3.0", NotSeen: []string{"Packages of 2 namespaces"}}
	pkg := func(name string) corev1alpha1.GenericPackage {
		return &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	}
	var many []finding
	for i := range limits.RehearsalFindings + 5 {
		many = append(many, finding{Namespace: "shop", Name: "many", Finding: written, Object: fmt.Sprintf("ConfigMap shop/%02d", i), Message: "correct"})
	}
	r.add(pkg("many"), append(many, finding{Namespace: "shop", Name: "many", Finding: refused, Message: "no"}), true)
	r.add(pkg("new"), []finding{{Namespace: "shop", Name: "new", Finding: loadFails, Message: "a\nb"}}, false)
	r.finish()
	if len(r.Findings) != limits.RehearsalFindings+2 || r.Findings[0].Finding != loadFails || r.Findings[1].Finding != refused ||
		!strings.HasSuffix(r.Findings[limits.RehearsalFindings].Message, "(and 6 more of this package)") {
		t.Errorf("%d findings: %+v", len(r.Findings), r.Findings)
	}
	golden.JSON(t, "rehearse", r)
	lines := strings.Split(r.text(terminal.Plain()), "\n")
	if want := "shop       new   LoadFails     -                  a b"; lines[1] != want {
		t.Errorf("%q, want %q", lines[1], want)
	}
	if want := "2 packages rehearsed with the engine v0.3.0, 1 of them at rest (1 pending): 1 LoadFails, 1 Refused, 19 Written, 1 NotRehearsed"; lines[len(lines)-2] != want {
		t.Errorf("%q, want %q", lines[len(lines)-2], want)
	}
	// What was not seen is a finding, so that the command does not exit with 0.
	r = &rehearsalReport{NotSeen: []string{"ClusterPackages"}}
	if r.finish(); len(r.Findings) != 1 || r.Findings[0].Finding != notRehearsed || strings.Contains(r.text(terminal.Plain()), "nothing is found") {
		t.Errorf("not seen: %s", r.text(terminal.Plain()))
	}
}
