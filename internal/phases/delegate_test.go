package phases_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/probes"
)

// delegating returns a revision that has started, with one phase that has a class.
func delegating(number int64, set types.UID, here ...*objects.Desired) *phases.Revision {
	key := objects.Key{Group: corev1alpha1.GroupVersion.Group, Kind: "ObjectSetPhase", Namespace: "n", Name: string(set)}
	r := &phases.Revision{Name: string(set), UID: set, Number: number, Phases: []phases.Phase{{
		Name: "remote", Delegated: here,
		Objects: []*objects.Desired{{Key: key, Content: digest("v1"), Delegate: &objects.Delegate{Class: "far", Set: objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectSet", Namespace: "n", Name: string(set)}, UID: set}}}},
	}}, Probed: sets.New(key.GroupKind()), Results: map[objects.Key]probes.Result{}}
	r.SetClaimed()
	r.SetOpened(1)
	r.Enter(0)
	return r
}

func heldBy(kind, name string, uid types.UID) *objects.Observed {
	return &objects.Observed{UID: "live", ResourceVersion: "1", Watched: true, Owners: apinames.Default.References([]metav1.OwnerReference{{
		APIVersion: corev1alpha1.GroupVersion.String(), Kind: kind, Name: name, UID: uid, Controller: ptr.To(true),
	}}, nil)}
}

// TestDelegates checks that a paused revision changes its ObjectSetPhase and creates none, and that
// the phase of an older revision is not judged while a newer one takes over.
func TestDelegates(t *testing.T) {
	t.Parallel()
	owner := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: "shop"}, UID: "shop"}
	shows := func(r *phases.Revision, content string) (map[objects.Key]phases.LiveState, phases.AppliedObjects) {
		key := r.Phases[0].Objects[0].Key
		return map[objects.Key]phases.LiveState{key: {Synced: true, Object: heldBy("ObjectSet", r.Name, r.UID)}},
			phases.AppliedObjects{key: {Content: digest(content), UID: "live"}}
	}

	t.Run("pause", func(t *testing.T) {
		t.Parallel()
		r := delegating(1, "set-1")
		r.Pause(true)
		r.Account = objects.Account{Namespace: "n", Name: "small"}
		s := &phases.State{Owner: owner, Revisions: []*phases.Revision{r}}
		s.Live, s.Applied = shows(r, "before")
		if plan := phases.Next(s); plan.Entry == nil || plan.Entry.Steps[0].Action != phases.Change || !plan.Entry.Steps[0].Account.IsZero() {
			t.Errorf("paused: %+v", plan)
		}
		s.Live = map[objects.Key]phases.LiveState{r.Phases[0].Objects[0].Key: {Synced: true}}
		if plan := phases.Next(s); plan.Entry != nil || len(plan.Steps) > 0 {
			t.Errorf("paused and absent: %+v", plan)
		}
	})

	t.Run("handover", func(t *testing.T) {
		t.Parallel()
		older, newer := delegating(1, "set-1"), delegating(2, "set-2")
		s := &phases.State{Owner: owner, Revisions: []*phases.Revision{older, newer}}
		s.Live, s.Applied = shows(older, "v1")
		older.Results[older.Phases[0].Objects[0].Key] = probes.Result{Status: probes.False}
		if plan := phases.Next(s); len(plan.Reports[0].Blocking) > 0 {
			t.Errorf("the older one waits for %+v", plan.Reports[0].Blocking)
		}
		s.Revisions = s.Revisions[:1]
		if plan := phases.Next(s); len(plan.Reports[0].Blocking) != 1 {
			t.Errorf("alone: %+v", plan.Reports[0])
		}
	})
}

// TestDelegatedObjects checks that the engine never deletes an object that an agent writes in this
// cluster. An object that loses its class is adopted from the agent, and one that gets a class
// stays for its agent.
func TestDelegatedObjects(t *testing.T) {
	t.Parallel()
	owner := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: "shop"}, UID: "shop"}
	d := &objects.Desired{Key: objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "a"}, Content: digest("v1")}
	byAgent := heldBy("ObjectSetPhase", "set-1-remote", "phase")
	in := phases.DecisionInput{
		Key: d.Key, Owner: owner, Confirm: true, Live: phases.LiveState{Synced: true, Object: byAgent},
		Controllers: phases.Controllers{Own: sets.New[types.UID]("set-1"), Delegated: sets.New[types.UID]("phase")},
	}

	if got := phases.Decide(in); got.Action != phases.None {
		t.Errorf("removal: %v", got.Action)
	}

	in.Desired = d
	if got := phases.Decide(in); got.Action != phases.Adopt || got.Foreign {
		t.Errorf("without a class: %+v", got)
	}

	older := &phases.Revision{Name: "set-1", UID: "set-1", Number: 1, Phases: []phases.Phase{{Name: "remote", Objects: []*objects.Desired{d}}}}
	older.SetClaimed()
	older.SetOpened(1)
	newer := delegating(2, "set-2", d)
	newer.SetSucceeded(true)
	s := &phases.State{Owner: owner, Revisions: []*phases.Revision{older, newer}, Applied: phases.AppliedObjects{}, Live: map[objects.Key]phases.LiveState{
		d.Key: {Synced: true, Object: heldBy(owner.Kind, owner.Name, owner.UID)},
	}}

	for _, step := range phases.Next(s).Steps {
		if step.Action == phases.Delete {
			t.Errorf("deleted although an agent takes it over: %+v", step)
		}
	}

	newer.SetSucceeded(false)
	agent := newer.Phases[0].Objects[0].Key
	s.Controllers = in.Controllers
	s.Live[d.Key], s.Live[agent] = in.Live, phases.LiveState{Synced: true, Object: heldBy("ObjectSet", "set-2", "set-2")}
	s.Live[agent].Object.UID = "phase"
	if plan := phases.Next(s); plan.Entry != nil && plan.Entry.Revision == older || plan.Reports[0].Phases[0].Taken != 1 {
		t.Errorf("the older revision takes it back: %+v", plan)
	}

	newer.SetRemoving()
	adopts := func() (adopts, deletes bool) {
		plan := phases.Next(s)
		for _, step := range plan.Steps {
			deletes = deletes || step.Action == phases.Delete && step.Key == agent
		}
		return plan.Entry != nil && plan.Entry.Steps[0].Action == phases.Adopt && plan.Entry.Steps[0].Key == d.Key, deletes
	}

	s.Controllers.Own = sets.New[types.UID]("set-1", "set-2")
	if adopted, deleted := adopts(); !adopted || deleted {
		t.Errorf("its revision is deleted: handed back %t, deleted %t", adopted, deleted)
	}

	s.Live[d.Key] = phases.LiveState{Synced: true, Object: heldBy(owner.Kind, owner.Name, owner.UID)}
	if _, deleted := adopts(); !deleted {
		t.Error("the ObjectSetPhase stays although it controls no wanted object")
	}

	newer = delegating(2, "set-2")
	newer.SetSucceeded(true)
	s.Revisions[1] = newer
	deleted := false
	for _, step := range phases.Next(s).Steps {
		deleted = deleted || step.Action == phases.Delete && step.Key == d.Key
	}

	if !deleted {
		t.Error("not deleted although no revision wants it")
	}
}
