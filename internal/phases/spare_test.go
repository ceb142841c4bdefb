package phases_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
)

// Namespaces and definitions that leave a package are released as long as the current revision has
// objects in them. So are Namespaces that the package did not create.
func TestSpared(t *testing.T) {
	t.Parallel()
	namespace := func(name string) objects.Key { return objects.Key{Kind: "Namespace", Name: name} }
	definition := objects.Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "boats.example.com"}
	config := func(namespace string) objects.Key {
		return objects.Key{Kind: "ConfigMap", Namespace: namespace, Name: "c"}
	}
	boat := objects.Key{Group: "example.com", Kind: "Boat", Namespace: "other", Name: "b"}
	crew := objects.Key{Group: "example.com", Kind: "Crew", Namespace: "other", Name: "b"}
	const schema = `{"spec":{"group":"example.com","names":{"kind":"Boat"}}}`
	revision := func(number int64, keys ...objects.Key) *phases.Revision {
		r := &phases.Revision{Number: number, Phases: []phases.Phase{{Name: "one"}}}
		r.Identify(string(rune('a'+number)), types.UID(rune('a'+number)), "1")
		for _, key := range keys {
			d := &objects.Desired{Key: key, Version: "v1", Content: content, Collision: objects.CollisionProtectionPrevent}
			if key == definition {
				d.Raw = []byte(schema)
			}
			r.Phases[0].Objects = append(r.Phases[0].Objects, d)
		}
		r.Restore(phases.Recorded{Claimed: true, Succeeded: true, Started: 1})
		return r
	}

	delegated := func(r *phases.Revision, key objects.Key) *phases.Revision {
		r.Phases[0].Delegated = append(r.Phases[0].Delegated, &objects.Desired{Key: key})
		return r
	}

	removing := func(r *phases.Revision) *phases.Revision {
		r.Restore(phases.Recorded{Claimed: true, Started: 1, Removing: true})
		return r
	}

	for reason, tc := range map[string]struct {
		key       objects.Key
		revisions []*phases.Revision
		adopted   bool
		policy    phases.State
		want      string // part of the reason; empty for a deletion
	}{
		"a namespace with objects of the next revision":  {namespace("shop"), []*phases.Revision{revision(1, namespace("shop")), revision(2, config("shop"))}, false, phases.State{}, "revision 2 still has 1 object in it"},
		"a namespace with objects that agents write":     {namespace("shop"), []*phases.Revision{revision(1, namespace("shop")), delegated(revision(2, config("x")), config("shop"))}, false, phases.State{}, "revision 2 still has 1 object in it"},
		"a namespace that is also retained":              {namespace("shop"), []*phases.Revision{revision(1, namespace("shop")), revision(2, config("shop"))}, false, phases.State{Retain: everything}, "revision 2"},
		"a namespace whose objects leave, too":           {namespace("shop"), []*phases.Revision{revision(1, namespace("shop")), revision(2, config("other"))}, false, phases.State{}, ""},
		"of a revision that a user deletes":              {namespace("shop"), []*phases.Revision{removing(revision(1, namespace("shop"))), revision(2, config("shop"))}, false, phases.State{}, "revision 2"},
		"of the only revision, which a user deletes":     {namespace("shop"), []*phases.Revision{removing(revision(1, namespace("shop")))}, false, phases.State{}, ""},
		"a stray namespace":                              {namespace("shop"), []*phases.Revision{revision(2, config("shop"))}, false, phases.State{Strays: []objects.Key{namespace("shop")}}, "revision 2"},
		"an empty namespace that was adopted":            {namespace("shop"), []*phases.Revision{revision(1, namespace("shop")), revision(2, config("other"))}, true, phases.State{}, "existed before"},
		"an adopted namespace of a deleted package":      {namespace("shop"), []*phases.Revision{revision(1, namespace("shop"))}, true, phases.State{Teardown: true}, "existed before"},
		"a created namespace of a deleted package":       {namespace("shop"), []*phases.Revision{revision(1, namespace("shop"), config("shop"))}, false, phases.State{Teardown: true}, ""},
		"a namespace of Kubernetes":                      {namespace("kube-public"), []*phases.Revision{revision(1, namespace("kube-public")), revision(2, config("x"))}, false, phases.State{}, "Kubernetes"},
		"a namespace of Kubernetes of a deleted package": {namespace("default"), []*phases.Revision{revision(1, namespace("default"))}, false, phases.State{Teardown: true}, "Kubernetes"},
		"a definition with instances":                    {definition, []*phases.Revision{revision(1, definition), revision(2, boat)}, false, phases.State{}, "revision 2 still has 1 instance of it"},
		"a definition without instances":                 {definition, []*phases.Revision{revision(1, definition), revision(2, crew)}, false, phases.State{}, ""},
		"a stray definition with a known group":          {definition, []*phases.Revision{revision(2, crew)}, false, phases.State{Strays: []objects.Key{definition}}, "revision 2"},
		"of a phase that a later revision replaces":      {namespace("shop"), []*phases.Revision{revision(1, namespace("shop"))}, false, phases.State{Teardown: true, Controllers: phases.Controllers{Replaced: true}}, "a later revision"},
		"of a phase without a later revision that stays": {namespace("shop"), []*phases.Revision{revision(1, namespace("shop"))}, false, phases.State{Teardown: true, Controllers: related("a", "b", "c")}, ""},
		"a definition of a deleted package":              {definition, []*phases.Revision{revision(1, definition, boat)}, false, phases.State{Teardown: true}, ""},
	} {
		state := tc.policy
		state.Owner = objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ClusterObjectDeployment", Name: "app"}, UID: ownerUID}
		state.Revisions, state.Applied, state.Now = tc.revisions, phases.AppliedObjects{}, noon
		state.Live = map[objects.Key]phases.LiveState{tc.key: {Synced: true, Object: &objects.Observed{
			UID: "live", Watched: true, Adopted: tc.adopted, Owners: controlledBy("ClusterObjectDeployment", "app", string(ownerUID)),
		}}}
		for _, r := range tc.revisions {
			for _, d := range r.Phases[0].Objects {
				if d.Key != tc.key {
					state.Live[d.Key] = phases.LiveState{Synced: true}
				}
			}
		}
		plan := phases.Next(&state)
		action := phases.None
		for _, step := range plan.Steps {
			if step.Key == tc.key {
				action = step.Action
			}
		}
		want, why := phases.Delete, ""
		if tc.want != "" {
			want = phases.Release
		}
		for _, s := range plan.Spared {
			why += s.Reason
		}
		if action != want || (why == "") != (tc.want == "") || !strings.Contains(why, tc.want) {
			t.Errorf("%s: %s, because %q", reason, action, why)
		}
	}
}

