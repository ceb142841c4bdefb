package phases

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases/refusals"
	"lockstep.run/lockstep/internal/probes"
)

// BlockKind is the kind of thing that an object waits for.
type BlockKind int

const (
	// BlockProbe is a probe that is not true, or an object that is missing.
	BlockProbe BlockKind = iota
	// BlockProbeFalse is a condition probe that is definitely False.
	BlockProbeFalse
	// BlockRefused is a write that was refused, or will be.
	BlockRefused
	// BlockCollision is an object with another controller.
	BlockCollision
	// BlockAPI is a kind that is not served.
	BlockAPI
	// BlockWait is something that passes: a deletion, a starting watch.
	BlockWait
	// BlockRemoval is a removal that the account may not make.
	BlockRemoval
	// BlockUnseen is an object of which the watch has not shown yet the last write, or
	// the fields that probes read.
	BlockUnseen
)

// Blocker is an object that a phase waits for.
type Blocker struct {
	Key     objects.Key
	Phase   string
	Message string
	Kind    BlockKind
	// Reason is that of Failure.
	Reason string
	// NeverReady means that the object has not been ready in any revision.
	NeverReady bool
	// InGrace means that the object is in its readiness grace: it was ready until its
	// generation changed recently.
	InGrace bool
	// Agent means that the message is an agent's: it ends with what to do.
	Agent bool
}

// Report is how one revision stands.
type Report struct {
	Phases []PhaseReport
	// Blocking are all objects in the way, in the order of the phases.
	Blocking []Blocker
	// Drifted are the objects that others changed and that are left so.
	Drifted []Blocker
	// Unknown means that an object could not be judged yet: its watch is filling.
	Unknown bool
	// Controlled are the objects that the revision wrote, in the order of the
	// phases.
	Controlled []objects.Key
	// Completed are Jobs of the revision that are gone after they succeeded.
	Completed []objects.Key
}

// PhaseReport is how one phase stands.
type PhaseReport struct {
	Name string
	// Opened means that the phase has started.
	Opened bool
	// Pending objects wait for a write, Written ones show what the revision wants,
	// Ready ones are written and pass all of their probes, Taken ones are a newer
	// revision's to write, Gone ones were torn down.
	Pending, Written, Ready, Taken, Gone, Total int
}

// InTransition reports whether the revision does not control all of its objects.
func (r *Report) InTransition() bool {
	total := 0
	for i := range r.Phases {
		total += r.Phases[i].Total
	}
	return len(r.Controlled)+len(r.Completed) < total
}

// Complete reports whether every object of every phase is written and passes all of
// its probes.
func (r *Report) Complete() bool {
	for i := range r.Phases {
		if !r.ready(i) {
			return false
		}
	}
	return true
}

// Describe names the phase of the first blocker and what its objects lack, in
// the words of Package Operator, in one line. Objects with the same message are
// grouped; those that do not fit are counted. What to do about a refusal follows.
func Describe(blocking []Blocker) string {
	if len(blocking) == 0 {
		return ""
	}
	var messages []objects.Message
	for _, b := range blocking {
		if b.Phase == blocking[0].Phase {
			messages = append(messages, objects.Message{Object: b.Key.String(), Text: b.Message})
		}
	}
	// The number of the objects that do not fit, and the remedy, are never cut away by a long text before them.
	room := limits.ConditionRunes / 2
	if blocking[0].Agent {
		room = limits.ConditionRunes
	}
	room -= len(", and 10000 more")
	text, more := fmt.Sprintf("Phase %q failed: ", blocking[0].Phase), 0
	for i, group := range objects.GroupMessages(messages) {
		line := group.Names() + ": " + group.Text
		switch {
		case i == 0:
			text = objects.TruncateTo(text+line, room)
		case more > 0 || utf8.RuneCountInString(text+line) > room:
			more += len(group.Objects)
		default:
			text += ", " + line
		}
	}
	if more > 0 {
		text = fmt.Sprintf("%s, and %d more", text, more)
	}
	if b := blocking[0]; b.Kind == BlockRefused || b.Kind == BlockAPI {
		if remedy := refusals.Remedy(b.Key, b.Message); remedy != "" {
			text += ". " + remedy
		}
	}
	return text
}

