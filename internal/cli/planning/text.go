package planning

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/cli/describe"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases/refusals"
)

// planValueWidth is the maximum width of one value of a field.
const planValueWidth = 60

// Text prints a plan for people.
func Text(p *dryrun.Plan, styles terminal.Styles) string {
	t := PrinterFor(styles)
	t.head(p)
	t.dependencies(p)
	for i := range p.Phases {
		t.phase(&p.Phases[i])
	}

	if len(p.Cleanup) > 0 {
		if !p.Deletes {
			t.Line("")
			t.Line(styles.Strong("After the rollout"))
		}
		for i := range p.Cleanup {
			t.change(&p.Cleanup[i], true)
		}
	}

	t.Section("Data that might be lost", styles.Bad, LossRows(p.Losses))
	t.Section("Resources that might hang", styles.Busy, LossRows(p.Stranded))
	t.Section("Rights gained", styles.Busy, powerRows(p.Powers))
	t.Refusals(p.Refusals)
	for _, w := range p.Warnings {
		t.Line(styles.Busy("warning") + ": " + terminal.Line(w))
	}

	t.Line("")
	t.Line(t.outcome(p))
	return t.String()
}

// Printer collects the lines of a plan.
type Printer struct{ terminal.Writer }

// PrinterFor returns a Printer without lines.
func PrinterFor(styles terminal.Styles) *Printer { return &Printer{terminal.Writer{Styles: styles}} }

// head prints the name, the revision and the fields of the release that change.
func (t *Printer) head(p *dryrun.Plan) {
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
			what = fmt.Sprintf("revision %d, unchanged", p.Revision)
		}
	}
	t.Line(t.Styles.Strong(terminal.Line(name)) + "  " + what)

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
		// An unchanged digest is left out, because the image is shown anyway.
		case is == "" || was == is && row[0] == "digest":
		case was == "" || was == is:
			rows = append(rows, []string{"  " + row[0], is})
		default:
			rows = append(rows, []string{"  " + row[0], was + " → " + is})
		}
	}

	t.Rows("", rows)
	t.Line("")
}

// title returns the package and version of a release in one text.
func title(r dryrun.Release) string { return strings.TrimSpace(r.Package + " " + r.Version) }

// phase shows the objects of one phase that change, and the number of those that do not.
func (t *Printer) phase(ph *dryrun.Phase) {
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

	mark := t.Styles.Faint("·")
	if len(changes) > 0 {
		mark = t.Styles.Strong("▸")
	}
	text := mark + " " + t.Styles.Strong(terminal.Line(ph.Name)) + "  " + t.Styles.Faint(strings.Join(rest, ", "))
	if !ph.Reached {
		text += "  " + t.Styles.Bad("not reached")
	}
	t.Line(text)
	for _, c := range changes {
		t.change(c, ph.Reached)
	}
}

// planMarks are the marks and words for the changes of objects. The word for a takeover is
// completed by the former owner.
var planMarks = map[dryrun.Action]struct{ mark, word string }{
	dryrun.ActionCreate:   {"+", ""},
	dryrun.ActionChange:   {"~", ""},
	dryrun.ActionCorrect:  {"~", "another client changed it: corrected"},
	dryrun.ActionTakeOver: {"<", "taken over from "},
	dryrun.ActionReplace:  {"±", "deleted and recreated"},
	dryrun.ActionDelete:   {"-", ""},
	dryrun.ActionRelease:  {"o", "released: it stays, without a controller"},
	dryrun.ActionRefuse:   {"✗", "refused"},
}

// paint colours a mark by the risk of its action: losses are bad, and creations are good.
func (t *Printer) paint(a dryrun.Action, text string) string {
	switch a {
	case dryrun.ActionCreate:
		return t.Styles.Good(text)
	case dryrun.ActionDelete, dryrun.ActionReplace, dryrun.ActionRefuse:
		return t.Styles.Bad(text)
	}
	return t.Styles.Busy(text)
}

// change prints one object, and whether it is not reached in a reached phase.
func (t *Printer) change(c *dryrun.Change, inPhase bool) {
	as := planMarks[c.Action]
	word := as.word
	if c.Action == dryrun.ActionTakeOver {
		word += c.From
	}
	if c.Action == dryrun.ActionRelease && c.Message != "" {
		word = "released instead of deleted: " + c.Message
	}

	line := "    " + t.paint(c.Action, as.mark) + " " + terminal.Line(c.Object())
	if word != "" {
		line += "  " + terminal.Line(word)
	}
	if inPhase && !c.Reached && c.Action != dryrun.ActionRefuse {
		line += "  " + t.Styles.Faint("not reached")
	}
	t.Line(line)
	for _, text := range t.fields(c.Fields) {
		t.Line("        " + text)
	}

	if c.Class != "" {
		t.Line("        " + t.Styles.Faint("the changes of the agent of class "+terminal.Line(c.Class)+" in it cannot be predicted"))
	}
	if c.Unverified != "" {
		t.Line("        " + t.Styles.Faint("no dry run: "+terminal.Line(c.Unverified)))
	}
}

