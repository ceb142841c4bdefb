package phases_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
	"lockstep.run/lockstep/internal/revisions"
	"lockstep.run/lockstep/test/conformance"
	"lockstep.run/lockstep/test/require"
)

type expectation = conformance.Expectation

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Suite{Operations: map[string]conformance.Operation{
		"ownership-conflict": conformance.Of(contested), "establish": conformance.Of(established), "release": conformance.Of(released),
		"package-health": conformance.Of(healthy),
	}}.Run(t)
}

// contested has packages that bring the same objects, one after the other.
func contested(t *testing.T, in struct {
	// Owners maps objects to their packages.
	Owners   map[string]string
	Packages []struct {
		Name    string
		Objects []string
	}
}, want *expectation,
) {
	table := claims.NewTable(func(objects.Owner) {})
	claim := func(name string, wanted ...string) error {
		owner := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Name: name}, UID: types.UID(name)}
		keys := []objects.Key{}
		for _, o := range wanted {
			keys = append(keys, objects.Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: o})
		}
		return table.Claim(owner, keys)
	}

	for object, name := range in.Owners {
		require.NoError(t, claim(name, object))
	}

	installed, refused := []string{}, []string{}
	for _, p := range in.Packages {
		if claim(p.Name, p.Objects...) == nil {
			installed = append(installed, p.Name)
		} else {
			refused = append(refused, p.Name)
		}
	}

	want.Set("installed", installed)
	want.Set("refused", refused)
	want.Fails("error", len(refused) > 0, refused)
}

// planned plays a scenario of testdata/README.md. It returns the plan, and the names of the objects
// that it writes.
func planned(t *testing.T, text string) (p *player, plan phases.Plan, written map[phases.Action][]string) {
	t.Helper()
	p = newPlayer()
	for line := range strings.Lines(text) {
		if err := p.do(strings.TrimRight(line, "\n")); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}

	plan, written = phases.Next(p.snapshot()), map[phases.Action][]string{}
	all := plan.Steps
	if plan.Entry != nil {
		all = append(all, plan.Entry.Steps...)
	}

	for _, s := range all {
		written[s.Action] = append(written[s.Action], s.Key.Name)
	}

	return p, plan, written
}

// established has a revision whose objects might exist already. It adopts objects without a
// controller.
func established(t *testing.T, in struct {
	Control  *bool
	Desired  []string
	Existing []struct{ Name, Controller string }
}, want *expectation,
) {
	if in.Control != nil && !*in.Control {
		want.Otherwise(conformance.NoInactiveRevision)
	}

	text := "revision app-1 claimed opened=1\n  all:"
	for _, name := range in.Desired {
		text += " Config/" + name + "=1,IfNoController"
	}

	for _, o := range in.Existing {
		by := " by=" + o.Controller
		switch o.Controller {
		case "":
			by = " free unknown"
		case "self":
			by = " value=1"
		}
		text += "\nlive Config/" + o.Name + by
	}

	_, plan, written := planned(t, text)
	blocking := plan.Reports[0].Blocking
	want.Set("created", written[phases.Create])
	want.Set("updated", append(written[phases.Adopt], written[phases.Change]...))
	want.Fails("error", len(blocking) > 0, blocking)
}

// released deletes a revision whose objects stay.
func released(t *testing.T, in struct {
	Objects []struct {
		Name   string
		Exists *bool
		Owners []struct {
			UID        string
			Controller bool
		}
	}
}, want *expectation,
) {
	text, live := "revision app-1 claimed opened=1 removing keepall\n  all:", ""
	for _, o := range in.Objects {
		text += " Config/" + o.Name + "=1"
		if o.Exists != nil && !*o.Exists {
			live += "\ngone Config/" + o.Name
			continue
		}
		by := " free unlabelled"
		for _, owner := range o.Owners {
			if owner.Controller {
				by = map[bool]string{true: " value=1", false: " by=" + owner.UID}[owner.UID == "self"]
			}
		}
		live += "\nlive Config/" + o.Name + by
	}

	_, _, written := planned(t, text+live)
	want.Is("updates", len(written[phases.Release]), written)
	want.Fails("error", len(written[phases.Delete]) > 0, written)
}

// healthy treats the revision as one phase, and its runtime as the next.
func healthy(t *testing.T, in struct {
	HasRuntime        bool
	Revision, Runtime *string
}, want *expectation,
) {
	text, live, opened := "", "", 0
	phase := func(name string, state *string) {
		opened++
		text += fmt.Sprintf("\n  %s: Deployment/%s=1", name, name)
		switch {
		case state == nil:
			live += "\ngone Deployment/" + name
		case *state == "True":
			live += "\nlive Deployment/" + name + " value=1 ready"
		default:
			live += "\nlive Deployment/" + name + " value=1 sick"
		}
	}

	phase("revision", in.Revision)
	if in.HasRuntime {
		phase("runtime", in.Runtime)
	}

	_, plan, _ := planned(t, fmt.Sprintf("revision app-1 claimed succeeded opened=%d", opened)+text+live)
	got := revisions.Available(revisions.AvailabilityInput{Current: &plan.Reports[0], CurrentName: "app-1", Opened: opened, Succeeded: true})
	blames := ""
	for _, ph := range slices.Backward(plan.Reports[0].Phases) {
		if ph.Ready < ph.Total {
			blames = ph.Name
		}
	}

	want.Is("healthy", map[bool]string{true: "True", false: "False"}[got.Status], got.Message)
	want.Is("blames", blames, got.Message)
}
