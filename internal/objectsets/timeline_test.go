package objectsets

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// Each time is the first one, and later changes do not move it. A state that passed between two
// looks was reached at the second.
func TestTimeline(t *testing.T) {
	t.Parallel()
	const waiting, applying, probing, ready, unready, gone = corev1alpha1.PhaseStateWaiting, corev1alpha1.PhaseStateApplying, corev1alpha1.PhaseStateProbing,
		corev1alpha1.PhaseStateReady, corev1alpha1.PhaseStateUnready, corev1alpha1.PhaseStateGone
	start := time.Unix(1000, 0)
	for _, tc := range []struct {
		reason string
		stored []corev1alpha1.PhaseState // before the first of states
		states [][]corev1alpha1.PhaseState
		want   []string // opened, applied, ready of each phase in seconds
		took   string
	}{
		{"one after the other", nil, [][]corev1alpha1.PhaseState{{applying, waiting}, {probing, waiting}, {ready, applying}, {ready, probing}, {ready, ready}}, []string{"0 1 2", "2 3 4"}, "[2s 2s]"},
		{"seen late", nil, [][]corev1alpha1.PhaseState{{waiting, waiting}, {ready, applying}, {ready, ready}}, []string{"1 1 1", "1 2 2"}, "[0s 1s]"},
		{"the first time counts", nil, [][]corev1alpha1.PhaseState{{ready, ready}, {unready, ready}, {ready, ready}}, []string{"0 0 0", "0 0 0"}, "[0s 0s]"},
		{"deleted is history", nil, [][]corev1alpha1.PhaseState{{ready, probing}, {gone, gone}}, []string{"0 0 0", "0 0 -"}, "[0s]"},
		{"rolled out by an earlier version", []corev1alpha1.PhaseState{ready, unready}, [][]corev1alpha1.PhaseState{{ready, unready}, {unready, ready}, {ready, ready}}, []string{"- - -", "- - -"}, "[]"},
		{"while it is rolled out by an earlier version", []corev1alpha1.PhaseState{ready, probing}, [][]corev1alpha1.PhaseState{{ready, probing}, {ready, ready}}, []string{"- - -", "0 0 1"}, "[1s]"},
		{"activated again after an earlier version", []corev1alpha1.PhaseState{gone, gone}, [][]corev1alpha1.PhaseState{{ready, waiting}, {ready, ready}}, []string{"0 0 0", "1 1 1"}, "[0s 0s]"},
		{"activated again", nil, [][]corev1alpha1.PhaseState{{ready, ready}, {waiting, waiting}, {applying, waiting}}, []string{"2 - -", "- - -"}, "[0s 0s]"},
	} {
		var timeline []corev1alpha1.PhaseTimes
		var all []time.Duration
		var stored []corev1alpha1.PhaseStatus
		for i, state := range tc.stored {
			stored = append(stored, corev1alpha1.PhaseStatus{Name: string("ab"[i]), State: state})
		}
		for i, states := range tc.states {
			phases := []corev1alpha1.PhaseStatus{{Name: "a", State: states[0]}, {Name: "b", State: states[1]}}
			var took []time.Duration
			timeline, took = Timeline(timeline, stored, phases, nil, start.Add(time.Duration(i)*time.Second))
			stored, all = phases, append(all, took...)
		}
		for i, want := range tc.want {
			times, got := timeline[i], ""
			for _, at := range []*metav1.MicroTime{times.OpenedAt, times.AppliedAt, times.ReadyAt} {
				if at == nil {
					got += "- "
					continue
				}
				got += fmt.Sprint(at.Sub(start).Seconds(), " ")
			}
			require.Equal(t, want, strings.TrimSpace(got), fmt.Sprintf("%s: phase %s has %s, want", tc.reason, times.Name, got))
		}
		require.Equal(t, tc.took, fmt.Sprint(all), fmt.Sprintf("%s: took %v, want", tc.reason, all))
	}
}

