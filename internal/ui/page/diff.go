package page

import (
	"fmt"
	"strings"

	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/progress"
)

// pageChanges limits the objects of a comparison, and the fields of each.
const pageChanges = 200 // objects of a comparison, and fields of each

// diffView is the data of the page with a comparison.
type diffView struct {
	Path, Name, Command string
	From, To            int64
	Phases              *phaseChange
	Probes              bool
	Objects             []diffObject
	More                int
}

// phaseChange is a changed order of phases.
type phaseChange struct{ Before, After string }

// diffObject is one object that differs. Sign precedes its name.
type diffObject struct {
	Name, Phase, Word, Sign string
	Tone                    Tone
	Fields                  []diffField
	More                    int
}

// diffField is one field that differs; an empty value is absent.
type diffField struct{ Path, Before, After string }

// diffValueWidth limits a value that differs.
const diffValueWidth = 400

// diffWords are the words, signs and tones of changes.
var diffWords = map[objectdiff.Kind]struct {
	word, sign string
	tone       Tone
}{
	objectdiff.Added: {"added", "+", ToneGood}, objectdiff.Removed: {"removed", "−", ToneBad}, objectdiff.Changed: {"changed", "~", ToneBusy}, objectdiff.Moved: {"moved", "›", ToneBusy},
}

// DiffOf draws the difference between two revisions.
func DiffOf(f Frame, t progress.Target, c objectdiff.Comparison) *Page {
	p := newPage(f, "diff", fmt.Sprintf("%s, revision %d → %d", t.Name, c.From, c.To), "")
	v := diffView{
		Path: PackagePath(t), Name: t.Name, From: c.From, To: c.To, Probes: c.Probes, More: max(len(c.Objects)-pageChanges, 0),
		Command: fmt.Sprintf("kubectl package rollout diff %s --from-revision %d --to-revision %d", t.Flags(), c.From, c.To),
	}

	if c.Phases != nil {
		v.Phases = &phaseChange{strings.Join(c.Phases.Before, ", "), strings.Join(c.Phases.After, ", ")}
	}

	for _, o := range c.Objects[:len(c.Objects)-v.More] {
		item := diffObject{Name: o.Object(), Phase: o.Phases(), Word: diffWords[o.Action].word, Sign: diffWords[o.Action].sign, Tone: diffWords[o.Action].tone}
		item.More = max(len(o.Fields)-pageChanges, 0)
		for _, field := range o.Fields[:len(o.Fields)-item.More] {
			one := diffField{Path: field.Path}
			before, after := field.Text(diffValueWidth)
			if field.Before != nil {
				one.Before = before
			}
			if field.After != nil {
				one.After = after
			}
			item.Fields = append(item.Fields, one)
		}

		v.Objects = append(v.Objects, item)
	}

	p.Of = v
	return p
}
