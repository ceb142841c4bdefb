package packages

import (
	"context"
	"errors"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/permissions"
)

var readPods = []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}

func TestPermit(t *testing.T) {
	t.Parallel()
	found := permissions.Ceiling{Role: "most", Known: true, Found: true}
	enough := found
	enough.Rules = readPods
	unreadable := enough
	unreadable.Err = errors.New("clusterroles is forbidden")
	for name, tc := range map[string]struct {
		ceiling           permissions.Ceiling
		rules             []rbacv1.PolicyRule
		step              step
		reason, mentioned string
	}{
		"no permissions, no ceiling":          {step: stepDeploy},
		"no ceiling":                          {rules: readPods, step: stepPermit, reason: corev1alpha1.ReasonNoCeiling, mentioned: "--permission-ceiling: get pods."},
		"not read yet":                        {ceiling: permissions.Ceiling{Role: "most"}, rules: readPods, step: stepGather},
		"cannot be read":                      {ceiling: unreadable, rules: readPods, step: stepGather, mentioned: "Waiting for ClusterRole most, the ceiling of the rights of packages: clusterroles is forbidden"},
		"there is no such role":               {ceiling: permissions.Ceiling{Role: "most", Known: true}, rules: readPods, step: stepPermit, reason: corev1alpha1.ReasonNoCeiling, mentioned: "There is no ClusterRole most"},
		"an empty role":                       {ceiling: found, rules: readPods, step: stepPermit, reason: corev1alpha1.ReasonAboveCeiling, mentioned: "ClusterRole most, the ceiling of the rights of packages, does not have, and is not written without them. Ask an administrator to add them, or change the package to require fewer: get pods."},
		"within":                              {ceiling: enough, rules: readPods, step: stepDeploy, reason: corev1alpha1.ReasonPermissionsGranted},
		"a message with many requested rules": {ceiling: found, rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: strings.Split(strings.Repeat("a,", 2000), ",")}}, step: stepPermit, reason: corev1alpha1.ReasonAboveCeiling},
		"what is asked by another name":       {ceiling: enough, rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"pods"}}}, step: stepPermit, reason: corev1alpha1.ReasonAboveCeiling, mentioned: ": * pods."},
	} {
		s := &reconciliation{Reconciler: &Reconciler{Options: Options{Ceiling: func() permissions.Ceiling { return tc.ceiling }}}}
		s.pkg, s.step = newPackage(), stepDeploy
		s.attempt = &load.Attempt{Done: true}
		s.attempt.Out.Content = &load.Content{Rules: tc.rules}
		s.content = s.attempt.Out.Content
		next, why, err := s.permit(context.Background())
		if next != tc.step || err != nil {
			t.Errorf("%s: step %d, want %d (%v)", name, next, tc.step, err)
		}
		s.step, s.why = next, why
		status := &corev1alpha1.PackageStatus{}
		reportPermissions(status, s.view)
		c := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionPermissionsGranted)
		if c == nil {
			c = &metav1.Condition{Message: why}
		}
		if c.Reason != tc.reason || !strings.Contains(c.Message, tc.mentioned) || len(c.Message) > 4<<10 || (c.Status == metav1.ConditionTrue) != (tc.reason == corev1alpha1.ReasonPermissionsGranted) {
			t.Errorf("%s: %+v, want %s with %q", name, c, tc.reason, tc.mentioned)
		}
		if state := kstatusOf(s.view, observed(s.view)); next == stepPermit && (!state.Stalled || state.Reason != tc.reason) {
			t.Errorf("%s: %+v", name, state)
		}
	}
}

// Granted rights stay granted until other content is deployed. A version that requires no rights
// has no such condition.
func TestPermissionsAreReportedOfWhatIsDeployed(t *testing.T) {
	t.Parallel()
	status := &corev1alpha1.PackageStatus{}
	v := view{pkg: newPackage(), outcome: outcome{step: stepDeploy, content: &load.Content{Rules: readPods}}}
	reportPermissions(status, v)
	for _, other := range []outcome{{step: stepSync}, {step: stepLoad}, {step: stepDeploy, writeErr: errors.New("conflict"), content: &load.Content{}}} {
		v.outcome = other
		if reportPermissions(status, v); !meta.IsStatusConditionTrue(status.Conditions, corev1alpha1.ConditionPermissionsGranted) {
			t.Errorf("step %d: %v", other.step, status.Conditions)
		}
	}
	v.outcome = outcome{step: stepDeploy, content: &load.Content{}}
	if reportPermissions(status, v); len(status.Conditions) > 0 {
		t.Error(status.Conditions)
	}
	v.outcome, v.refused = outcome{step: stepPermit}, conditions.State{Reason: corev1alpha1.ReasonAboveCeiling, Message: "requires more"}
	reportPermissions(status, v)
	for _, other := range []outcome{{step: stepLoad}, {step: stepWait}} {
		v.outcome = other
		if reportPermissions(status, v); !meta.IsStatusConditionFalse(status.Conditions, corev1alpha1.ConditionPermissionsGranted) {
			t.Errorf("refused, step %d: %v", other.step, status.Conditions)
		}
	}
	v.outcome = outcome{step: stepSync}
	if reportPermissions(status, v); len(status.Conditions) > 0 {
		t.Errorf("the version that was refused is not wanted any more: %v", status.Conditions)
	}
}

// A change of the ceiling only enqueues packages that request rights and are not deployed.
func TestCeilingChanged(t *testing.T) {
	t.Parallel()
	r, enqueued := newReconciler(t)
	for name, out := range map[string]load.Out{
		"waits": {Content: &load.Content{Rules: readPods}}, "no permissions": {Content: &load.Content{}}, "deployed": {Content: &load.Content{Rules: readPods}, Deployed: start},
	} {
		s := r.of(named(name, image))
		r.loads.Fail(s.state.load, &load.Attempt{Done: true, Out: out})
	}
	r.of(named("idle", image))
	if r.CeilingChanged(); len(enqueued) != 1 || (<-enqueued).Name != "waits" {
		t.Errorf("%d are enqueued", len(enqueued))
	}
}
