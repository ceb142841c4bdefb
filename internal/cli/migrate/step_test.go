package migrate

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

func changed(action dryrun.Action) dryrun.Change {
	return dryrun.Change{Action: action, ID: objectdiff.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}}
}

func planOf(changes ...dryrun.Change) *dryrun.Plan {
	return &dryrun.Plan{Phases: []dryrun.Phase{{Name: "config"}, {Name: "deploy", Changes: changes}}}
}

func refused(key objects.Key, message string) *dryrun.Plan {
	return &dryrun.Plan{Refusals: []dryrun.Refusal{{ID: objectdiff.IDOf(key), Message: message}}}
}

// controlled returns the object with a controller, or with owners that do not control it.
func controlled(uid types.UID) object {
	o := object{Key: web.Key, Live: web.Live.DeepCopy()}
	o.Live.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Owner", Name: "o", UID: uid, Controller: ptr.To(uid != "")}})
	return o
}

func terminating() object {
	o := object{Key: web.Key, Live: web.Live.DeepCopy()}
	o.Live.SetDeletionTimestamp(ptr.To(metav1.Now()))
	return o
}

func TestAdopt(t *testing.T) {
	t.Parallel()
	brought := map[objects.Key]string{web.Key: "deploy"}
	type want struct {
		Refusal string
		Done    bool
	}
	for _, tc := range []struct {
		reason string
		given  object
		phases map[objects.Key]string
		plan   *dryrun.Plan
		want   want
	}{
		{
			reason: "nothing controls it", given: controlled(""), phases: brought,
			plan: planOf(changed(dryrun.ActionTakeOver)), want: want{},
		},
		{
			reason: "the package lacks it", given: controlled(""), plan: planOf(),
			want: want{Refusal: "the package does not contain it: a package only adopts its own objects"},
		},
		{
			reason: "another actor controls it", given: controlled(""), phases: brought, plan: refused(web.Key, "is controlled by Release web: leave it out here"),
			want: want{Refusal: "is controlled by Release web: leave it out here"},
		},
		{
			reason: "another object is refused", given: controlled(""), phases: brought,
			plan: &dryrun.Plan{Phases: planOf(changed(dryrun.ActionTakeOver)).Phases, Refusals: refused(objects.Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "front"}, "no").Refusals},
			want: want{},
		},
		{reason: "the package has it", given: controlled("deployment"), phases: brought, plan: planOf(changed(dryrun.ActionCorrect)), want: want{Done: true}},
		{reason: "a former revision has it", given: controlled(""), phases: brought, plan: planOf(), want: want{Done: true}},
		{reason: "it is being deleted", given: terminating(), phases: brought, plan: planOf(), want: want{Refusal: "it is being deleted"}},
	} {
		got := adoptSteps([]object{tc.given}, "deployment", tc.phases, tc.plan)[0]
		require.Equal(t, tc.want, want{got.Refusal, got.Done}, tc.reason)
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	other := dryrun.Change{Action: dryrun.ActionDelete, ID: objectdiff.ID{Kind: "ConfigMap", Namespace: "shop", Name: "old"}}
	for _, tc := range []struct {
		reason  string
		given   object
		cleanup []dryrun.Change
		refusal string
		others  []string
	}{
		{reason: "it is released", given: controlled("deployment"), cleanup: []dryrun.Change{changed(dryrun.ActionRelease)}},
		{
			reason: "it would be deleted", given: controlled("deployment"), cleanup: []dryrun.Change{changed(dryrun.ActionDelete)},
			refusal: "the package would not release it: see kubectl package plan",
		},
		{reason: "it would stay", given: controlled("deployment"), refusal: "the package would not release it: see kubectl package plan"},
		{
			reason: "another object would be deleted with the revision", given: controlled("deployment"), cleanup: []dryrun.Change{other, changed(dryrun.ActionRelease)},
			others: []string{"ConfigMap shop/old"},
		},
		{reason: "it is being deleted", given: terminating(), cleanup: []dryrun.Change{changed(dryrun.ActionRelease)}, refusal: "it is being deleted"},
	} {
		plan := &dryrun.Plan{Cleanup: tc.cleanup}
		steps := releaseSteps([]object{tc.given}, plan)
		require.Equal(t, tc.refusal, steps[0].Refusal, tc.reason)
		require.Equal(t, tc.others, removedBesides(steps, plan), tc.reason)
	}
}
