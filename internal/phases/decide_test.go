package phases_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
)

var (
	noon    = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	content = digest("content")
	former  = digest("former content")
	tmpl    = digest("template")
	shown   = digest("what the template shows")
	labels  = digest("labels")
	group   = corev1alpha1.GroupVersion.String()
)

func controlledBy(kind, name, uid string) []objects.Reference {
	return apinames.Default.References([]metav1.OwnerReference{{APIVersion: group, Kind: kind, Name: name, UID: types.UID(uid), Controller: ptr.To(true)}}, nil)
}

// upToDate is an object of ours in its desired state.
func upToDate() phases.DecisionInput {
	return phases.DecisionInput{
		Desired: &objects.Desired{
			Key: objects.Key{Group: "apps", Kind: "Deployment", Namespace: "n", Name: "x"}, Version: "v1",
			Content: content, Collision: objects.CollisionProtectionPrevent,
		},
		Labels: labels,
		Live: phases.LiveState{Synced: true, Object: &objects.Observed{
			UID: "live", ResourceVersion: "7", Owners: controlledBy("ObjectDeployment", "app", "deployment"),
			Projection: shown, ProjectedBy: tmpl, Watched: true,
		}},
		Applied:     phases.Applied{Content: content, Labels: labels, Template: tmpl, Baseline: shown, UID: "live"},
		Owner:       objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: "app"}, UID: "deployment"},
		Controllers: related("set", "earlier set", "later set"),
		Now:         noon,
	}
}

