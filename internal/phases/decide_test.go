package phases_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
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

// given are changes to an object of ours in its desired state.
type given []func(*phases.DecisionInput)

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
	referredTo := func(kind string, uid types.UID) func(*phases.DecisionInput) {
		return live(func(o *objects.Observed) {
			o.Owners = apinames.Default.References([]metav1.OwnerReference{{APIVersion: group, Kind: kind, Name: "app-1", UID: uid}}, nil)
		})
	}
	retainedBy := func(set types.UID) func(*phases.DecisionInput) { return referredTo("ObjectSet", set) }
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
		given  given
		want   phases.Action
		// The message contains the first text, and the decision is due again at retry.
		says  string
		retry time.Duration
	}{
		{"as wanted", "converged means zero requests", nil, phases.None, "", 0},
		{"not served", "an operator of an earlier phase can install the API",
			given{absent, func(c *phases.DecisionInput) { c.Live.Unserved, c.Live.Synced = true, false }},
			phases.Wait, "does not serve apps/v1 Deployment", 0},
		{"core kind not served", "the core group has no name",
			given{absent, func(c *phases.DecisionInput) { c.Live.Unserved = true; c.Desired.Key.Group = "" }},
			phases.Wait, "does not serve v1 Deployment", 0},
		{"watch starting", "an object can exist before its watch has synced",
			given{func(c *phases.DecisionInput) { c.Live.Synced = false }}, phases.Wait, "is starting", 0},
		{"watch broken", "without a watch the state is unknown",
			given{func(c *phases.DecisionInput) { c.Live.Synced, c.Live.Err = false, "forbidden" }}, phases.Wait, "cannot be watched: forbidden", 0},
		{"absent", "it is wanted, no matter who deleted it", given{absent}, phases.Create, "", 0},
		{"terminating", "an object on its way out is waited for, never written", given{terminating}, phases.Wait, "held by finalizer a/b, c/d", 0},
		{"terminating without finalizers", "the grace period of a pod",
			given{live(func(o *objects.Observed) { o.Terminating = true })}, phases.Wait, "is being deleted", 0},
		{"the garbage collector has time", "dependents can take a while to end",
			given{terminating, collected(119 * time.Second)}, phases.Wait, "is being deleted", time.Second},
		{"the garbage collector does not act", "it can know the object under a version that is no longer served",
			given{terminating, collected(2 * time.Minute)}, phases.Recreate, "", 0},
		{"the garbage collector does not act on an object to be removed", "the teardown waits for it",
			given{terminating, collected(2 * time.Minute), leaves}, phases.Delete, "", 0},
		{"the garbage collector does not act on an object of others", "its owner deletes it",
			given{terminating, collected(time.Hour), by("ObjectSet", "other", "other")}, phases.Wait, "", 0},
		{"terminating, unlabelled, just read", "no watch reports the deletion of an object without our label",
			given{terminating, unwatched, looked(time.Second)}, phases.Wait, "is being deleted", time.Second},
		{"terminating, unlabelled, read before", "so it is read again",
			given{terminating, unwatched, looked(2 * time.Second)}, phases.Confirm, "is being deleted", 0},
		{"terminating, the answer to our own write", "the watch shows it soon", given{terminating, unwatched}, phases.Wait, "", 0},
		{"reference taken off", "this process knows that the object is its own", given{free}, phases.Correct, "", 0},
		{"reference taken off while no manager ran", "after a restart, a complete phase and our applied fields prove the same",
			given{free, another, func(c *phases.DecisionInput) { c.WrittenBefore, c.Live.Object.Wrote = true, true }}, phases.Correct, "", 0},
		{"uncontrolled, in a complete phase", "another client replaced our object",
			given{free, another, func(c *phases.DecisionInput) { c.WrittenBefore = true }}, phases.Refuse, "nothing controls it", 0},
		{"uncontrolled with our fields, phase never complete", "an earlier install left it behind",
			given{free, another, live(func(o *objects.Observed) { o.Wrote = true })}, phases.Refuse, "nothing controls it", 0},
		{"of another set of ours", "an earlier engine had sets control objects", given{by("ObjectSet", "app-1", "set")}, phases.Adopt, "", 0},
		{"of the set of its revision", "an earlier engine left it in this state, and no write is needed",
			given{by("ObjectSet", "app-2", "current set"), func(c *phases.DecisionInput) { c.Set = "current set" }}, phases.None, "", 0},
		{"of the set of its revision, drifted", "the correction is the next write",
			given{
				by("ObjectSet", "app-2", "current set"), func(c *phases.DecisionInput) { c.Set = "current set" }, live(func(o *objects.Observed) { o.Projection = digest("other") }),
			},
			phases.Correct, "", 0},
		{"of a predecessor", "spec.previous hands it over", given{by("ObjectSet", "first", "earlier set")}, phases.Adopt, "", 0},
		{"of a predecessor, none known", "Takes may be nil",
			given{by("ObjectSet", "first", "earlier set"), func(c *phases.DecisionInput) { c.Controllers.Predecessors = nil }},
			phases.Refuse, "controlled by ObjectSet first", 0},
		{"of a successor", "it is the successor's to write",
			given{by("ObjectSet", "second", "later set")}, phases.Wait, "handed over to ObjectSet second", 0},
		{"of a successor, unlabelled", "no watch reports when the successor releases it",
			given{by("ObjectSet", "second", "later set"), unwatched, looked(time.Minute)}, phases.Confirm, "handed over", 0},
		{"of our namesake", "a restore from backup gives owners other UIDs",
			given{by("ObjectDeployment", "app", "before the restore")}, phases.Adopt, "", 0},
		{"of a stranger", "Prevent", given{by("Helm", "release", "rival")}, phases.Refuse, "controlled by Helm release", 0},
		{"of a stranger, IfNoController", "it has a controller",
			given{by("Helm", "release", "rival"), mode(objects.CollisionProtectionIfNoController)}, phases.Refuse, "controlled by Helm release", 0},
		{"of a stranger, None", "None takes over from everyone outside of the engine",
			given{by("Helm", "release", "rival"), mode(objects.CollisionProtectionNone)}, phases.Adopt, "", 0},
		{"of a stranger, unlabelled, read before", "no watch reports when it is free",
			given{by("Helm", "release", "rival"), unwatched, looked(30 * time.Second)}, phases.Confirm, "controlled by Helm release", 0},
		{"of a stranger, unlabelled, just read", "not at once",
			given{by("Helm", "release", "rival"), unwatched, looked(time.Second)}, phases.Refuse, "controlled by Helm release", 29 * time.Second},
		{"uncontrolled", "Prevent takes no object over", given{free, another}, phases.Refuse, "nothing controls it", 0},
		{"uncontrolled, IfNoController", "nothing controls it",
			given{free, another, mode(objects.CollisionProtectionIfNoController)}, phases.Adopt, "", 0},
		{"uncontrolled, adoptable", "its annotation names the package", given{free, another, adoptableBy("n/app")}, phases.Adopt, "", 0},
		{"uncontrolled, adoptable by another", "that is the ClusterPackage of the same name",
			given{free, another, adoptableBy("app")}, phases.Refuse, "nothing controls it", 0},
		{"of a stranger, adoptable", "its controller has not released it",
			given{by("Helm", "release", "rival"), adoptableBy("n/app")}, phases.Refuse, "controlled by Helm release", 0},
		{"uncontrolled, None", "None includes IfNoController", given{free, another, mode(objects.CollisionProtectionNone)}, phases.Adopt, "", 0},
		{"an unknown mode", "unknown modes are Prevent", given{free, another, mode("Whatever")}, phases.Refuse, "", 0},
		{"after a restart", "the last write is not known", given{record(func(r *phases.Applied) { *r = phases.Applied{} })}, phases.Verify, "", 0},
		{"replaced by an object of the same name", "the record is of another object", given{another}, phases.Verify, "", 0},
		{"other content", "the revision changed the object", given{record(func(r *phases.Applied) { r.Content = former })}, phases.Change, "", 0},
		{"a field that cannot be changed, Recreate", "the object's annotation permits recreating it", given{immutable(content)}, phases.Recreate, "", 0},
		{"a field that cannot be changed, Recreate, after a restart", "the last write is not known, and the dry run was refused all the same",
			given{immutable(content), record(func(r *phases.Applied) { r.Content = objects.Digest{} })}, phases.Recreate, "", 0},
		{"a field that could not be changed, Recreate", "the refusal was about other content", given{immutable(former)}, phases.Change, "", 0},
		{"a field that cannot be changed, Recreate, of another object", "the refusal was about a deleted object",
			given{immutable(content), record(func(r *phases.Applied) { r.Failure.UID = "gone" })}, phases.Change, "", 0},
		{"a field that cannot be changed", "an object without the annotation is not deleted",
			given{immutable(content), func(c *phases.DecisionInput) { c.Desired.Recreate = false }}, phases.Wait, "immutable", time.Minute},
		{"a field that cannot be changed, Recreate by the live object", "the target of a rollback can lack the annotation",
			given{
				immutable(content), func(c *phases.DecisionInput) { c.Desired.Recreate = false }, live(func(o *objects.Observed) { o.Recreate = true }),
			},
			phases.Recreate, "", 0},
		{"a field that cannot be changed, Recreate and Keep", "Keep comes first",
			given{immutable(content), func(c *phases.DecisionInput) { c.Desired.Keep = true }}, phases.Wait, "immutable", time.Minute},
		{"a field that cannot be changed, Recreate, kept by its annotation", "Keep wins, in the template or on the object",
			given{immutable(content), live(func(o *objects.Observed) { o.Keep = true })}, phases.Wait, "immutable", time.Minute},
		{"a field that cannot be changed, Recreate, of our namesake", "a restore from backup gives owners other UIDs",
			given{immutable(content), by("ObjectDeployment", "app", "before the restore")}, phases.Recreate, "", 0},
		{"a field that cannot be changed, Recreate, of a stranger", "only objects of ours are deleted",
			given{immutable(content), by("Helm", "release", "rival")}, phases.Refuse, "", 0},
		{"a field that cannot be changed, Recreate, on its way out", "it is created after the deletion",
			given{immutable(content), terminating}, phases.Wait, "is being deleted", 0},
		{"other content and drift", "a change is not a fight",
			given{record(func(r *phases.Applied) { r.Content = former }), drifted, corrected(9, 0)}, phases.Change, "", 0},
		{"compared with another template", "such a projection does not show drift",
			given{live(func(o *objects.Observed) { o.ProjectedBy = digest("other") }), drifted}, phases.Verify, "", 0},
		{"in another version", "its relation to the template is unknown",
			given{live(func(o *objects.Observed) { o.ProjectedBy = objects.Digest{} })}, phases.Verify, "", 0},
		{"in another version, with the projection that matched the template", "only the status has changed",
			given{live(func(o *objects.Observed) {
				o.Projection, o.ProjectedBy = digest("converted"), objects.Digest{}
			}), record(func(r *phases.Applied) { r.Converted = digest("converted") })},
			phases.None, "", 0},
		{"changed in another version", "the change can be to fields outside of the template",
			given{live(func(o *objects.Observed) {
				o.Projection, o.ProjectedBy = digest("changed"), objects.Digest{}
			}), record(func(r *phases.Applied) { r.Converted = digest("converted") })},
			phases.Verify, "", 0},
		{"drift", "the first time at once", given{drifted}, phases.Correct, "", 0},
		{"drift, the fifth time", "five are free", given{drifted, corrected(4, 0)}, phases.Correct, "", 0},
		{"drift, the sixth time", "then it is a fight",
			given{drifted, corrected(5, 300*time.Millisecond)}, phases.Wait, "field manager tuner changes it back", 700 * time.Millisecond},
		{"drift of known fields", "both writers have to agree on the field",
			given{drifted, corrected(5, 0), record(func(r *phases.Applied) { r.Contention.Fields = []string{".data.a", ".data.b"} })},
			phases.Wait, "field manager tuner changes .data.a, .data.b back", time.Second},
		{"drift, by an unknown manager", "managedFields might not show it",
			given{drifted, corrected(5, 0), record(func(r *phases.Applied) { r.Contention.OtherManager = "" })},
			phases.Wait, "another writer", time.Second},
		{"drift, after the pause", "the engine does not give up", given{drifted, corrected(5, time.Second)}, phases.Correct, "", 0},
		{"drift, long fought", "the pause ends at five minutes", given{drifted, corrected(1000, time.Minute)}, phases.Wait, "tuner", 4 * time.Minute},
		{"deleted, the sixth time", "a fight like any other",
			given{absent, corrected(5, 300*time.Millisecond)}, phases.Wait, "someone deletes it again and again", 700 * time.Millisecond},
		{"deleted, after the pause", "the engine does not give up", given{absent, corrected(5, time.Second)}, phases.Create, "", 0},
		{"deleted, other content", "a revision that adds it is not a fight",
			given{absent, corrected(9, 0), record(func(r *phases.Applied) { r.Content = former })}, phases.Create, "", 0},
		{"reference taken off, the sixth time", "a fight like any other",
			given{free, corrected(5, 300*time.Millisecond)}, phases.Wait, "field manager tuner takes the owner reference", 700 * time.Millisecond},
		{"taken over under None, the sixth time", "a fight like any other",
			given{
				by("Helm", "release", "rival"), mode(objects.CollisionProtectionNone), corrected(5, 300*time.Millisecond),
			},
			phases.Wait, "Helm release takes it over again and again", 700 * time.Millisecond},
		{"managedFields wiped", "a field that leaves the template later would stay",
			given{live(func(o *objects.Observed) { o.Unrecorded = true })}, phases.Correct, "", 0},
		{"managedFields wiped, the sixth time", "a fight like any other",
			given{live(func(o *objects.Observed) { o.Unrecorded = true }), corrected(5, 300*time.Millisecond)},
			phases.Wait, "wipes its managedFields", 700 * time.Millisecond},
		{"labels, before success", "labels gate no phase", given{relabel, func(c *phases.DecisionInput) { c.Relabel = false }}, phases.None, "", 0},
		{"labels, after success", "a raised spec.version follows the rollout", given{relabel}, phases.Relabel, "", 0},
		{"failed, not due", "back-off", given{absent, failed(content, false)}, phases.Wait, "refused", time.Minute},
		{"collided, not due", "an object without our label stands in the way",
			given{absent, failed(content, true)}, phases.Refuse, "refused", time.Minute},
		{"failed, due", "tried again",
			given{absent, failed(content, false), func(c *phases.DecisionInput) { c.Now = noon.Add(time.Minute) }}, phases.Create, "", 0},
		{"failed with other content", "another content is tried at once", given{absent, failed(former, false)}, phases.Create, "", 0},
		{"failed, and deleted since", "a user deletes an object because it could not be changed",
			given{failed(content, false), absent}, phases.Create, "", 0},
		{"failed, and another object by now", "the refusal was about its predecessor",
			given{failed(content, false), live(func(o *objects.Observed) { o.UID = "other" })}, phases.Verify, "", 0},
		{"failed, and as wanted by now", "another client put it right: a failure stops writes only",
			given{failed(content, false)}, phases.None, "", 0},
		{"labels refused", "refused labels do not make an object unready", given{relabel, failed(content, false)}, phases.None, "", time.Minute},
		{"failed, then stolen", "the owner comes first",
			given{failed(content, false), by("Helm", "release", "rival")}, phases.Refuse, "controlled by Helm release", 0},
		{"deleted, as confirmed", "a GET confirmed it",
			given{leaves, absent, record(func(r *phases.Applied) { *r = phases.Applied{Gone: true} })}, phases.None, "", 0},
		{"deleted, by the watch", "an object that lost our label looks deleted too", given{leaves, absent}, phases.Confirm, "", 0},
		{"stray that went", "no object waits for it", given{leaves, absent, func(c *phases.DecisionInput) { c.Confirm = false }}, phases.None, "", 0},
		{"removal, API gone", "objects are deleted with their API",
			given{leaves, absent, func(c *phases.DecisionInput) { c.Live.Unserved, c.Live.Synced = true, false }}, phases.None, "", 0},
		{"removal, watch starting", "it can exist",
			given{leaves, absent, func(c *phases.DecisionInput) { c.Live.Synced = false }}, phases.Wait, "is starting", 0},
		{"removal, the last try failed", "back-off", given{leaves, failed(objects.Digest{}, false)}, phases.Wait, "refused", time.Minute},
		{"removal, a write failed before", "that is not evidence about a removal", given{leaves, failed(content, false)}, phases.Delete, "", 0},
		{"removal", "ours", given{leaves}, phases.Delete, "", 0},
		{"removal, of our set", "ours too", given{leaves, by("ObjectSet", "app-1", "set")}, phases.Delete, "", 0},
		{"removal, of our namesake", "restored from a backup",
			given{leaves, by("ObjectDeployment", "app", "before the restore")}, phases.Delete, "", 0},
		{"removal, of a predecessor", "it was not taken over, and the predecessor lives",
			given{leaves, by("ObjectSet", "first", "earlier set")}, phases.None, "", 0},
		{"removal, of a successor", "handed over", given{leaves, by("ObjectSet", "second", "later set")}, phases.None, "", 0},
		{"removal, of a stranger", "taken", given{leaves, by("Helm", "release", "rival")}, phases.None, "", 0},
		{"removal, uncontrolled", "the garbage collector takes references off when an owner is deleted with its objects kept, and leaves our labels",
			given{leaves, free}, phases.Release, "", 0},
		{"removal, uncontrolled, read and not watched yet", "the event of the read state follows, and is not awaited",
			given{leaves, free, unwatched}, phases.Release, "", 0},
		{"removal, uncontrolled, without our label", "it has no label of ours", given{leaves, free, unlabelled}, phases.None, "", 0},
		{"removal, uncontrolled, after a restart", "managedFields prove that it is ours",
			given{leaves, free, another, live(func(o *objects.Observed) { o.Wrote = true })}, phases.Release, "", 0},
		{"removal, uncontrolled, of others", "it was never ours, or a backup restored it without managedFields", given{leaves, free, another}, phases.None, "", 0},
		{"removal, retained by another owner", "its set finds the object by our label", given{leaves, retainedBy("their set")}, phases.None, "", 0},
		{"removal, with a reference of another deployment", "only sets retain objects", given{leaves, referredTo("ObjectDeployment", "other")}, phases.Release, "", 0},
		{"removal, with a reference of our set", "no record retains it", given{leaves, retainedBy("set")}, phases.Release, "", 0},
		{"removal, with a reference of a predecessor", "it has handed the object over", given{leaves, retainedBy("earlier set")}, phases.Release, "", 0},
		{"removal, uncontrolled, terminating", "others delete it", given{leaves, free, terminating}, phases.None, "", 0},
		{"removal, terminating", "deleted once", given{leaves, terminating}, phases.Wait, "a/b", 0},
		{"removal, terminating, unlabelled", "no watch reports its deletion",
			given{leaves, terminating, unwatched, looked(time.Minute)}, phases.Confirm, "a/b", 0},
		{"kept by the template", "data and CRDs outlive their package",
			given{leaves, func(c *phases.DecisionInput) { c.Keep = true }}, phases.Release, "", 0},
		{"kept by the object", "by any writer", given{leaves, live(func(o *objects.Observed) { o.Keep = true })}, phases.Release, "", 0},
		{"removal, terminating, an ancestor of the owner", "it waits for the owner, which would wait for it",
			given{leaves, terminating, func(c *phases.DecisionInput) { c.Reserved = true }}, phases.None, "", 0},
		{"removal, of a kind that is not stored", "no write was possible",
			given{leaves, absent, func(c *phases.DecisionInput) {
				c.Live.Synced, c.Live.Unstored, c.Live.Err = false, true, "cannot list and watch"
			}},
			phases.None, "", 0},
		{"to keep, terminating", "another client deleted it",
			given{leaves, terminating, func(c *phases.DecisionInput) { c.Keep = true }}, phases.Wait, "", 0},
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
				require.Equal(t, got, phases.Decide(c), fmt.Sprintf("of an object annotated with revision %d it is another decision", number))
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