// fields returns the lines of an object's changed fields. A text of several lines is shown as a
// difference below its field.
func (t *Printer) fields(fields []dryrun.Field) (lines []string) {
	rows, texts := make([][]string, len(fields)), make([][]string, len(fields))
	for i, f := range fields {
		before, after := f.Text(planValueWidth)
		mark, values := t.Styles.Busy("~"), before+" → "+after
		texts[i] = f.Lines()
		switch {
		case f.Before == nil:
			mark, values = t.Styles.Good("+"), after
		case f.After == nil:
			mark, values = t.Styles.Bad("-"), before
		case texts[i] != nil:
			values = ""
		}

		rows[i] = []string{mark + " " + terminal.Line(f.Path), values}
		if len(f.Managers) > 0 {
			rows[i] = append(rows[i], t.Styles.Faint("set by "+terminal.Line(strings.Join(f.Managers, ", "))))
		}
	}

	for i, line := range terminal.Table(rows) {
		lines = append(lines, strings.TrimRight(line, " "))
		for _, text := range texts[i] {
			lines = append(lines, "    "+text)
		}
	}

	return lines
}

// Section lists the consequences of an upgrade beyond its fields.
func (t *Printer) Section(name string, style func(string) string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	t.Line("")
	t.Line(t.Styles.Strong(name))
	t.Rows("    "+style("!")+" ", rows)
}

// LossRows returns the rows of a table of lost data.
func LossRows(losses []dryrun.DataLoss) [][]string {
	rows := make([][]string, len(losses))
	for i, l := range losses {
		rows[i] = []string{terminal.Line(l.Object), terminal.Line(l.Message)}
	}
	return rows
}

// powerRows returns the rows of the table of gained rights.
func powerRows(powers []dryrun.PrivilegeGain) [][]string {
	rows := make([][]string, len(powers))
	for i, p := range powers {
		who := p.Subject
		if who == "" {
			who = "all subjects that it is bound to"
		}
		where := "everywhere"
		if p.Namespace != "" {
			where = "in " + p.Namespace
		}

		by := "by " + p.Role
		if p.Binding != "" {
			by += ", " + p.Binding
		}
		what := strings.Join(p.Verbs, ",") + " " + strings.Join(describe.Targets(p.APIGroups, p.Resources, p.URLs), ",")
		if len(p.Names) > 0 {
			what += " (" + strings.Join(p.Names, ", ") + ")"
		}
		rows[i] = []string{terminal.Line(who), terminal.Line(what), where, terminal.Line(by)}
	}

	return rows
}

// Refusals adds the engine's refusals.
func (t *Printer) Refusals(all []dryrun.Refusal) {
	if len(all) == 0 {
		return
	}
	t.Line("")
	t.Line(t.Styles.Strong("The engine would stop at"))

	for _, group := range groupRefusals(all) {
		r := group.first
		where := "no object would be written"
		if r.Phase != "" {
			where = "phase " + r.Phase
		}
		t.Line("    " + t.Styles.Bad("✗") + " " + terminal.Line(group.Names()) + "  " + t.Styles.Faint(terminal.Line(where)))
		t.Line("        " + terminal.Line(objects.Truncate(group.Text)))
		remedy := refusals.Remedy(r.Key(), r.Message)
		if len(r.Fields) > 0 {
			remedy = "immutable: " + strings.Join(r.Fields, ", ") + ". " + cmp.Or(remedy, apinames.Default.KeepField(r.Key()))
		}
		if remedy != "" {
			t.Line("        " + terminal.Line(remedy))
		}
	}
}

// refusalGroup has refusals in one phase for one reason.
type refusalGroup struct {
	objects.GroupedMessage
	first *dryrun.Refusal
}

// groupRefusals groups refusals with the same reason in the same phase, so that a refused webhook
// does not repeat its text for each object. Refusals of immutable fields stay separate, because
// each names its own.
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
			return g.first.Phase == r.Phase && g.Text == one.Text && len(g.first.Fields)+len(r.Fields) == 0
		})
		if at < 0 {
			found = append(found, refusalGroup{one, r})
			continue
		}

		found[at].Objects = append(found[at].Objects, name)
	}

	return found
}

// outcome returns the last line of a plan.
func (t *Printer) outcome(p *dryrun.Plan) string {
	switch p.Outcome {
	case dryrun.OutcomeNothing:
		return t.Styles.Good("Nothing to do") + ": " + p.Summary.String()
	case dryrun.OutcomeRefused:
		return t.Styles.Bad("Refused") + ": " + p.Summary.String()
	}
	return t.Styles.Strong("Plan") + ": " + p.Summary.String()
}
