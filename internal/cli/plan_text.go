package cli

import (
	"fmt"
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/cli/describe"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
)

// planValueWidth is at most how wide one value of a field is shown.
const planValueWidth = 60

// planText shows a plan to a person.
func planText(p *dryrun.Plan, styles terminal.Styles) string {
	t := planPrinter{styles: styles}
	t.head(p)
	t.dependencies(p)
	for i := range p.Phases {
		t.phase(&p.Phases[i])
	}
	if len(p.Cleanup) > 0 {
		if !p.Deletes {
			t.line("")
			t.line(styles.Strong("After the rollout"))
		}
		for i := range p.Cleanup {
			t.change(&p.Cleanup[i], true)
		}
	}
	t.section("Data that may be lost", styles.Bad, lossRows(p.Losses))
	t.section("What may hang", styles.Busy, lossRows(p.Stranded))
	t.section("Rights that are gained", styles.Busy, powerRows(p.Powers))
	t.refusals(p.Refusals)
	for _, w := range p.Warnings {
		t.line(styles.Busy("warning") + ": " + terminal.Line(w))
	}
	t.line("")
	t.line(t.outcome(p))
	return t.out.String()
}

type planPrinter struct {
	styles terminal.Styles
	out    strings.Builder
}

func (t *planPrinter) line(text string) { t.out.WriteString(strings.TrimRight(text, " ") + "\n") }

func (t *planPrinter) head(p *dryrun.Plan) {
	name := strings.ToLower(p.Kind) + " " + p.Name
	if p.Namespace != "" {
		name = strings.ToLower(p.Kind) + " " + p.Namespace + "/" + p.Name
	}
	what := "to be installed"
	if p.Deletes {
		what = "to be deleted"
	}
	if p.From != nil {
		what = fmt.Sprintf("revision %d → %d", p.From.Revision, p.Revision)
		if p.From.Revision == p.Revision {
			what = fmt.Sprintf("revision %d, as it is", p.Revision)
		}
	}
	t.line(t.styles.Strong(terminal.Line(name)) + "  " + what)
	from := dryrun.Release{}
	if p.From != nil {
		from = *p.From
	}
	var rows [][]string
	for _, row := range [][3]string{
		{"package", title(from), title(p.To)}, {"image", from.Image, p.To.Image}, {"folder", "", p.To.Folder}, {"digest", from.Digest, p.To.Digest},
	} {
		was, is := terminal.Line(row[1]), terminal.Line(row[2])
		switch {
		case is == "" || was == is && row[0] == "digest":
		case was == "" || was == is:
			rows = append(rows, []string{"  " + row[0], is})
		default:
			rows = append(rows, []string{"  " + row[0], was + " → " + is})
		}
	}
	for _, line := range terminal.Table(rows) {
		t.line(line)
	}
	t.line("")
}

func title(r dryrun.Release) string { return strings.TrimSpace(r.Package + " " + r.Version) }

// phase shows one phase: its objects that change, and how many do not.
func (t *planPrinter) phase(ph *dryrun.Phase) {
	var changes []*dryrun.Change
	var rest []string
	for i := range ph.Changes {
		if ph.Changes[i].Action != dryrun.ActionRelabel {
			changes = append(changes, &ph.Changes[i])
		}
	}
	if n := len(ph.Changes) - len(changes); n > 0 {
		rest = append(rest, fmt.Sprintf("%d relabelled", n))
	}
	if ph.Unchanged > 0 {
		rest = append(rest, fmt.Sprintf("%d unchanged", ph.Unchanged))
	}
	mark := t.styles.Faint("·")
	if len(changes) > 0 {
		mark = t.styles.Strong("▸")
	}
	text := mark + " " + t.styles.Strong(terminal.Line(ph.Name)) + "  " + t.styles.Faint(strings.Join(rest, ", "))
	if !ph.Reached {
		text += "  " + t.styles.Bad("not reached")
	}
	t.line(text)
	for _, c := range changes {
		t.change(c, ph.Reached)
	}
	for _, name := range ph.Completed {
		t.line("    " + t.styles.Faint("  "+terminal.Line(name)+"  completed earlier, does not run again"))
	}
}

// marks and words of what happens to objects.
var planMarks = map[dryrun.Action]struct{ mark, word string }{
	dryrun.ActionCreate:   {"+", ""},
	dryrun.ActionChange:   {"~", ""},
	dryrun.ActionCorrect:  {"~", "someone changed it: put back"},
	dryrun.ActionTakeOver: {"<", "taken over from "},
	dryrun.ActionReplace:  {"±", "deleted and made anew"},
	dryrun.ActionDelete:   {"-", ""},
	dryrun.ActionRelease:  {"o", "stays, and is nobody's from then on"},
	dryrun.ActionRefuse:   {"✗", "refused"},
}

func (t *planPrinter) paint(a dryrun.Action, text string) string {
	switch a {
	case dryrun.ActionCreate:
		return t.styles.Good(text)
	case dryrun.ActionDelete, dryrun.ActionReplace, dryrun.ActionRefuse:
		return t.styles.Bad(text)
	}
	return t.styles.Busy(text)
}