// It names the object that a phase waited for, and is bounded.
func TestTimelineIsBounded(t *testing.T) {
	t.Parallel()
	var phases []corev1alpha1.PhaseStatus
	for i := range limits.TimelinePhases + 5 {
		phases = append(phases, corev1alpha1.PhaseStatus{Name: fmt.Sprint("p", i), State: corev1alpha1.PhaseStateProbing})
	}
	blocking := []corev1alpha1.BlockingObject{
		{Kind: "Deployment", Namespace: "shop", Name: "web", Phase: "p1", Message: "not ready"},
		{Kind: "Deployment", Namespace: "shop", Name: "more", Phase: "p1", Message: "not this one"},
		{Kind: "ClusterRole", Name: "web", Phase: "p2", Message: strings.Repeat("x", 1000)},
	}
	timeline, _ := Timeline(nil, nil, phases, blocking, time.Unix(5, 0))
	if len(timeline) != limits.TimelinePhases || timeline[0].WaitedFor != "" || timeline[1].WaitedFor != "Deployment shop/web: not ready" || len(timeline[2].WaitedFor) > timelineReasonBytes {
		t.Errorf("%d phases, %q, %q, %d bytes", len(timeline), timeline[0].WaitedFor, timeline[1].WaitedFor, len(timeline[2].WaitedFor))
	}
	phases[1].State = corev1alpha1.PhaseStateReady
	if timeline, _ = Timeline(timeline, nil, phases, nil, time.Unix(6, 0)); timeline[1].WaitedFor == "" {
		t.Error("what a phase waited for is forgotten once it is ready")
	}
}

// constants are the annotations by the names of their constants.
var constants = map[string]string{
	"ObjectDeploymentUIDAnnotation": corev1alpha1.ObjectDeploymentUIDAnnotation, "SlicedAnnotation": corev1alpha1.SlicedAnnotation,
	"SecretSlicedAnnotation": corev1alpha1.SecretSlicedAnnotation, "OrphanedAnnotation": corev1alpha1.OrphanedAnnotation,
	"PausedByParentAnnotation": corev1alpha1.PausedByParentAnnotation, "HashAnnotation": corev1alpha1.HashAnnotation,
	"PackageDigestAnnotation": corev1alpha1.PackageDigestAnnotation, "AwaitingActivationAnnotation": corev1alpha1.AwaitingActivationAnnotation,
	"RolledBackFromAnnotation": corev1alpha1.RolledBackFromAnnotation, "RejectedAnnotation": corev1alpha1.RejectedAnnotation,
	"ClaimedAnnotation": corev1alpha1.ClaimedAnnotation,
}

// Archived sets keep each annotation that is read from a set.
func TestKeptAnnotations(t *testing.T) {
	t.Parallel()
	// These receivers are not an archived set of a deployment: s.top() is a deployment, or a set
	// that stands alone, and u is an object of a revision.
	others := []string{"s.deployment", "s.top()", "owner", "u"}
	exempt := []string{
		"PackageSourceImageAnnotation", // of the revision in charge, and of those that own objects
	}
	read := map[string]bool{}
	for _, folder := range []string{".", "../controllers/objectdeployments"} {
		err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if constant, of := annotationRead(n); constant != "" && !slices.Contains(others, of) && !slices.Contains(exempt, constant) {
					read[constant] = true
					if !slices.Contains(keptAnnotations, constants[constant]) {
						t.Errorf("%s reads %s of %s, which archived sets lose: add it to keptAnnotations", path, constant, of)
					}
				}
				return true
			})
			return nil
		})
		require.NoError(t, err)
	}
	if len(read) != len(keptAnnotations) {
		t.Errorf("archived sets keep %d annotations; %d are read: %v", len(keptAnnotations), len(read), read)
	}
}

// annotationRead returns the constant X and the receiver of an expression
// receiver.GetAnnotations()[corev1alpha1.X].
func annotationRead(n ast.Node) (constant, receiver string) {
	index, ok := n.(*ast.IndexExpr)
	if !ok {
		return "", ""
	}
	call, isCall := index.X.(*ast.CallExpr)
	key, isConstant := index.Index.(*ast.SelectorExpr)
	if !isCall || !isConstant {
		return "", ""
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || method.Sel.Name != "GetAnnotations" {
		return "", ""
	}
	return key.Sel.Name, types.ExprString(method.X)
}