// Namespaces and definitions are not recreated for an immutable field if the current revision has
// objects in them.
func TestSparedFromRecreation(t *testing.T) {
	t.Parallel()
	const schema = `{"spec":{"group":"example.com","names":{"kind":"Boat"}}}`
	definition := objects.Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "boats.example.com"}
	for reason, tc := range map[string]struct {
		key, other objects.Key
		adopted    bool
		want       string // part of the message; empty for a recreation
	}{
		"a definition with instances":    {key: definition, other: objects.Key{Group: "example.com", Kind: "Boat", Namespace: "n", Name: "b"}, want: "revision 1 still has 1 instance of it"},
		"a definition without instances": {key: definition, other: objects.Key{Group: "example.com", Kind: "Crew", Namespace: "n", Name: "b"}},
		"a namespace with objects":       {key: objects.Key{Kind: "Namespace", Name: "n"}, other: objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "c"}, want: "revision 1 still has 1 object in it"},
		"an empty namespace":             {key: objects.Key{Kind: "Namespace", Name: "n"}, other: objects.Key{Kind: "ConfigMap", Namespace: "m", Name: "c"}},
		"an adopted namespace":           {key: objects.Key{Kind: "Namespace", Name: "n"}, other: objects.Key{Kind: "ConfigMap", Namespace: "m", Name: "c"}, adopted: true, want: "it existed before"},
		"an object of another kind":      {key: objects.Key{Kind: "Service", Namespace: "n", Name: "s"}, other: objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "c"}},
	} {
		r := &phases.Revision{Number: 1, Phases: []phases.Phase{{Name: "one", Objects: []*objects.Desired{
			{Key: tc.key, Version: "v1", Content: content, Recreate: true, Raw: []byte(schema)}, {Key: tc.other, Version: "v1", Content: content},
		}}}}
		r.Restore(phases.Recorded{Claimed: true, Started: 1})
		live := &objects.Observed{UID: "live", Watched: true, Adopted: tc.adopted, Owners: controlledBy("ClusterObjectDeployment", "app", string(ownerUID))}
		plan := phases.Next(&phases.State{
			Owner:     objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ClusterObjectDeployment", Name: "app"}, UID: ownerUID},
			Revisions: []*phases.Revision{r}, Live: map[objects.Key]phases.LiveState{tc.key: {Synced: true, Object: live}, tc.other: {Synced: true}},
			Applied: phases.AppliedObjects{tc.key: &phases.Applied{Content: former, UID: "live", Failure: &phases.Failure{
				Content: content, UID: "live", Immutable: true, Message: "field is immutable", Until: noon.Add(1),
			}}}, Now: noon,
		})
		recreated := false
		if plan.Entry != nil {
			for _, step := range plan.Entry.Steps {
				recreated = recreated || step.Action == phases.Recreate
			}
		}
		said := ""
		for _, b := range plan.Reports[0].Blocking {
			said += b.Message
		}
		if recreated != (tc.want == "") || !strings.Contains(said, tc.want) || tc.want != "" && !strings.Contains(said, "field is immutable; it is not recreated, because ") {
			t.Errorf("%s: recreated %t, %q", reason, recreated, said)
		}
	}
}

