package page

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"html/template"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/diagnose"
	"lockstep.run/lockstep/internal/cli/graph"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/kube/summary"
)

// Observed is one package with its revisions.
type Observed struct {
	// Gone means that the package no longer exists.
	Gone   bool
	State  progress.State
	Report progress.Report

	// Account is the service account that writes the objects; empty for the manager's own.
	Account string
	// Dependencies as the package reports them.
	Dependencies []graph.Edge
	// Revisions, newest first.
	Revisions []Revision

	// Cause is the reason why it is not available; nil until the search ends, and if it is
	// available. CauseNote is the reason why the cause is unknown.
	Cause     *diagnose.Diagnosis
	CauseNote string

	// Note is the reason why the page is outdated.
	Note string
	// Icon is the address of a picture; empty for none.
	Icon template.URL
}

// Icon returns the address of an SVG image that a repository offers. The image is not trusted: in
// an img element it cannot run scripts or load anything.
func Icon(svg []byte) template.URL {
	if len(svg) == 0 {
		return ""
	}
	return template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(svg)) //nolint:gosec // only an image
}

// Revision of a package.
type Revision struct {
	Number              int64
	Version, Image      string
	Cause               string
	Succeeded, Archived bool

	// InCharge of the objects; Awaiting its activation.
	InCharge, Awaiting bool
	Created            metav1.Time
}

// packageHead is the title of the page.
type packageHead struct {
	Target  progress.Target
	Summary summary.Summary
	Tone    Tone
	Kind    string
	What    string
	Age     string
	Also    string
}

// causeCard is the reason why a package is not available, with commands that help.
type causeCard struct {
	Tone        Tone
	Cause, Do   string
	Object      string
	Chain       []diagnose.Link
	Searching   bool
	Note        string
	CommandList []string
}

// phaseItem is a phase with its objects.
type phaseItem struct {
	Step

	// Total objects. Percent of them are ready.
	Total, Percent int
	Objects        []objectItem

	// More is the number of objects that are not shown. Open means that the phase shows why it
	// waits.
	More int
	Open bool
	ID   string
}

// objectItem is an object of a phase.
type objectItem struct {
	Name, Group, Message, Word string
	Tone                       Tone
}

// fact is a property of the package. Code is set for a value to copy.
type fact struct {
	Name, Value string
	Code        bool
}

// revisionItem is a revision with links and commands.
type revisionItem struct {
	Revision
	Age  string
	Word string
	Tone Tone

	// Diff is a link; empty for the first revision.
	Diff string
	// Undo are commands that preview and perform the return to it.
	Undo []string
}

// dependencyItem is a dependency with its state.
type dependencyItem struct {
	Name, Wants, Text, Link, Message string
	Tone                             Tone
	Word                             string
}

// dependencyList is the list of dependencies with the command that shows more.
type dependencyList struct {
	Items   []dependencyItem
	Command string
}

// PackageOf draws a package.
func PackageOf(f Frame, o Observed) *Page {
	t := o.State.Target
	if o.Note != "" {
		f.Notes = append(slices.Clone(f.Notes), o.Note)
	}
	path := PackagePath(t)
	p := newPage(f, "package", t.Name, path+"/stream")
	p.Of = struct {
		progress.Target
		Icon template.URL
	}{t, o.Icon}

	p.fragment("summary", headOf(f, o))
	p.fragment("cause", causeOf(o))
	p.fragment("phases", phasesOf(o))
	p.fragment("facts", factsOf(f, o))
	p.fragment("dependencies", dependenciesOf(f, o))
	p.fragment("revisions", revisionsOf(f, o))
	p.fragment("images", o.Report)
	p.fragment("rights", rightsOf(o))

	return p
}

// headOf returns the title of the page, with its state.
func headOf(f Frame, o Observed) packageHead {
	r := o.Report
	h := packageHead{
		Target: o.State.Target, Summary: r.Summary, Tone: toneOf(r.Summary), Kind: r.Kind, Age: age(r.Created, f.Now),
		What: strings.TrimSpace(r.Package + " " + r.Version),
	}

	if r.Available && r.Summary != summary.Available && r.Summary != summary.Deleting {
		h.Also = "the previous revision is available"
	}
	return h
}