// DescribeDrift names the objects that others changed; a long list is
// counted.
func DescribeDrift(drifted []Blocker) string {
	parts := make([]string, len(drifted))
	for i, d := range drifted {
		parts[i] = d.Key.String() + " " + d.Message
	}
	return "Left as they are by driftPolicy Report: " + counted(parts) + "."
}

// DescribeSpared adds objects that are released instead of deleted to a message, a sentence each, unless it has them.
func DescribeSpared(message string, spared []Spared) string {
	for _, s := range spared {
		sentence := fmt.Sprintf("%s was released instead of deleted: %s.", s.Key, s.Reason)
		if !strings.Contains(message, sentence) {
			message = strings.TrimLeft(message+" "+sentence, " ")
		}
	}
	return objects.Truncate(message)
}

// DescribeNotes adds notes about objects to a message, a sentence each, unless it has them.
func DescribeNotes(message string, notes map[objects.Key]string) string {
	for _, key := range slices.SortedFunc(maps.Keys(notes), objects.Key.Compare) {
		if sentence := fmt.Sprintf("%s: %s.", key, notes[key]); !strings.Contains(message, sentence) {
			message = strings.TrimLeft(message+" "+sentence, " ")
		}
	}
	return objects.Truncate(message)
}

// counted joins the first few parts and counts the others.
func counted(parts []string) string {
	const shown = 5
	if more := len(parts) - shown; more > 0 {
		parts = append(parts[:shown:shown], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

func (r *Report) init(rev *Revision) {
	r.Phases = make([]PhaseReport, len(rev.Phases))
	for i := range rev.Phases {
		r.Phases[i] = PhaseReport{Name: rev.Phases[i].Name, Opened: i < rev.Started(), Total: len(rev.Phases[i].Objects)}
	}
}

func (r *Report) ready(ph int) bool {
	return r.Phases[ph].Opened && r.Phases[ph].Ready+r.Phases[ph].Taken == r.Phases[ph].Total
}

// written reports whether every object of a phase shows what the revision wants.
func (r *Report) written(ph int) bool {
	return r.Phases[ph].Opened && r.Phases[ph].Written == r.Phases[ph].Total
}

// TakenOver reports whether a revision holds nothing that a newer one has not: each of its objects is one of the newer one's,
// which has written those that the older one may have written. The report is that of the newer one.
func (r *Revision) TakenOver(by *Revision, report *Report) bool {
	if r.incomplete || by.incomplete || len(report.Phases) < len(by.Phases) {
		return false
	}
	for ph := range r.Phases {
		for _, d := range slices.Concat(r.Phases[ph].Objects, r.Phases[ph].Delegated) {
			own, at := by.Find(d.Key)
			if own == nil || ph < r.Opened() && !report.written(at) {
				return false
			}
		}
	}
	return true
}

// Apart reports whether a revision certainly has no object of another one.
func (r *Revision) Apart(from *Revision) bool {
	if r.incomplete || from.incomplete {
		return false
	}
	for ph := range r.Phases {
		shared := func(d *objects.Desired) bool { return from.Wants(d.Key) }
		if slices.ContainsFunc(r.Phases[ph].Objects, shared) || slices.ContainsFunc(r.Phases[ph].Delegated, shared) {
			return false
		}
	}
	return true
}

func (r *Report) pending(ph int) { r.Phases[ph].Pending++ }

func (r *Report) block(b Blocker) { r.Blocking = append(r.Blocking, b) }

// wait reports an object that is not written now as blocking; held means that its phase
// must not be entered.
func (p *planner) wait(r *Revision, ph int, c *DecisionInput, v Decision, report *Report) (held bool) {
	b := p.blocker(r, ph, c.Key, v.Message, blockKind(v.Action, c.Live))
	b.Reason = v.Reason
	report.block(b)
	report.Unknown = report.Unknown || starting(c.Live)
	return v.Action == Refuse || c.holds(!r.Phases[ph].entered)
}

// blocker returns an object of r that a phase waits for.
func (p *planner) blocker(r *Revision, ph int, key objects.Key, message string, kind BlockKind) Blocker {
	return Blocker{Key: key, Phase: r.Phases[ph].Name, Message: message, Kind: kind, NeverReady: !p.wasReady(r, key)}
}

func (p *planner) probe(r *Revision, ph int, key objects.Key, report *Report) {
	if p.handedOver(r, ph) {
		report.Phases[ph].Ready++
		return
	}
	result := r.result(key)
	withinGrace := result.Status != probes.True && p.withinGrace(result)
	if result.Status == probes.True || withinGrace && r.Succeeded() { // which opens nothing any more
		report.Phases[ph].Ready++
		return
	}
	kind := BlockProbe
	switch {
	case result.Unseen:
		kind = BlockUnseen
	case result.ConditionFalse:
		kind = BlockProbeFalse
	}
	b := p.blocker(r, ph, key, strings.Join(result.Messages, ", "), kind)
	b.InGrace, b.Agent = withinGrace, r.Phases[ph].Delegates()
	report.block(b)
}

// handedOver reports whether the agent of a newer revision takes the objects of a phase over,
// so that those of r are not judged any more.
func (p *planner) handedOver(r *Revision, ph int) bool {
	active := p.active()
	if active == nil || active == r || !r.Phases[ph].Delegates() {
		return false
	}
	at := slices.IndexFunc(active.Phases, func(newer Phase) bool { return newer.Name == r.Phases[ph].Name })
	return at >= 0 && at < active.Started()
}

// gate returns what opens the next phases of r, or nil where the objects before them
// changed while they were judged: their events bring the next plan.
func (p *planner) gate(r *Revision) *Gate {
	last := p.last(r)
	probed, proven, held := p.probed(r, last)
	if !held {
		return nil
	}
	g := &Gate{Revision: r, Phase: r.Started(), Last: last, Preopened: last < r.Opened()}
	if !proven {
		g.Probed = probed
	}
	return g
}

// probed returns the resource versions of the objects of the phases before one that
// probes select. Held means that all of their probes were true at one moment of what
// the watches show. Proven means that this is a moment since the revision was there, and
// the same for all of them.
func (p *planner) probed(r *Revision, before int) (probed map[objects.Key]string, proven, held bool) {
	probed, kinds := map[objects.Key]string{}, sets.Set[schema.GroupKind]{}
	proven = true
	for ph := range before {
		for _, d := range r.Phases[ph].Objects {
			gk := d.Key.GroupKind()
			if !r.Probed.Has(gk) {
				continue
			}
			kinds.Insert(gk)
			live := p.Live[d.Key].Object
			if (live == nil || live.Terminating) && p.plan.Jobs.Runs[d.Key].Succeeded(d) {
				continue // it is gone after it succeeded
			}
			if live == nil || r.result(d.Key).Status != probes.True {
				return nil, false, false
			}
			probed[d.Key] = live.ResourceVersion
			proven = proven && (r.Reached.Has(gk) || ph < r.confirmed)
		}
	}
	return probed, proven && len(kinds) < 2, len(probed) == 0 || !p.Changed
}

// starting reports whether the watch of a kind is on its way.
func starting(s LiveState) bool { return !s.Synced && !s.Unserved && s.Err == "" }

func blockKind(a Action, s LiveState) BlockKind {
	switch {
	case a == Refuse:
		return BlockCollision
	case s.Unserved:
		return BlockAPI
	case s.Synced && s.Object != nil && s.Object.Terminating, starting(s):
		return BlockWait
	}
	return BlockRefused
}
