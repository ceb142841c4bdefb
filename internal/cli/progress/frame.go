package progress

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
)

// FrameOptions say how a Frame is drawn.
type FrameOptions struct {
	// Title begins the first line, as in "Installing clusterpackage cert".
	Title string
	// Width and Height of the terminal. The frame fits into them.
	Width, Height int
	Elapsed       time.Duration
	// Tick counts the pictures and turns what moves.
	Tick   int
	Styles terminal.Styles
	// Done stops what moves: this is the last picture.
	Done bool
}

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

const (
	markDone    = "✓"
	markFailed  = "✗"
	markWaiting = "·"
	markBusy    = "●"
)

// Frame draws a State as a picture of at most Height lines and Width columns.
func Frame(s State, o FrameOptions) string {
	f := frame{State: s, FrameOptions: o}
	f.Width = max(f.Width, 20)
	f.head()
	if !s.Gone {
		f.image()
	}
	f.phases()
	f.note()
	f.cut()
	return strings.Join(f.lines, "\n")
}

type frame struct {
	State
	FrameOptions
	lines []string
}

// put adds a line: a mark, and text that is cut at the edge and then styled.
func (f *frame) put(indent int, mark, text string, style func(string) string) {
	room := f.Width - indent - 2
	if mark == "" {
		room += 2
	} else {
		mark += " "
	}
	f.lines = append(f.lines, strings.Repeat(" ", indent)+mark+style(terminal.Truncate(oneLineKeep(text), room)))
}

// oneLineKeep keeps the spaces that columns are made of.
func oneLineKeep(text string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(text)
}

func (f *frame) turning() string {
	if f.Done {
		return f.Styles.Bad(markFailed)
	}
	return f.Styles.Busy(spinner[f.Tick%len(spinner)])
}

func (f *frame) head() {
	elapsed := Elapsed(f.Elapsed)
	title := terminal.Truncate(f.Title, f.Width-len(elapsed)-2)
	f.lines = append(f.lines, f.Styles.Strong(terminal.Pad(title, f.Width-len(elapsed)-1))+" "+f.Styles.Faint(elapsed))
}

// image says what is installed, and how far that is known.
func (f *frame) image() {
	plain := func(text string) string { return text }
	switch {
	case f.Deleting:
	case f.PullError != "":
		f.put(0, f.Styles.Bad(markFailed), "image "+f.Image, plain)
		f.message(4, f.PullError)
	case f.Invalid != "":
		f.put(0, f.Styles.Bad(markFailed), "image "+f.Image, plain)
		f.message(4, f.Invalid)
	case f.Unpacked:
		text := "image " + f.Image
		if f.title() != "" {
			text += "  " + f.title()
		}
		if f.Revision > 0 {
			text += fmt.Sprintf("  revision %d", f.Revision)
		}
		f.put(0, f.Styles.Good(markDone), text, plain)
	case f.Noticed:
		f.put(0, f.turning(), "image "+f.Image+"  loading", plain)
	default:
		f.put(0, f.turning(), "image "+f.Image+"  waiting for the manager", plain)
	}
}

// message wraps what is wrong below its subject, three lines at most.
func (f *frame) message(indent int, text string) {
	const most = 3
	lines := terminal.Wrap(oneLine(text), f.Width-indent)
	if len(lines) > most {
		lines = lines[:most]
		lines[most-1] = terminal.Truncate(lines[most-1]+" …", f.Width-indent)
	}
	for _, line := range lines {
		f.put(indent, "", line, f.Styles.Bad)
	}
}

func (f *frame) phases() {
	// The phase names' column; a very long name is cut with its line.
	wide := 0
	for _, ph := range f.Phases {
		wide = max(wide, min(len([]rune(ph.Name)), 30))
	}
	rows := f.folded(f.Height - len(f.lines) - 3)
	// Objects have the lines that phases leave them.
	room := f.Height - len(f.lines) - len(rows) - 2
	for _, row := range rows {
		if len(row) > 1 {
			f.put(0, f.mark(row[0]), fmt.Sprintf("%s  %s", plural(len(row), "phase"), phaseWord(row[0], f.Deleting)), f.tone(row[0]))
			continue
		}
		ph := row[0]
		f.put(0, f.mark(ph), fmt.Sprintf("%s  %7s  %s", terminal.Pad(ph.Name, wide), count(ph, f.Deleting), phaseWord(ph, f.Deleting)), f.tone(ph))
		if f.busy(ph) {
			room -= f.objects(ph, room)
		}
	}
}