// change prints one object, and whether it is not reached in a phase that is.
func (t *planPrinter) change(c *dryrun.Change, inPhase bool) {
	as := planMarks[c.Action]
	word := as.word
	if c.Action == dryrun.ActionTakeOver {
		word += c.From
	}
	line := "    " + t.paint(c.Action, as.mark) + " " + terminal.Line(c.Object())
	if word != "" {
		line += "  " + terminal.Line(word)
	}
	if inPhase && !c.Reached && c.Action != dryrun.ActionRefuse {
		line += "  " + t.styles.Faint("not reached")
	}
	t.line(line)
	for _, text := range t.fields(c.Fields) {
		t.line("        " + text)
	}
	if c.Class != "" {
		t.line("        " + t.styles.Faint("what the agent of class "+terminal.Line(c.Class)+" does with the objects in it is not foreseen"))
	}
	if c.Unverified != "" {
		t.line("        " + t.styles.Faint("no dry run: "+terminal.Line(c.Unverified)))
	}
}

func (t *planPrinter) fields(fields []dryrun.Field) []string {
	rows := make([][]string, len(fields))
	for i, f := range fields {
		mark, values := t.styles.Busy("~"), planValue(f.Before)+" → "+planValue(f.After)
		switch {
		case f.Before == nil:
			mark, values = t.styles.Good("+"), planValue(f.After)
		case f.After == nil:
			mark, values = t.styles.Bad("-"), planValue(f.Before)
		}
		rows[i] = []string{mark + " " + terminal.Line(f.Path), values}
		if len(f.Managers) > 0 {
			rows[i] = append(rows[i], t.styles.Faint("set by "+terminal.Line(strings.Join(f.Managers, ", "))))
		}
	}
	return terminal.Table(rows)
}

func planValue(v any) string { return valueText(v, planValueWidth) }

// section lists what an upgrade means beyond its fields.
func (t *planPrinter) section(name string, style func(string) string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	t.line("")
	t.line(t.styles.Strong(name))
	for _, line := range terminal.Table(rows) {
		t.line("    " + style("!") + " " + line)
	}
}

func lossRows(losses []dryrun.DataLoss) [][]string {
	rows := make([][]string, len(losses))
	for i, l := range losses {
		rows[i] = []string{terminal.Line(l.Object), terminal.Line(l.Message)}
	}
	return rows
}

func powerRows(powers []dryrun.PrivilegeGain) [][]string {
	rows := make([][]string, len(powers))
	for i, p := range powers {
		who := p.Subject
		if who == "" {
			who = "whoever it is bound to"
		}
		where := "everywhere"
		if p.Namespace != "" {
			where = "in " + p.Namespace
		}
		by := "by " + p.Role
		if p.Binding != "" {
			by += ", " + p.Binding
		}
		rows[i] = []string{terminal.Line(who), terminal.Line(strings.Join(p.Verbs, ",") + " " + powerOn(p)), where, terminal.Line(by)}
	}
	return rows
}

// powerOn names the resources of a power, such as deployments.apps (web).
func powerOn(p dryrun.PrivilegeGain) string {
	text := strings.Join(describe.Targets(p.APIGroups, p.Resources, p.URLs), ",")
	if len(p.Names) > 0 {
		text += " (" + strings.Join(p.Names, ", ") + ")"
	}
	return text
}

func (t *planPrinter) refusals(refusals []dryrun.Refusal) {
	if len(refusals) == 0 {
		return
	}
	t.line("")
	t.line(t.styles.Strong("The engine would stop at"))
	for _, group := range groupRefusals(refusals) {
		r := group.first
		where := "nothing would be written"
		if r.Phase != "" {
			where = "phase " + r.Phase
		}
		t.line("    " + t.styles.Bad("✗") + " " + terminal.Line(group.Names()) + "  " + t.styles.Faint(terminal.Line(where)))
		t.line("        " + terminal.Line(objects.Truncate(group.Text)))
		if len(r.Fields) > 0 {
			t.line("        " + terminal.Line("immutable: "+strings.Join(r.Fields, ", ")+". "+r.Key().KeepField()))
		}
		if r.Obstacle != nil {
			t.line("        " + terminal.Line(r.Obstacle.Remedy))
		}
	}
}

// refusalGroup has refusals in one phase for one reason.
type refusalGroup struct {
	objects.GroupedMessage
	first *dryrun.Refusal
}

func groupRefusals(refusals []dryrun.Refusal) []refusalGroup {
	var found []refusalGroup
	for i := range refusals {
		r := &refusals[i]
		name := r.Object()
		if name == "" {
			name = "the package"
		}
		one := objects.GroupMessages([]objects.Message{{Object: name, Text: r.Message}})[0]
		at := slices.IndexFunc(found, func(g refusalGroup) bool {
			return g.first.Phase == r.Phase && g.Text == one.Text && len(g.first.Fields)+len(r.Fields) == 0 && g.first.Obstacle == nil && r.Obstacle == nil
		})
		if at < 0 {
			found = append(found, refusalGroup{one, r})
			continue
		}
		found[at].Objects = append(found[at].Objects, name)
	}
	return found
}

func (t *planPrinter) outcome(p *dryrun.Plan) string {
	switch p.Outcome {
	case dryrun.OutcomeNothing:
		return t.styles.Good("Nothing to do") + ": " + p.Summary.String()
	case dryrun.OutcomeRefused:
		return t.styles.Bad("Refused") + ": " + p.Summary.String()
	}
	return t.styles.Strong("Plan") + ": " + p.Summary.String()
}
