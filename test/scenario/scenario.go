// Package scenario writes the states of the core as text scenarios. The output of Format for the
// state of a failed test is a file for internal/phases/testdata, whose README lists the commands.
package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/probes"
)

// Format returns the scenario that starts with the state and plans. A comment names the parts that
// scenarios cannot express.
func Format(s *phases.State) string {
	w := &writer{State: s, values: map[objects.Digest]string{}}
	for _, r := range s.Revisions {
		w.revision(r)
	}

	for _, key := range slices.SortedFunc(maps.Keys(s.Live), objects.Key.Compare) {
		w.object(key, s.Live[key])
	}

	for _, key := range slices.SortedFunc(maps.Keys(s.Applied), objects.Key.Compare) {
		w.applied(key, s.Applied[key])
	}

	for _, key := range s.Strays {
		w.line("stray %s", name(key))
	}

	w.flag(s.Teardown && !s.Orphan, "teardown")
	w.flag(s.Orphan, "orphan")
	w.flag(s.ReportDrift, "report")
	w.flag(s.Paused, "pause")
	w.lost(s.Changed, "objects changed while they were read")
	w.lost(len(s.Jobs)+len(s.Finished) > 0, "the record of Jobs")
	slices.Sort(w.kinds)
	return strings.Join(w.comments, "") + w.text.String() + strings.Join(slices.Compact(w.kinds), "") + "plan\n"
}

type writer struct {
	*phases.State
	text            strings.Builder
	comments, kinds []string
	values          map[objects.Digest]string
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(&w.text, format+"\n", args...) }

func (w *writer) flag(is bool, command string) {
	if is {
		w.line("%s", command)
	}
}

func (w *writer) lost(is bool, format string, args ...any) {
	if is {
		w.comments = append(w.comments, "# not expressed: "+fmt.Sprintf(format, args...)+"\n")
	}
}

func name(key objects.Key) string {
	kind := key.Kind
	if key.Group != "" {
		kind += "." + key.Group
	}
	return kind + "/" + key.Name
}

var plain = regexp.MustCompile(`^\w{1,20}$`)

// value names a digest: by its text if that is a word, otherwise by its order of appearance.
func (w *writer) value(d objects.Digest, text string) string {
	if w.values[d] == "" {
		if !plain.MatchString(text) {
			text = fmt.Sprintf("v%d", len(w.values)+1)
		}
		w.values[d] = text
	}
	return w.values[d]
}

func (w *writer) revision(r *phases.Revision) {
	words := []string{"revision", r.Name}
	add := func(is bool, word string) {
		if is {
			words = append(words, word)
		}
	}

	add(r.Number != int64(slices.Index(w.Revisions, r)+1), fmt.Sprintf("number=%d", r.Number))
	add(r.Claimed(), "claimed")
	add(r.Opened() > 0, fmt.Sprintf("opened=%d", r.Opened()))
	add(r.Opened() > r.Started(), fmt.Sprintf("ahead=%d", r.Opened()-r.Started()))
	add(!r.Labels.IsZero(), "release="+w.value(r.Labels, r.Metadata.Labels["version"]))
	add(r.Succeeded(), "succeeded")
	add(r.Paused(), "paused")
	add(r.Removing(), "removing")
	add(r.Releasing(), "keepall")
	add(r.Incomplete(), "incomplete")
	add(r.Blocked() != "", "blocked="+strings.ReplaceAll(r.Blocked(), " ", "-"))
	w.line("%s", strings.Join(words, " "))
	for i := range r.Phases {
		w.line("  %s: %s", r.Phases[i].Name, strings.Join(w.wanted(r.Phases[i].Objects), " "))
	}

	w.phaseFlags(r)
	for gk := range r.Probed {
		if !r.Reached.Has(gk) {
			w.kinds = append(w.kinds, "behind "+gk.Kind+"\n")
		}
	}
}

// phaseFlags writes the properties of the first phases of a revision.
func (w *writer) phaseFlags(r *phases.Revision) {
	first := func(is func(*phases.Phase) bool) int {
		n := slices.IndexFunc(r.Phases, func(ph phases.Phase) bool { return !is(&ph) })
		if n < 0 {
			return len(r.Phases)
		}
		w.lost(slices.ContainsFunc(r.Phases[n:], func(ph phases.Phase) bool { return is(&ph) }), "which phases of %s were written", r.Name)
		return n
	}

	entered := first(func(ph *phases.Phase) bool { return ph.Entered() })
	earlier := first(func(ph *phases.Phase) bool { return ph.WrittenBefore() })
	if entered+earlier+r.Confirmed() > 0 {
		w.line("set %s entered=%d earlier=%d proven=%d", r.Name, entered, earlier, r.Confirmed())
	}
}