// Each object is named once.
func TestDescribeSpared(t *testing.T) {
	t.Parallel()
	shop, site := phases.Spared{Key: objects.Key{Kind: "Namespace", Name: "shop"}, Reason: "Kubernetes itself needs it"},
		phases.Spared{Key: objects.Key{Kind: "Namespace", Name: "site"}, Reason: "it existed before the package adopted it"}
	got := phases.DescribeSpared(phases.DescribeSpared("", []phases.Spared{shop}), []phases.Spared{shop, site})
	want := "Namespace shop was released instead of deleted: Kubernetes itself needs it. " +
		"Namespace site was released instead of deleted: it existed before the package adopted it."
	require.Equal(t, want, got)
}

// Adopting a Namespace marks it, and later writes keep the mark. No other object is marked.
func TestAdoptedNamespaceIsMarked(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		kind         string
		controlled   bool
		marked, want bool
	}{
		"adopted":                       {"Namespace", false, false, true},
		"adopted before":                {"Namespace", true, true, true},
		"created":                       {"Namespace", true, false, false},
		"an adopted object of its kind": {"ConfigMap", false, false, false},
	} {
		key := objects.Key{Kind: tc.kind, Name: "shop"}
		r := &phases.Revision{Number: 1, Phases: []phases.Phase{{Name: "one", Objects: []*objects.Desired{{Key: key, Version: "v1", Content: content, Collision: objects.CollisionProtectionIfNoController}}}}}
		r.Restore(phases.Recorded{Claimed: true, Started: 1})
		live := &objects.Observed{UID: "live", Watched: true, Adopted: tc.marked}
		if tc.controlled {
			live.Owners = controlledBy("ClusterObjectDeployment", "app", string(ownerUID))
		}
		plan := phases.Next(&phases.State{
			Owner:     objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ClusterObjectDeployment", Name: "app"}, UID: ownerUID},
			Revisions: []*phases.Revision{r}, Live: map[objects.Key]phases.LiveState{key: {Synced: true, Object: live}}, Applied: phases.AppliedObjects{}, Now: noon,
		})
		steps := plan.Steps
		if plan.Entry != nil {
			steps = append(steps, plan.Entry.Steps...)
		}
		if len(steps) != 1 || steps[0].Metadata.Adopted != tc.want {
			t.Errorf("%s: %+v", reason, steps)
		}
	}
}