// causeOf returns the reason why a package is not available. Until the search ends, it is the
// message of the status.
func causeOf(o Observed) causeCard {
	c := causeCard{Tone: toneOf(o.Report.Summary), Note: o.CauseNote, CommandList: commandsFor(o)}
	if o.Report.Summary == summary.Available {
		if o.State.Awaiting != "" {
			c.Tone, c.Cause = ToneHold, o.State.Awaiting
		}
		return c
	}

	c.Cause, c.Searching = o.Report.Message, o.Cause == nil && o.CauseNote == ""
	if o.Cause != nil {
		c.Cause, c.Do, c.Object, c.Chain = o.Cause.Cause, o.Cause.Remedy, o.Cause.Object, o.Cause.Chain[:min(len(o.Cause.Chain), ListRows)]
	}

	return c
}

// commandsFor returns useful commands for the current state of a package.
func commandsFor(o Observed) []string {
	flags := o.State.Target.Flags()
	if o.State.Awaiting != "" {
		return []string{"kubectl package rollout diff " + flags, "kubectl package rollout activate " + flags}
	}

	switch o.Report.Summary {
	case summary.Available:
		plan := "kubectl package plan IMAGE " + flags
		if o.Report.PackageRef != nil {
			plan = "kubectl package plan " + flags + " --version VERSION"
		}
		return []string{"kubectl package status " + flags + " --objects", plan}
	case summary.Paused:
		return []string{"kubectl package unpause " + flags}
	case summary.ImagePullError, summary.NotVerified, summary.Invalid, summary.Unresolved:
		return []string{"kubectl package retry " + flags, "kubectl package explain " + flags}
	case summary.Stalled, summary.Unavailable, summary.Progressing:
		all := []string{"kubectl package explain " + flags, "kubectl package rollout status " + flags}
		if o.Report.Summary != summary.Progressing {
			all[1] = "kubectl package retry " + flags
		}
		if len(o.Revisions) > 1 {
			all = append(all, "kubectl package rollout undo "+flags)
		}

		return all
	}

	return []string{"kubectl package explain " + flags}
}

// phasesOf returns the phases with the objects that need attention first.
func phasesOf(o Observed) []phaseItem {
	steps := allSteps(o.State)
	items := make([]phaseItem, 0, len(steps))
	for i, ph := range o.State.Phases {
		item := phaseItem{Step: steps[i], Total: ph.Total, Percent: percent(ph), ID: fmt.Sprintf("phase-%d", i)}
		objects := slices.Clone(ph.Objects)
		if len(objects) == 0 { // if they are unknown, the blocking objects
			for _, b := range o.State.Blocking {
				if b.Phase == ph.Name {
					objects = append(objects, b)
				}
			}
		}

		urgency := func(o progress.Object) int { return slices.Index(mostUrgent, o.State) }
		slices.SortStableFunc(objects, func(a, b progress.Object) int { return urgency(a) - urgency(b) })
		item.More = max(len(objects)-PhaseObjects, 0)
		for _, object := range objects[:len(objects)-item.More] {
			tone := objectTone(object, item.Tone)
			item.Open = item.Open || object.State == progress.ObjectBlocked
			item.Objects = append(item.Objects, objectItem{
				Name: object.Name, Group: object.Group, Message: object.Message, Tone: tone, Word: objectWords[object.State],
			})
		}

		items = append(items, item)
	}

	return items
}

// percent returns the part of a phase that is done, 0 to 100.
func percent(ph progress.Phase) int {
	if ph.Total <= 0 || ph.Deleting && !ph.TornDown() {
		return 0
	}
	return min(100*ph.Ready/ph.Total, 100)
}

// mostUrgent has the states of objects in the order of a phase.
var mostUrgent = []progress.ObjectState{progress.ObjectBlocked, progress.ObjectWritten, progress.ObjectWaiting, progress.ObjectReady}