func related(own, predecessor, successor types.UID) phases.Controllers {
	return phases.Controllers{Own: sets.New(own), Predecessors: sets.New(predecessor), Successors: sets.New(successor)}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	live := func(change func(*objects.Observed)) func(*phases.DecisionInput) {
		return func(c *phases.DecisionInput) { change(c.Live.Object) }
	}
	record := func(change func(*phases.Applied)) func(*phases.DecisionInput) {
		return func(c *phases.DecisionInput) { change(&c.Applied) }
	}
	absent := func(c *phases.DecisionInput) { c.Live.Object = nil }
	by := func(kind, name, uid string) func(*phases.DecisionInput) {
		return live(func(o *objects.Observed) { o.Owners = controlledBy(kind, name, uid) })
	}
	free := live(func(o *objects.Observed) { o.Owners = nil })
	another := record(func(r *phases.Applied) { r.UID = "another" })
	mode := func(m objects.CollisionProtection) func(*phases.DecisionInput) {
		return func(c *phases.DecisionInput) { c.Desired.Collision = m }
	}
	adoptableBy := func(name string) func(*phases.DecisionInput) {
		return live(func(o *objects.Observed) { o.AdoptableBy = name })
	}
	failed := func(of objects.Digest, collision bool) func(*phases.DecisionInput) {
		return func(c *phases.DecisionInput) {
			c.Applied.Failure = &phases.Failure{Content: of, Collision: collision, Message: "refused", Until: noon.Add(time.Minute)}
			if c.Live.Object != nil {
				c.Applied.Failure.UID = c.Live.Object.UID
			}
		}
	}
	immutable := func(of objects.Digest) func(*phases.DecisionInput) {
		return func(c *phases.DecisionInput) {
			c.Desired.Recreate, c.Applied.Content = true, former
			c.Applied.Failure = &phases.Failure{Content: of, UID: "live", Immutable: true, Message: "field is immutable", Preflight: true, Until: noon.Add(time.Minute)}
		}
	}
	relabel := func(c *phases.DecisionInput) { c.Labels, c.Relabel = digest("other labels"), true }
	drifted := live(func(o *objects.Observed) { o.Projection = digest("drift") })
	corrected := func(times int, ago time.Duration) func(*phases.DecisionInput) {
		return record(func(r *phases.Applied) {
			r.Contention = &phases.Contention{Corrections: times, Corrected: noon.Add(-ago), OtherManager: "tuner"}
		})
	}
	terminating := live(func(o *objects.Observed) { o.Terminating, o.Held = true, objects.HeldBy([]string{"a/b", "c/d"}, nil) })
	collected := func(ago time.Duration) func(*phases.DecisionInput) {
		return live(func(o *objects.Observed) { o.CollectedSince = noon.Add(-ago).Unix() })
	}
	unwatched := live(func(o *objects.Observed) { o.Watched = false })
	unlabelled := func(c *phases.DecisionInput) { c.Live.Object.Watched, c.Live.Unlabelled = false, true }
	looked := func(ago time.Duration) func(*phases.DecisionInput) {
		return record(func(r *phases.Applied) { r.ReadAt = noon.Add(-ago) })
	}
	leaves := func(c *phases.DecisionInput) { c.Desired, c.Confirm = nil, true }

	for _, tc := range []struct {
		name   string
		reason string
		given  []func(*phases.DecisionInput)
		want   phases.Action
		// The message contains the first text, and the decision is due again at retry.
		says  string
		retry time.Duration
	}{
		{
			name: "as wanted", want: phases.None,
			reason: "converged means zero requests",
		},
		{
			name: "not served", given: []func(*phases.DecisionInput){absent, func(c *phases.DecisionInput) { c.Live.Unserved, c.Live.Synced = true, false }},
			want: phases.Wait, says: "does not serve apps/v1 Deployment",
			reason: "an operator of an earlier phase can install the API",
		},
		{
			name: "core kind not served", given: []func(*phases.DecisionInput){absent, func(c *phases.DecisionInput) { c.Live.Unserved = true; c.Desired.Key.Group = "" }},
			want: phases.Wait, says: "does not serve v1 Deployment",
			reason: "the core group has no name",
		},
		{
			name: "watch starting", given: []func(*phases.DecisionInput){func(c *phases.DecisionInput) { c.Live.Synced = false }},
			want: phases.Wait, says: "is starting",
			reason: "an object can exist before its watch has synced",
		},
		{
			name: "watch broken", given: []func(*phases.DecisionInput){func(c *phases.DecisionInput) { c.Live.Synced, c.Live.Err = false, "forbidden" }},
			want: phases.Wait, says: "cannot be watched: forbidden",
			reason: "without a watch the state is unknown",
		},
		{
			name: "absent", given: []func(*phases.DecisionInput){absent}, want: phases.Create,
			reason: "it is wanted, no matter who deleted it",
		},
		{
			name: "terminating", given: []func(*phases.DecisionInput){terminating}, want: phases.Wait, says: "held by finalizer a/b, c/d",
			reason: "an object on its way out is waited for, never written",
		},
		{
			name: "terminating without finalizers", given: []func(*phases.DecisionInput){live(func(o *objects.Observed) { o.Terminating = true })},
			want: phases.Wait, says: "is being deleted", reason: "the grace period of a pod",
		},
		{
			name: "the garbage collector has time", given: []func(*phases.DecisionInput){terminating, collected(119 * time.Second)},
			want: phases.Wait, says: "is being deleted", retry: time.Second, reason: "dependents can take a while to end",
		},
		{
			name: "the garbage collector does not act", given: []func(*phases.DecisionInput){terminating, collected(2 * time.Minute)},
			want: phases.Delete, reason: "it can know the object under a version that is no longer served",
		},
		{
			name: "the garbage collector does not act on an object of others", given: []func(*phases.DecisionInput){terminating, collected(time.Hour), by("ObjectSet", "other", "other")},
			want: phases.Wait, reason: "its owner deletes it",
		},
		{
			name: "terminating, unlabelled, just read", given: []func(*phases.DecisionInput){terminating, unwatched, looked(time.Second)},
			want: phases.Wait, says: "is being deleted", retry: time.Second,
			reason: "no watch reports the deletion of an object without our label",
		},
		{
			name: "terminating, unlabelled, read before", given: []func(*phases.DecisionInput){terminating, unwatched, looked(2 * time.Second)},
			want: phases.Confirm, says: "is being deleted", reason: "so it is read again",
		},
		{
			name: "terminating, the answer to our own write", given: []func(*phases.DecisionInput){terminating, unwatched},
			want: phases.Wait, reason: "the watch shows it soon",
		},
		{
			name: "reference taken off", given: []func(*phases.DecisionInput){free}, want: phases.Correct,
			reason: "this process knows that the object is its own",
		},
		{
			name: "reference taken off while no manager ran", given: []func(*phases.DecisionInput){free, another, func(c *phases.DecisionInput) { c.WrittenBefore, c.Live.Object.Wrote = true, true }},
			want: phases.Correct, reason: "after a restart, a complete phase and our applied fields prove the same",
		},
		{
			name: "uncontrolled, in a complete phase", given: []func(*phases.DecisionInput){free, another, func(c *phases.DecisionInput) { c.WrittenBefore = true }},
			want: phases.Refuse, says: "nothing controls it", reason: "another client replaced our object",
		},
		{
			name: "uncontrolled with our fields, phase never complete", given: []func(*phases.DecisionInput){free, another, live(func(o *objects.Observed) { o.Wrote = true })},
			want: phases.Refuse, says: "nothing controls it", reason: "an earlier install left it behind",
		},
		{
			name: "of another set of ours", given: []func(*phases.DecisionInput){by("ObjectSet", "app-1", "set")}, want: phases.Adopt,
			reason: "an earlier engine had sets control objects",
		},
		{
			name: "of the set of its revision", given: []func(*phases.DecisionInput){by("ObjectSet", "app-2", "current set"), func(c *phases.DecisionInput) { c.Set = "current set" }},
			want: phases.None, reason: "an earlier engine left it in this state, and no write is needed",
		},
		{
			name: "of the set of its revision, drifted", given: []func(*phases.DecisionInput){
				by("ObjectSet", "app-2", "current set"), func(c *phases.DecisionInput) { c.Set = "current set" }, live(func(o *objects.Observed) { o.Projection = digest("other") }),
			},
			want: phases.Correct, reason: "the correction is the next write",
		},
		{
			name: "of a predecessor", given: []func(*phases.DecisionInput){by("ObjectSet", "first", "earlier set")}, want: phases.Adopt,
			reason: "spec.previous hands it over",
		},
		{
			name: "of a predecessor, none known", given: []func(*phases.DecisionInput){by("ObjectSet", "first", "earlier set"), func(c *phases.DecisionInput) { c.Controllers.Predecessors = nil }},
			want: phases.Refuse, says: "controlled by ObjectSet first", reason: "Takes may be nil",
		},
		{
			name: "of a successor", given: []func(*phases.DecisionInput){by("ObjectSet", "second", "later set")},
			want: phases.Wait, says: "handed over to ObjectSet second", reason: "it is the successor's to write",
		},
		{
			name: "of a successor, unlabelled", given: []func(*phases.DecisionInput){by("ObjectSet", "second", "later set"), unwatched, looked(time.Minute)},
			want: phases.Confirm, says: "handed over", reason: "no watch reports when the successor releases it",
		},
		{
			name: "of our namesake", given: []func(*phases.DecisionInput){by("ObjectDeployment", "app", "before the restore")}, want: phases.Adopt,
			reason: "a restore from backup gives owners other UIDs",
		},
		{
			name: "of a stranger", given: []func(*phases.DecisionInput){by("Helm", "release", "rival")}, want: phases.Refuse, says: "controlled by Helm release",
			reason: "Prevent",
		},
		{
			name: "of a stranger, IfNoController", given: []func(*phases.DecisionInput){by("Helm", "release", "rival"), mode(objects.CollisionProtectionIfNoController)},
			want: phases.Refuse, says: "controlled by Helm release", reason: "it has a controller",
		},
		{
			name: "of a stranger, None", given: []func(*phases.DecisionInput){by("Helm", "release", "rival"), mode(objects.CollisionProtectionNone)},
			want: phases.Adopt, reason: "None takes over from everyone outside of the engine",
		},
		{
			name: "of a stranger, unlabelled, read before", given: []func(*phases.DecisionInput){by("Helm", "release", "rival"), unwatched, looked(30 * time.Second)},
			want: phases.Confirm, says: "controlled by Helm release", reason: "no watch reports when it is free",
		},
		{
			name: "of a stranger, unlabelled, just read", given: []func(*phases.DecisionInput){by("Helm", "release", "rival"), unwatched, looked(time.Second)},
			want: phases.Refuse, says: "controlled by Helm release", retry: 29 * time.Second, reason: "not at once",
		},
		{
			name: "uncontrolled", given: []func(*phases.DecisionInput){free, another}, want: phases.Refuse, says: "nothing controls it",
			reason: "Prevent takes no object over",
		},
		{
			name: "uncontrolled, IfNoController", given: []func(*phases.DecisionInput){free, another, mode(objects.CollisionProtectionIfNoController)},
			want: phases.Adopt, reason: "nothing controls it",
		},
		{
			name: "uncontrolled, adoptable", given: []func(*phases.DecisionInput){free, another, adoptableBy("n/app")}, want: phases.Adopt,
			reason: "its annotation names the package",
		},
		{
			name: "uncontrolled, adoptable by another", given: []func(*phases.DecisionInput){free, another, adoptableBy("app")}, want: phases.Refuse,
			says: "nothing controls it", reason: "that is the ClusterPackage of the same name",
		},
		{
			name: "of a stranger, adoptable", given: []func(*phases.DecisionInput){by("Helm", "release", "rival"), adoptableBy("n/app")}, want: phases.Refuse,
			says: "controlled by Helm release", reason: "its controller has not released it",
		},
		{
			name: "uncontrolled, None", given: []func(*phases.DecisionInput){free, another, mode(objects.CollisionProtectionNone)}, want: phases.Adopt,
			reason: "None includes IfNoController",
		},
		{
			name: "an unknown mode", given: []func(*phases.DecisionInput){free, another, mode("Whatever")}, want: phases.Refuse,
			reason: "unknown modes are Prevent",
		},
		{
			name: "after a restart", given: []func(*phases.DecisionInput){record(func(r *phases.Applied) { *r = phases.Applied{} })}, want: phases.Verify,
			reason: "the last write is not known",
		},
		{
			name: "replaced by an object of the same name", given: []func(*phases.DecisionInput){another}, want: phases.Verify,
			reason: "the record is of another object",
		},
		{
			name: "other content", given: []func(*phases.DecisionInput){record(func(r *phases.Applied) { r.Content = former })}, want: phases.Change,
			reason: "the revision changed the object",
		},
		{
			name: "a field that cannot be changed, Recreate", given: []func(*phases.DecisionInput){immutable(content)}, want: phases.Recreate,
			reason: "the object's annotation permits recreating it",
		},
		{
			name:  "a field that cannot be changed, Recreate, after a restart",
			given: []func(*phases.DecisionInput){immutable(content), record(func(r *phases.Applied) { r.Content = objects.Digest{} })},
			want:  phases.Recreate, reason: "the last write is not known, and the dry run was refused all the same",
		},
		{
			name: "a field that could not be changed, Recreate", given: []func(*phases.DecisionInput){immutable(former)}, want: phases.Change,
			reason: "the refusal was about other content",
		},
		{
			name:  "a field that cannot be changed, Recreate, of another object",
			given: []func(*phases.DecisionInput){immutable(content), record(func(r *phases.Applied) { r.Failure.UID = "gone" })},
			want:  phases.Change, reason: "the refusal was about a deleted object",
		},
		{
			name: "a field that cannot be changed", given: []func(*phases.DecisionInput){immutable(content), func(c *phases.DecisionInput) { c.Desired.Recreate = false }},
			want: phases.Wait, says: "immutable", retry: time.Minute, reason: "an object without the annotation is not deleted",
		},
		{
			name: "a field that cannot be changed, Recreate by the live object",
			given: []func(*phases.DecisionInput){
				immutable(content), func(c *phases.DecisionInput) { c.Desired.Recreate = false }, live(func(o *objects.Observed) { o.Recreate = true }),
			},
			want: phases.Recreate, reason: "the target of a rollback can lack the annotation",
		},
		{
			name: "a field that cannot be changed, Recreate and Keep", given: []func(*phases.DecisionInput){immutable(content), func(c *phases.DecisionInput) { c.Desired.Keep = true }},
			want: phases.Wait, says: "immutable", retry: time.Minute, reason: "Keep comes first",
		},
		{
			name:  "a field that cannot be changed, Recreate, kept by its annotation",
			given: []func(*phases.DecisionInput){immutable(content), live(func(o *objects.Observed) { o.Keep = true })},
			want:  phases.Wait, says: "immutable", retry: time.Minute, reason: "Keep wins, in the template or on the object",
		},
		{
			name: "a field that cannot be changed, Recreate, of our namesake", given: []func(*phases.DecisionInput){immutable(content), by("ObjectDeployment", "app", "before the restore")},
			want: phases.Recreate, reason: "a restore from backup gives owners other UIDs",
		},
		{
			name: "a field that cannot be changed, Recreate, of a stranger", given: []func(*phases.DecisionInput){immutable(content), by("Helm", "release", "rival")},
			want: phases.Refuse, reason: "only objects of ours are deleted",
		},
		{
			name: "a field that cannot be changed, Recreate, on its way out", given: []func(*phases.DecisionInput){immutable(content), terminating},
			want: phases.Wait, says: "is being deleted", reason: "it is created after the deletion",
		},
		{
			name: "other content and drift", given: []func(*phases.DecisionInput){record(func(r *phases.Applied) { r.Content = former }), drifted, corrected(9, 0)},
			want: phases.Change, reason: "a change is not a fight",
		},
		{
			name: "compared with another template", given: []func(*phases.DecisionInput){live(func(o *objects.Observed) { o.ProjectedBy = digest("other") }), drifted},
			want: phases.Verify, reason: "such a projection does not show drift",
		},
		{
			name: "in another version", given: []func(*phases.DecisionInput){live(func(o *objects.Observed) { o.ProjectedBy = objects.Digest{} })},
			want: phases.Verify, reason: "its relation to the template is unknown",
		},
		{
			name: "in another version, with the projection that matched the template", given: []func(*phases.DecisionInput){live(func(o *objects.Observed) {
				o.Projection, o.ProjectedBy = digest("converted"), objects.Digest{}
			}), record(func(r *phases.Applied) { r.Converted = digest("converted") })},
			want: phases.None, reason: "only the status has changed",
		},
		{
			name: "changed in another version", given: []func(*phases.DecisionInput){live(func(o *objects.Observed) {
				o.Projection, o.ProjectedBy = digest("changed"), objects.Digest{}
			}), record(func(r *phases.Applied) { r.Converted = digest("converted") })},
			want: phases.Verify, reason: "the change can be to fields outside of the template",
		},
		{
			name: "drift", given: []func(*phases.DecisionInput){drifted}, want: phases.Correct, reason: "the first time at once",
		},
		{
			name: "drift, the fifth time", given: []func(*phases.DecisionInput){drifted, corrected(4, 0)}, want: phases.Correct, reason: "five are free",
		},
		{
			name: "drift, the sixth time", given: []func(*phases.DecisionInput){drifted, corrected(5, 300*time.Millisecond)},
			want: phases.Wait, says: "field manager tuner changes it back", retry: 700 * time.Millisecond, reason: "then it is a fight",
		},
		{
			name: "drift of known fields", given: []func(*phases.DecisionInput){drifted, corrected(5, 0), record(func(r *phases.Applied) { r.Contention.Fields = []string{".data.a", ".data.b"} })},
			want: phases.Wait, says: "field manager tuner changes .data.a, .data.b back", retry: time.Second, reason: "both writers have to agree on the field",
		},
		{
			name: "drift, by an unknown manager", given: []func(*phases.DecisionInput){drifted, corrected(5, 0), record(func(r *phases.Applied) { r.Contention.OtherManager = "" })},
			want: phases.Wait, says: "another writer", retry: time.Second, reason: "managedFields might not show it",
		},
		{
			name: "drift, after the pause", given: []func(*phases.DecisionInput){drifted, corrected(5, time.Second)}, want: phases.Correct,
			reason: "the engine does not give up",
		},
		{
			name: "drift, long fought", given: []func(*phases.DecisionInput){drifted, corrected(1000, time.Minute)},
			want: phases.Wait, says: "tuner", retry: 4 * time.Minute, reason: "the pause ends at five minutes",
		},
		{
			name: "deleted, the sixth time", given: []func(*phases.DecisionInput){absent, corrected(5, 300*time.Millisecond)},
			want: phases.Wait, says: "someone deletes it again and again", retry: 700 * time.Millisecond, reason: "a fight like any other",
		},
		{
			name: "deleted, after the pause", given: []func(*phases.DecisionInput){absent, corrected(5, time.Second)}, want: phases.Create,
			reason: "the engine does not give up",
		},
		{
			name: "deleted, other content", given: []func(*phases.DecisionInput){absent, corrected(9, 0), record(func(r *phases.Applied) { r.Content = former })},
			want: phases.Create, reason: "a revision that adds it is not a fight",
		},
		{
			name: "reference taken off, the sixth time", given: []func(*phases.DecisionInput){free, corrected(5, 300*time.Millisecond)},
			want: phases.Wait, says: "field manager tuner takes the owner reference", retry: 700 * time.Millisecond, reason: "a fight like any other",
		},
		{
			name: "taken over under None, the sixth time",
			given: []func(*phases.DecisionInput){
				by("Helm", "release", "rival"), mode(objects.CollisionProtectionNone), corrected(5, 300*time.Millisecond),
			},
			want: phases.Wait, says: "Helm release takes it over again and again", retry: 700 * time.Millisecond, reason: "a fight like any other",
		},
		{
			name: "managedFields wiped", given: []func(*phases.DecisionInput){live(func(o *objects.Observed) { o.Unrecorded = true })}, want: phases.Correct,
			reason: "a field that leaves the template later would stay",
		},
		{
			name:  "managedFields wiped, the sixth time",
			given: []func(*phases.DecisionInput){live(func(o *objects.Observed) { o.Unrecorded = true }), corrected(5, 300*time.Millisecond)},
			want:  phases.Wait, says: "wipes its managedFields", retry: 700 * time.Millisecond, reason: "a fight like any other",
		},
		{
			name: "labels, before success", given: []func(*phases.DecisionInput){relabel, func(c *phases.DecisionInput) { c.Relabel = false }}, want: phases.None,
			reason: "labels gate no phase",
		},
		{
			name: "labels, after success", given: []func(*phases.DecisionInput){relabel}, want: phases.Relabel, reason: "a raised spec.version follows the rollout",
		},
		{
			name: "failed, not due", given: []func(*phases.DecisionInput){absent, failed(content, false)}, want: phases.Wait, says: "refused", retry: time.Minute,
			reason: "back-off",
		},
		{
			name: "collided, not due", given: []func(*phases.DecisionInput){absent, failed(content, true)}, want: phases.Refuse, says: "refused", retry: time.Minute,
			reason: "an object without our label stands in the way",
		},
		{
			name: "failed, due", given: []func(*phases.DecisionInput){absent, failed(content, false), func(c *phases.DecisionInput) { c.Now = noon.Add(time.Minute) }},
			want: phases.Create, reason: "tried again",
		},
		{
			name: "failed with other content", given: []func(*phases.DecisionInput){absent, failed(former, false)}, want: phases.Create,
			reason: "another content is tried at once",
		},
		{
			name: "failed, and deleted since", given: []func(*phases.DecisionInput){failed(content, false), absent}, want: phases.Create,
			reason: "a user deletes an object because it could not be changed",
		},
		{
			name:  "failed, and another object by now",
			given: []func(*phases.DecisionInput){failed(content, false), live(func(o *objects.Observed) { o.UID = "other" })}, want: phases.Verify,
			reason: "the refusal was about its predecessor",
		},
		{
			name: "failed, and as wanted by now", given: []func(*phases.DecisionInput){failed(content, false)}, want: phases.None,
			reason: "another client put it right: a failure stops writes only",
		},
		{
			name: "labels refused", given: []func(*phases.DecisionInput){relabel, failed(content, false)}, want: phases.None, retry: time.Minute,
			reason: "refused labels do not make an object unready",
		},
		{
			name: "failed, then stolen", given: []func(*phases.DecisionInput){failed(content, false), by("Helm", "release", "rival")}, want: phases.Refuse,
			says: "controlled by Helm release", reason: "the owner comes first",
		},
		{
			name: "deleted, as confirmed", given: []func(*phases.DecisionInput){leaves, absent, record(func(r *phases.Applied) { *r = phases.Applied{Gone: true} })},
			want: phases.None, reason: "a GET confirmed it",
		},
		{
			name: "deleted, by the watch", given: []func(*phases.DecisionInput){leaves, absent}, want: phases.Confirm,
			reason: "an object that lost our label looks deleted too",
		},
		{
			name: "stray that went", given: []func(*phases.DecisionInput){leaves, absent, func(c *phases.DecisionInput) { c.Confirm = false }}, want: phases.None,
			reason: "no object waits for it",
		},
		{
			name: "removal, API gone", given: []func(*phases.DecisionInput){leaves, absent, func(c *phases.DecisionInput) { c.Live.Unserved, c.Live.Synced = true, false }},
			want: phases.None, reason: "objects are deleted with their API",
		},
		{
			name: "removal, watch starting", given: []func(*phases.DecisionInput){leaves, absent, func(c *phases.DecisionInput) { c.Live.Synced = false }},
			want: phases.Wait, says: "is starting", reason: "it can exist",
		},
		{
			name: "removal, the last try failed", given: []func(*phases.DecisionInput){leaves, failed(objects.Digest{}, false)},
			want: phases.Wait, says: "refused", retry: time.Minute, reason: "back-off",
		},
		{
			name: "removal, a write failed before", given: []func(*phases.DecisionInput){leaves, failed(content, false)}, want: phases.Delete,
			reason: "that is not evidence about a removal",
		},
		{
			name: "removal", given: []func(*phases.DecisionInput){leaves}, want: phases.Delete, reason: "ours",
		},
		{
			name: "removal, of our set", given: []func(*phases.DecisionInput){leaves, by("ObjectSet", "app-1", "set")}, want: phases.Delete, reason: "ours too",
		},
		{
			name: "removal, of our namesake", given: []func(*phases.DecisionInput){leaves, by("ObjectDeployment", "app", "before the restore")}, want: phases.Delete,
			reason: "restored from a backup",
		},
		{
			name: "removal, of a predecessor", given: []func(*phases.DecisionInput){leaves, by("ObjectSet", "first", "earlier set")}, want: phases.None,
			reason: "it was not taken over, and the predecessor lives",
		},
		{
			name: "removal, of a successor", given: []func(*phases.DecisionInput){leaves, by("ObjectSet", "second", "later set")}, want: phases.None,
			reason: "handed over",
		},
		{
			name: "removal, of a stranger", given: []func(*phases.DecisionInput){leaves, by("Helm", "release", "rival")}, want: phases.None, reason: "taken",
		},
		{
			name: "removal, uncontrolled", given: []func(*phases.DecisionInput){leaves, free}, want: phases.Release,
			reason: "the garbage collector takes references off when an owner is deleted with its objects kept, and leaves our labels",
		},
		{
			name: "removal, uncontrolled, read and not watched yet", given: []func(*phases.DecisionInput){leaves, free, unwatched}, want: phases.Release,
			reason: "the event of the read state follows, and is not awaited",
		},
		{
			name: "removal, uncontrolled, without our label", given: []func(*phases.DecisionInput){leaves, free, unlabelled}, want: phases.None,
			reason: "it has no label of ours",
		},
		{
			name: "removal, uncontrolled, after a restart", given: []func(*phases.DecisionInput){leaves, free, another, live(func(o *objects.Observed) { o.Wrote = true })},
			want: phases.Release, reason: "managedFields prove that it is ours",
		},
		{
			name: "removal, uncontrolled, of others", given: []func(*phases.DecisionInput){leaves, free, another}, want: phases.None,
			reason: "it was never ours",
		},
		{
			name: "removal, uncontrolled, terminating", given: []func(*phases.DecisionInput){leaves, free, terminating}, want: phases.None,
			reason: "others delete it",
		},
		{
			name: "removal, terminating", given: []func(*phases.DecisionInput){leaves, terminating}, want: phases.Wait, says: "a/b", reason: "deleted once",
		},
		{
			name: "removal, terminating, unlabelled", given: []func(*phases.DecisionInput){leaves, terminating, unwatched, looked(time.Minute)}, want: phases.Confirm,
			says: "a/b", reason: "no watch reports its deletion",
		},
		{
			name: "kept by the template", given: []func(*phases.DecisionInput){leaves, func(c *phases.DecisionInput) { c.Keep = true }}, want: phases.Release,
			reason: "data and CRDs outlive their package",
		},
		{
			name: "kept by the object", given: []func(*phases.DecisionInput){leaves, live(func(o *objects.Observed) { o.Keep = true })}, want: phases.Release,
			reason: "by any writer",
		},
		{
			name: "removal, terminating, an ancestor of the owner", given: []func(*phases.DecisionInput){leaves, terminating, func(c *phases.DecisionInput) { c.Reserved = true }}, want: phases.None,
			reason: "it waits for the owner, which would wait for it",
		},
		{
			name: "removal, of a kind that is not stored", given: []func(*phases.DecisionInput){leaves, absent, func(c *phases.DecisionInput) {
				c.Live.Synced, c.Live.Unstored, c.Live.Err = false, true, "cannot list and watch"
			}}, want: phases.None, reason: "no write was possible",
		},
		{
			name: "to keep, terminating", given: []func(*phases.DecisionInput){leaves, terminating, func(c *phases.DecisionInput) { c.Keep = true }}, want: phases.Wait,
			reason: "another client deleted it",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := upToDate()
			for _, change := range tc.given {
				change(&c)
			}
			got := phases.Decide(c)
			if got.Action != tc.want || !strings.Contains(got.Message, tc.says) {
				t.Errorf("%s: got %s, %q; want %s, %q", tc.reason, got.Action, got.Message, tc.want, tc.says)
			}
			if (got.Action == phases.Wait || got.Action == phases.Refuse) && got.Message == "" {
				t.Errorf("%s: %s needs a reason", tc.reason, got.Action)
			}
			want := time.Time{}
			if tc.retry > 0 {
				want = noon.Add(tc.retry)
			}
			if !got.Retry.Equal(want) {
				t.Errorf("%s: retry at %s, want %s", tc.reason, got.Retry, want)
			}
			// Any client can change the annotation that names the revision.
			for _, number := range []int64{1, 99} {
				if c.Live.Object == nil {
					break
				}
				c.Live.Object.Revision = number
				if diff := cmp.Diff(got, phases.Decide(c)); diff != "" {
					t.Errorf("of an object annotated with revision %d it is another decision: %s", number, diff)
				}
			}
		})
	}
}