// folded returns the phases in the order of work, one a row. Where they are more
// than fit, neighbours in which nothing goes on share a row.
func (f *frame) folded(fit int) [][]Phase {
	var rows [][]Phase
	for _, ph := range f.inOrder() {
		last := len(rows) - 1
		if len(f.Phases) > fit && last >= 0 && !f.busy(ph) && rows[last][0].State == ph.State && rows[last][0].Later == ph.Later {
			rows[last] = append(rows[last], ph)
			continue
		}
		rows = append(rows, []Phase{ph})
	}
	return rows
}

// cut keeps the frame within the screen, less a line for the cursor; the end is
// where things happen.
func (f *frame) cut() {
	if over := len(f.lines) - max(f.Height-1, 4); over > 0 {
		f.lines = append([]string{f.lines[0], f.Styles.Faint("…")}, f.lines[over+2:]...)
	}
}

// busy reports whether something goes on in a phase, or something is in its way.
func (f *frame) busy(ph Phase) bool {
	return active(ph, f.Deleting) || !finished(ph, f.Deleting) && slices.ContainsFunc(f.Blocking, func(b Object) bool { return b.Phase == ph.Name })
}

func (f *frame) mark(ph Phase) string {
	switch {
	case finished(ph, f.Deleting):
		return f.Styles.Good(markDone)
	case f.busy(ph):
		return f.turning()
	}
	return f.Styles.Faint(markWaiting)
}

func (f *frame) tone(ph Phase) func(string) string {
	if ph.State == corev1alpha1.PhaseStateWaiting && !f.Deleting && !f.busy(ph) {
		return f.Styles.Faint
	}
	return func(text string) string { return text }
}

// objects draws the objects of a phase in at most room lines, those that block
// first of all, and returns the number of lines.
func (f *frame) objects(ph Phase, room int) int {
	begin := len(f.lines)
	shown := f.shown(ph)
	for i, o := range shown {
		need := 1
		if o.State == ObjectBlocked {
			need++
		}
		last := i == len(shown)-1
		if used := len(f.lines) - begin; used+need > room || !last && used+need+1 > room {
			f.put(4, "", "… and "+plural(countObjects(shown[i:]), "more object"), f.Styles.Faint)
			break
		}
		f.object(o, room-(len(f.lines)-begin))
	}
	return len(f.lines) - begin
}

// shown are the objects of a phase with what blocks it first; where the objects
// are not known, those that block.
func (f *frame) shown(ph Phase) []Object {
	var first, rest []Object
	for _, o := range ph.Objects {
		if o.State == ObjectBlocked {
			first = append(first, o)
		} else {
			rest = append(rest, o)
		}
	}
	if len(first) == 0 {
		for _, b := range f.Blocking {
			if b.Phase == ph.Name {
				first = append(first, b)
			}
		}
	}
	var once []Object
	for _, remark := range remarks(first, func(Object) bool { return true }) {
		once = append(once, Object{
			Name: remark.Names(), State: ObjectBlocked, Message: objects.Cut(remark.Text), others: len(remark.Objects) - 1,
		})
	}
	return append(once, rest...)
}

// countObjects counts objects, grouped ones as well.
func countObjects(shown []Object) int {
	n := len(shown)
	for i := range shown {
		n += shown[i].others
	}
	return n
}

func (f *frame) object(o Object, room int) {
	same := func(text string) string { return text }
	switch o.State {
	case ObjectReady:
		f.put(4, f.Styles.Good(markDone), o.Name, same)
	case ObjectBlocked:
		f.put(4, f.turning(), o.Name, same)
		if room > 3 {
			f.message(8, o.Message)
		} else if room > 1 {
			f.put(8, "", o.Message, f.Styles.Bad)
		}
	case ObjectWritten:
		f.put(4, f.Styles.Faint(markWaiting), o.Name+"  written", same)
	default:
		f.put(4, f.Styles.Faint(markWaiting), o.Name, f.Styles.Faint)
	}
}

// note is the last line: what the rest does not say.
func (f *frame) note() {
	switch {
	case f.Gone:
	case f.Lost != "":
		f.put(0, "", "connection lost, trying again: "+f.Lost, f.Styles.Bad)
	case f.Paused != "":
		f.put(0, "", "paused: "+f.Paused, f.Styles.Busy)
	case f.Unnoticed:
		f.put(0, "", unnoticed, f.Styles.Bad)
	case len(f.Finalizers) > 0 && f.Deleting:
		f.put(0, "", "held by the finalizer "+strings.Join(f.Finalizers, ", "), f.Styles.Bad)
	case f.Stalled != "" && f.Invalid == "" && f.PullError == "" && len(f.Blocking) == 0:
		f.message(0, f.Stalled)
	case len(f.Ignored) > 0:
		f.put(0, "", fmt.Sprintf("%s of the package ignored, see status: %s", plural(len(f.Ignored), "part"), f.Ignored[0]), f.Styles.Busy)
	}
}