// factsOf returns the properties of a package, without empty ones.
func factsOf(f Frame, o Observed) []fact {
	r, t := o.Report, o.State.Target
	facts := []fact{{Name: "Package", Value: strings.TrimSpace(r.Package + " " + r.Version)}}
	if r.PackageRef != nil {
		facts = append(facts, fact{Name: "Follows", Value: progress.Followed(r.PackageRef)}, fact{Name: "From", Value: r.Repository})
	}
	facts = append(facts,
		fact{Name: "Component", Value: r.Component}, fact{Name: "Image", Value: r.Image, Code: true}, fact{Name: "Digest", Value: r.Digest, Code: true},
	)
	if r.Revision > 0 {
		facts = append(facts, fact{Name: "Revision", Value: fmt.Sprint(r.Revision)})
	}

	if ref := r.TargetRef; ref != nil {
		facts = append(facts, fact{Name: "Target", Value: "cluster of the kubeconfig in Secret " + ref.KubeconfigSecretRef.Name})
	}
	if len(r.Ignored) > 0 {
		facts = append(facts, fact{Name: "Ignored", Value: strings.Join(r.Ignored, "\n")})
	}
	facts = append(facts, fact{Name: "Namespace", Value: cmp.Or(t.Namespace, "of the cluster")}, fact{Name: "Age", Value: age(r.Created, f.Now)})

	return slices.DeleteFunc(facts, func(f fact) bool { return f.Value == "" })
}

// revisionsOf returns the revisions, newest first. The revision in charge needs no way back.
func revisionsOf(f Frame, o Observed) []revisionItem {
	items := make([]revisionItem, 0, len(o.Revisions))
	for i, r := range o.Revisions[:min(len(o.Revisions), ListRows)] {
		item := revisionItem{Revision: r, Age: age(r.Created, f.Now), Word: "did not succeed", Tone: ToneGone}
		switch {
		case r.Awaiting:
			item.Word, item.Tone = "awaits its activation", ToneHold
		case r.Succeeded:
			item.Word, item.Tone = "succeeded", ToneGood
		case i == 0 && o.Report.Summary == summary.Stalled:
			item.Word, item.Tone = "stuck", ToneBad
		case i == 0:
			item.Word, item.Tone = "being rolled out", ToneBusy
		}

		if i+1 < len(o.Revisions) {
			item.Diff = f.Base + PackagePath(o.State.Target) + fmt.Sprintf("/diff?from=%d&to=%d", o.Revisions[i+1].Number, r.Number)
		}
		if i > 0 && !r.InCharge && !r.Awaiting {
			flags := o.State.Target.Flags()
			item.Undo = []string{
				fmt.Sprintf("kubectl package plan %s --revision %d", flags, r.Number), fmt.Sprintf("kubectl package rollout undo %s --to-revision %d", flags, r.Number),
			}
		}

		items = append(items, item)
	}

	return items
}

// mostDependencies limits the dependencies that are shown.
const mostDependencies = 50

// dependenciesOf returns the dependencies, with links to the packages that satisfy them.
func dependenciesOf(f Frame, o Observed) dependencyList {
	l := dependencyList{Command: "kubectl package deps " + o.State.Target.Flags()}
	for _, e := range o.Dependencies[:min(len(o.Dependencies), mostDependencies)] {
		item := dependencyItem{Name: e.Name, Wants: cmp.Or(strings.TrimSpace(e.Package+" "+e.Range), e.API), Message: e.Message, Tone: ToneGood, Word: "satisfied"}
		if e.Optional {
			item.Wants += ", optional"
		}
		if !e.Satisfied {
			item.Tone, item.Word = ToneBad, "not satisfied"
			if e.Reason == corev1alpha1.ReasonNotAvailable || e.Reason == "" {
				item.Tone, item.Word = ToneWait, "waits"
			}
		}

		if e.To != nil {
			item.Text, item.Link = strings.TrimSpace(e.To.String()+" "+e.Version), f.Base+PackagePath(e.To.Target())
		}
		l.Items = append(l.Items, item)
	}

	return l
}

// rights are the account that writes the objects, and the roles and bindings of the package.
type rights struct {
	By      string
	Brings  []string
	More    int
	Command string
}

// mostRights limits the roles and bindings that are named.
const mostRights = 50

// rightsOf returns the account that writes the objects, and the rights that the package grants.
func rightsOf(o Observed) rights {
	r := rights{By: "the manager, with its own rights"}
	switch {
	case o.Report.TargetRef != nil:
		r.By = "the user of the kubeconfig of its target"
	case o.Account != "":
		r.By = "service account " + o.Account
		r.Command = "kubectl package rbac " + o.State.Target.Flags()
	}

	for _, ph := range o.State.Phases {
		for _, object := range ph.Objects {
			if object.Group == "rbac.authorization.k8s.io" {
				r.Brings = append(r.Brings, object.Name)
			}
		}
	}

	r.More = max(len(r.Brings)-mostRights, 0)
	r.Brings = r.Brings[:len(r.Brings)-r.More]
	return r
}