func TestCollisionNamesTheController(t *testing.T) {
	t.Parallel()
	local := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "app"}, UID: "app"}
	remote := local
	remote.Cluster = "home"
	other := func(remote bool, cluster types.UID) *objects.Reference {
		ref := metav1.OwnerReference{Kind: "ObjectDeployment", Name: "x", UID: "x"}
		return &objects.Reference{OwnerReference: ref, Remote: remote, Namespace: "evil", Cluster: cluster}
	}

	for name, tc := range map[string]struct {
		controller *objects.Reference
		owner      objects.Owner
		want       string
	}{
		"here":                       {other(false, ""), local, "is controlled by ObjectDeployment x: "},
		"of the same home":           {other(true, "home"), remote, "is controlled by ObjectDeployment evil/x: "},
		"of another home":            {other(true, "elsewhere"), remote, "is controlled by ObjectDeployment evil/x of another cluster: "},
		"nothing, here":              {nil, local, "exists already and nothing controls it: take it over by kubectl package adopt"},
		"no action, in a target":     {nil, remote, "exists already and nothing controls it: install with --adopt (spec.collisionProtection: IfNoController) to take it over"},
		"of another home, seen here": {other(true, ""), local, "is controlled by ObjectDeployment evil/x of another cluster: "},
	} {
		if got := phases.Collision(tc.controller, tc.owner); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestAnnotationAlone covers a user in another cluster who can write an object, and therefore the
// annotation that names its owner. An object that the engine has never written is foreign,
// regardless of the annotation.
func TestAnnotationAlone(t *testing.T) {
	t.Parallel()
	owner := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "app"}, UID: "app", Cluster: "home"}
	ref := objects.Reference{
		OwnerReference: metav1.OwnerReference{APIVersion: group, Kind: owner.Kind, Name: owner.Name, UID: owner.UID, Controller: ptr.To(true)},
		Remote:         true, Namespace: owner.Namespace, Cluster: owner.Cluster,
	}
	restored := ref
	restored.UID = "before-the-restore"
	for name, tc := range map[string]struct {
		ref                  objects.Reference
		wrote, before, known bool
		collision            objects.CollisionProtection
		want, gone           phases.Action
	}{
		"forged":                           {ref: ref, want: phases.Refuse, gone: phases.None},
		"forged by the name":               {ref: restored, want: phases.Refuse, gone: phases.None},
		"forged, and to be taken over":     {ref: ref, collision: objects.CollisionProtectionIfNoController, want: phases.Adopt, gone: phases.None},
		"written":                          {ref: ref, wrote: true, want: phases.Verify, gone: phases.Delete},
		"written before a restore":         {ref: restored, wrote: true, want: phases.Adopt, gone: phases.Delete},
		"its fields wiped, since restart":  {ref: ref, known: true, want: phases.Verify, gone: phases.Delete},
		"its fields wiped, before restart": {ref: ref, before: true, want: phases.Verify, gone: phases.Delete},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := phases.DecisionInput{
				Desired: &objects.Desired{Key: objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "c"}, Content: content, Collision: tc.collision},
				Owner:   owner, Now: noon, WrittenBefore: tc.before,
				Live: phases.LiveState{Synced: true, Object: &objects.Observed{UID: "object", Watched: true, Wrote: tc.wrote, Owners: []objects.Reference{tc.ref}}},
			}
			if tc.known {
				c.Applied.UID = "object"
			}
			got := phases.Decide(c)
			if got.Action != tc.want || tc.want == phases.Refuse && !strings.Contains(got.Message, "names ObjectDeployment shop/app in its annotation "+corev1alpha1.OwnersAnnotation) ||
				tc.want == phases.Adopt && !tc.wrote && !got.Foreign {
				t.Errorf("%+v, want %v", got, tc.want)
			}
			c.Desired = nil
			if got := phases.Decide(c); got.Action != tc.gone {
				t.Errorf("an object to go: %+v, want %v", got, tc.gone)
			}
		})
	}
}
