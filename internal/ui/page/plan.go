package page

import (
	"fmt"

	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

const pagePlanBytes = 256 << 10 // of a plan as text

// Plan is what a version or a revision of a package would do.
type Plan struct {
	Target progress.Target
	// What names the change, such as "version 2.0.0", and Command is what prints the same as Text.
	What, Text, Command string
	// Feasible: it changes something, and is not refused.
	Feasible bool
	// Version with its digest, and the generation of the package that was planned for; or a revision that awaits its activation.
	Version, Digest string
	Generation      int64
	Revision        *Revision
}

type planView struct {
	Path, Name, Text, Command string
	// Action does what the plan shows; nil where the page changes nothing. Confirm says what it is bound to.
	Action  *action
	Confirm string
}

// PlanOf shows a plan as the command of it prints it.
func PlanOf(f Frame, of Plan) *Page {
	t := of.Target
	p := newPage(f, "plan", "Plan of "+t.Name+", "+of.What, "packages", "")
	v := planView{Path: PackagePath(t), Name: t.Name, Text: terminal.Text(short(of.Text, pagePlanBytes)), Command: of.Command}
	switch {
	case !f.Changes || !of.Feasible:
	case of.Revision != nil && of.Revision.Awaiting:
		a := activation(f, t, of.Revision.Number, of.Revision.UID)
		v.Action, v.Confirm = &a, fmt.Sprintf("Revision %d takes over, with the objects that the plan has. It is refused where that revision is another one by then.", of.Revision.Number)
	case of.Version != "" && of.Digest != "":
		v.Action = &action{Label: "Upgrade to " + short(of.Version, pageLineBytes), To: f.Base + PackagePath(t) + "/" + ActionUpgrade, Of: []Field{
			{FieldVersion, of.Version}, {FieldDigest, of.Digest}, {FieldGeneration, fmt.Sprint(of.Generation)},
		}}
		v.Confirm = fmt.Sprintf("The constraint of the package becomes version %s. It is refused where, at the press of the button, this version is offered with another digest than %s, or the package has changed since the plan was made.", of.Version, of.Digest)
	}
	p.Of = v
	return p
}
