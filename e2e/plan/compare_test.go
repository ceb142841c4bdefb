package plan_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

// changes returns all changes of the plan, refusals included.
func (u *upgrade) changes() []dryrun.Change {
	all := u.plan.Cleanup
	for _, ph := range u.plan.Phases {
		all = append(all[:len(all):len(all)], ph.Changes...)
	}
	return all
}

// expected returns the planned change of each object that the engine reaches.
func (u *upgrade) expected() map[objects.Key]dryrun.Change {
	expected := map[objects.Key]dryrun.Change{}
	for _, c := range u.changes() {
		if c.Reached && c.Action != dryrun.ActionRefuse {
			expected[objects.Key{Group: c.Group, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}] = c
		}
	}
	return expected
}

// follows compares the live objects before and after with the plan.
func (u *upgrade) follows() error {
	var errs []error
	expected := u.expected()
	keys := map[objects.Key]bool{}
	for key := range u.before {
		keys[key] = true
	}
	for key := range u.after {
		keys[key] = true
	}
	for key := range expected {
		keys[key] = true
	}
	for key := range keys {
		want, planned := expected[key]
		if err := compare(want, planned, u.before[key], u.after[key]); err != nil {
			errs = append(errs, fmt.Errorf("%s: the plan has %q: %w", key, want.Action, err))
		}
	}
	return errors.Join(errs...)
}

func compare(want dryrun.Change, planned bool, before, after *unstructured.Unstructured) error {
	var did dryrun.Action
	switch {
	case before == nil && after == nil:
		return errors.New("there is no such object")
	case before == nil:
		did = dryrun.ActionCreate
	case after == nil:
		did = dryrun.ActionDelete
	case before.GetUID() != after.GetUID():
		did = dryrun.ActionReplace
	}
	if did != "" || want.Action == dryrun.ActionCreate || want.Action == dryrun.ActionDelete || want.Action == dryrun.ActionReplace {
		if did != want.Action {
			return fmt.Errorf("but it is %q", did)
		}
		return nil
	}
	fields := changed(before, after)
	if !planned {
		if len(fields) > 0 || owner(before) != owner(after) || version(before) != version(after) {
			return fmt.Errorf("but it changed from %s, version %s to %s, version %s: %v", owner(before), version(before), owner(after), version(after), fields)
		}
		return nil
	}
	// Who has a field is not a difference afterwards.
	for i := range want.Fields {
		want.Fields[i].Managers = nil
	}
	if diff := cmp.Diff(texts(want.Fields), texts(fields)); diff != "" {
		return fmt.Errorf("but these fields differ (-plan +upgrade):\n%s", diff)
	}
	switch want.Action {
	case dryrun.ActionTakeOver:
		if owner(before) == owner(after) || owner(after) != "ObjectDeployment drawn" {
			return fmt.Errorf("but its controller was %s and is %s", owner(before), owner(after))
		}
	case dryrun.ActionRelease:
		if owner(after) != "" || after.GetLabels()[corev1alpha1.CacheLabel] != "" {
			return fmt.Errorf("but it is controlled by %s, labels %v", owner(after), after.GetLabels())
		}
	case dryrun.ActionRelabel:
		if version(before) == version(after) {
			return errors.New("but its version label is the same")
		}
	}
	return nil
}

// changed returns the fields that differ, except fields that controllers of Kubernetes write.
func changed(before, after *unstructured.Unstructured) []dryrun.Field {
	fields := dryrun.Differences(before, after)
	return slices.DeleteFunc(fields, func(f dryrun.Field) bool {
		return f.Path == `metadata.annotations["deployment.kubernetes.io/revision"]`
	})
}

// texts normalises fields, because only some of them have been converted to JSON.
func texts(fields []dryrun.Field) []string {
	var all []string
	for _, f := range fields {
		all = append(all, fmt.Sprintf("%s: %v → %v", f.Path, f.Before, f.After))
	}
	return all
}

func owner(u *unstructured.Unstructured) string {
	if ref := metav1.GetControllerOf(u); ref != nil {
		return ref.Kind + " " + ref.Name
	}
	return ""
}

func version(u *unstructured.Unstructured) string {
	return u.GetLabels()[corev1alpha1.PackageVersionLabel]
}

var resources = map[string]string{
	"configmaps": "ConfigMap", "secrets": "Secret", "services": "Service", "deployments": "Deployment",
	"roles": "Role", "rolebindings": "RoleBinding", "gauges": "Gauge",
}

// writes are the manager's writes of objects by namespace, from the audit log.
func (g *generation) writes(t *testing.T) map[string][]sandbox.Entry {
	t.Helper()
	audit, err := g.env.Audit()
	require.NoError(t, err)
	entries, err := audit.Since(t.Context(), 0, sandbox.ByUser(harness.ManagerUser()), sandbox.Writes(), func(e sandbox.Entry) bool {
		return resources[e.Object.Resource] != "" && !e.DryRun && e.Code < 300
	})
	require.NoError(t, err)
	found := map[string][]sandbox.Entry{}
	for _, e := range entries {
		found[e.Object.Namespace] = append(found[e.Object.Namespace], e)
	}
	return found
}

// audited compares the manager's writes with the plan: each planned change must have been made
// with the right verb, and there must be no other writes.
func (u *upgrade) audited(entries []sandbox.Entry, until time.Time) error {
	wrote := map[objects.Key][]string{}
	for _, e := range entries {
		if e.Received.Before(u.begun) || !e.Received.Before(until) {
			continue
		}
		key := objects.Key{Group: e.Object.Group, Kind: resources[e.Object.Resource], Namespace: e.Object.Namespace, Name: e.Object.Name}
		verb := e.Verb
		if e.Code == 201 {
			verb = "create"
		}
		wrote[key] = append(wrote[key], verb)
	}
	var errs []error
	expected := u.expected()
	for key, c := range expected {
		need := map[dryrun.Action][]string{
			dryrun.ActionCreate: {"create"}, dryrun.ActionDelete: {"delete"}, dryrun.ActionReplace: {"delete", "create"},
		}[c.Action]
		if need == nil {
			need = []string{"patch"}
		}
		for _, verb := range need {
			if !slices.Contains(wrote[key], verb) {
				errs = append(errs, fmt.Errorf("%s: the plan has %s, the audit log has %v", key, c.Action, wrote[key]))
			}
		}
	}
	for key, verbs := range wrote {
		// A template that changed and means the same is applied, and changes nothing.
		same := compare(dryrun.Change{}, false, u.before[key], u.after[key]) == nil
		if _, planned := expected[key]; !planned && !(same && !slices.ContainsFunc(verbs, func(v string) bool { return v != "patch" })) {
			errs = append(errs, fmt.Errorf("%s: the plan has no entry, the audit log has %v (before it: %s)", key, verbs, u.scenario))
		}
	}
	return errors.Join(errs...)
}
