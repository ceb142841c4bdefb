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

// BlockKind is the kind of obstacle that an object waits for.
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
	// BlockWait is a temporary obstacle: a deletion, a starting watch.
	BlockWait
	// BlockRemoval is a removal that the account is not allowed to make.
	BlockRemoval
	// BlockUnseen is an object whose last write, or whose probed fields, the watch has not shown
	// yet.
	BlockUnseen
)

// Blocker is an object that a phase waits for.
type Blocker struct {
	Key     objects.Key
	Phase   string
	Message string
	Kind    BlockKind
	// Reason is the Reason of a Failure.
	Reason string
	// NeverReady means that the object has not been ready in any revision.
	NeverReady bool
	// InGrace means that the object is in its readiness grace: it was ready until its generation
	// changed recently.
	InGrace bool
	// Agent means that the message is an agent's, which ends with a remedy.
	Agent bool
}

// Report is the state of one revision.
type Report struct {
	Phases []PhaseReport
	// Blocking are all objects in the way, in the order of the phases.
	Blocking []Blocker
	// Drifted are the objects that others changed and that are left alone.
	Drifted []Blocker
	// Unknown means that an object cannot be judged yet because its watch is filling.
	Unknown bool
	// Controlled are the objects that the revision wrote, in the order of the
	// phases.
	Controlled []objects.Key
	// Completed are Jobs of the revision that no longer exist after their success.
	Completed []objects.Key
}

// PhaseReport is the state of one phase.
type PhaseReport struct {
	Name string
	// Opened means that the phase has started.
	Opened bool
	// Pending objects wait for a write. Written objects show the desired content. Ready objects are
	// written and pass all of their probes. Taken objects are a newer revision's to write. Gone
	// objects were torn down.
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

// Describe names the phase of the first blocker and the problems of its objects, in the words of
// Package Operator, in one line. Objects with the same message are grouped; those that do not fit
// are counted. The remedy of a refusal follows.
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

	// A long text must not cut off the number of the remaining objects and the remedy behind it.
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

// DescribeDrift names the objects that others changed, and counts them if the list is long.
func DescribeDrift(drifted []Blocker) string {
	parts := make([]string, len(drifted))
	for i, d := range drifted {
		parts[i] = d.Key.String() + " " + d.Message
	}
	return "Left as they are by driftPolicy Report: " + counted(parts) + "."
}

// DescribeSpared adds a sentence to a message for each object that is released instead of deleted,
// unless the message has it.
func DescribeSpared(message string, spared []Spared) string {
	for _, s := range spared {
		sentence := fmt.Sprintf("%s was released instead of deleted: %s.", s.Key, s.Reason)
		if !strings.Contains(message, sentence) {
			message = strings.TrimLeft(message+" "+sentence, " ")
		}
	}
	return objects.Truncate(message)
}

// DescribeNotes adds a sentence to a message for each note about an object, unless the message has
// it.
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

// written reports whether every object of a phase shows the desired content.
func (r *Report) written(ph int) bool {
	return r.Phases[ph].Opened && r.Phases[ph].Written == r.Phases[ph].Total
}

// TakenOver reports whether a revision holds nothing that a newer one lacks: each of its objects is
// also one of the newer revision, which has written all objects that the older one might have
// written. The report is the newer revision's.
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

// Apart reports whether a revision certainly shares no object with another one.
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

// wait reports an object that is not written now as blocking. held means that its phase must not be
// entered.
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
	if result.Status == probes.True || withinGrace && r.Succeeded() { // which no longer opens anything
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

// handedOver reports whether the agent of a newer revision takes over the objects of a phase, so
// that r's are no longer judged.
func (p *planner) handedOver(r *Revision, ph int) bool {
	active := p.active()
	if active == nil || active == r || !r.Phases[ph].Delegates() {
		return false
	}
	at := slices.IndexFunc(active.Phases, func(newer Phase) bool { return newer.Name == r.Phases[ph].Name })
	return at >= 0 && at < active.Started()
}

// gate returns the gate to the next phases of r. It returns nil if the objects before them changed
// while they were judged, because their events bring the next plan.
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

// probed returns the resource versions of the objects that probes select in the phases before one.
// held means that all of their probes were true at one moment of the watches. proven means that
// this moment is not before the creation of the revision, and is the same for all of them.
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
				continue // it no longer exists after its success
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

// starting reports whether the watch of a kind is starting.
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