func (w *writer) wanted(all []*objects.Desired) []string {
	var items []string
	for _, d := range all {
		item := name(d.Key) + "=" + w.value(d.Content, string(d.Raw))
		switch {
		case d.Keep || d.Left:
			item += ",keep"
		case d.Collision != "":
			item += "," + string(d.Collision)
		}
		w.lost(d.Keep && d.Collision != "", "collision protection %s of %s", d.Collision, name(d.Key))
		items = append(items, item)
	}

	return items
}

func (w *writer) object(key objects.Key, is phases.LiveState) {
	switch {
	case is.Unserved:
		w.kinds = append(w.kinds, "unserved "+key.Kind+"\n")
	case !is.Synced:
		w.kinds = append(w.kinds, "starting "+key.Kind+"\n")
	}

	w.lost(is.Err != "" || is.Unstored, "the state of the watch of %s", key.Kind)
	obs := is.Object
	if obs == nil {
		return
	}

	words := []string{"live", name(key)}
	add := func(is bool, word string) {
		if is {
			words = append(words, word)
		}
	}

	if rec := w.Applied[key]; rec == nil {
		add(true, "unknown")
	} else {
		add(!rec.Content.IsZero(), "value="+w.value(rec.Content, ""))
		add(true, w.release(rec))
		add(rec.Baseline != obs.Projection && rec.Template == obs.ProjectedBy, "drifted")
		w.lost(rec.Template != obs.ProjectedBy, "the template that %s was compared with", name(key))
		w.lost(rec.UID != obs.UID, "%s was recreated", name(key))
	}

	add(obs.Revision > 0, fmt.Sprintf("revision=%d", obs.Revision))
	words = append(words, w.controller(obs)...)
	add(is.Unlabelled, "unlabelled")
	add(!obs.Watched && !is.Unlabelled, "unwatched")
	add(obs.Terminating && obs.CollectedSince == 0, "terminating")
	add(obs.CollectedSince != 0, "stuck")
	add(obs.Keep, "keep")
	for _, r := range w.Revisions {
		if result, evaluated := r.Results[key]; evaluated && r.Probed.Has(key.GroupKind()) {
			add(true, probed(result))
			w.lost(!result.GraceSince.IsZero() && !result.GraceSince.Equal(w.Now), "since when %s has been changing", name(key))
			break
		}
	}

	w.line("%s", strings.Join(words, " "))
}

func probed(result probes.Result) string {
	switch {
	case result.Status == probes.True:
		return "ready"
	case !result.GraceSince.IsZero():
		return "grace"
	}
	return "sick"
}

// controller describes the controller of an object, as seen by the owner.
func (w *writer) controller(obs *objects.Observed) []string {
	ref := obs.Controller()
	switch {
	case ref == nil:
		return []string{"free"}
	case ref.UID == w.Owner.UID:
		return nil
	case w.Controllers.Own.Has(ref.UID):
		return []string{"by=set"}
	case w.Controllers.Predecessors.Has(ref.UID):
		return []string{"by=earlier"}
	case w.Controllers.Successors.Has(ref.UID):
		return []string{"by=later"}
	}

	return []string{"by=" + strings.ReplaceAll(ref.Name, " ", "-")}
}

func (w *writer) release(rec *phases.Applied) string {
	if rec.Labels.IsZero() {
		return "release=none"
	}
	return "release=" + w.value(rec.Labels, "")
}

func (w *writer) applied(key objects.Key, rec *phases.Applied) {
	switch {
	case w.Live[key].Object != nil:
	case rec.Gone:
		w.line("confirmed %s", name(key))
	case !rec.Content.IsZero():
		w.line("live %s value=%s %s", name(key), w.value(rec.Content, ""), w.release(rec))
		w.line("gone %s", name(key))
	}

	w.lost(rec.Contention != nil, "contention about %s", name(key))
	if f := rec.Failure; f != nil {
		w.lost(!w.Now.Before(f.Until), "that the failure of %s is over", name(key))
		words := ""
		if f.Preflight {
			words += " preflight"
		}
		if f.Collision {
			words += " collision"
		}
		w.line("fail %s %s%s", name(key), w.value(f.Content, ""), words)
	}
}
