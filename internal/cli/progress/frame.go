package progress

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
)

// FrameOptions of a Frame.
type FrameOptions struct {
	// Title begins the first line, as in "Installing clusterpackage cert".
	Title string
	// Width and Height of the terminal. The frame fits into them.
	Width, Height int
	Elapsed       time.Duration
	Tick          int
	Styles        terminal.Styles
	// Done is set for the last picture.
	Done bool
}

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// Spinner is the picture of what goes on, which turns with tick.
func Spinner(tick int) string { return spinner[tick%len(spinner)] }

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
		f.dependencies()
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

func (f *frame) put(indent int, mark, text string, style func(string) string) {
	room := f.Width - indent - 2
	if mark == "" {
		room += 2
	} else {
		mark += " "
	}
	f.lines = append(f.lines, strings.Repeat(" ", indent)+mark+style(terminal.Truncate(unbroken(text), room)))
}

// unbroken keeps runs of spaces.
func unbroken(text string) string {
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

func (f *frame) image() {
	text := "image " + f.Image
	switch problem := cmp.Or(f.PullError, f.Invalid); {
	case f.Deleting:
	case problem != "":
		f.put(0, f.Styles.Bad(markFailed), text, plain)
		f.message(4, problem)
	case f.Unpacked:
		if f.title() != "" {
			text += "  " + f.title()
		}
		if f.Revision > 0 {
			text += fmt.Sprintf("  revision %d", f.Revision)
		}
		f.put(0, f.Styles.Good(markDone), text, plain)
	case f.Waiting != "", f.Away != "":
		f.put(0, f.turning(), text+"  "+f.Summary().Words(), plain)
	case f.Noticed:
		f.put(0, f.turning(), text+"  loading", plain)
	default:
		f.put(0, f.turning(), text+"  waiting for the manager", plain)
	}
}

// dependencies shows the awaited dependencies.
func (f *frame) dependencies() {
	const most = 5
	if f.Waiting == "" || f.Deleting || f.Ready {
		return
	}
	style, lines := plain, strings.Split(f.Waiting, "\n")
	if f.Unsatisfied {
		style = f.Styles.Bad
	}
	for i, line := range lines {
		if i == most {
			f.put(4, "", fmt.Sprintf("… and %d more", len(lines)-i), style)
			break
		}
		f.put(4, "", oneLine(line), style)
	}
}

// message wraps a problem in three lines at most.
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
	// The width of names; the line of a very long one is truncated.
	wide := 0
	for _, ph := range f.Phases {
		wide = max(wide, min(len([]rune(ph.Name)), 30))
	}
	rows := f.folded(f.Height - len(f.lines) - 3)
	room := f.Height - len(f.lines) - len(rows) - 2
	for _, row := range rows {
		if len(row) > 1 {
			f.put(0, f.mark(row[0]), terminal.Count(len(row), "phase")+"  "+row[0].Word(), f.tone(row[0]))
			continue
		}
		ph := row[0]
		f.put(0, f.mark(ph), fmt.Sprintf("%s  %7s  %s", terminal.Pad(ph.Name, wide), ph.Count(), ph.Word()), f.tone(ph))
		if f.busy(ph) {
			room -= f.objects(ph, room)
		}
	}
}

// folded returns rows of phases. If they do not fit, adjacent idle ones share a row.
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

// cut leaves a line for the cursor.
func (f *frame) cut() {
	if over := len(f.lines) - max(f.Height-1, 4); over > 0 {
		f.lines = append([]string{f.lines[0], f.Styles.Faint("…")}, f.lines[over+2:]...)
	}
}

// busy reports whether a phase is active or blocked.
func (f *frame) busy(ph Phase) bool {
	return ph.Active() || !ph.Finished() && slices.ContainsFunc(f.Blocking, func(b Object) bool { return b.Phase == ph.Name })
}

func (f *frame) mark(ph Phase) string {
	switch {
	case ph.Finished():
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
	return plain
}

func plain(text string) string { return text }

// objects draws at most room lines, and returns their number.
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
			f.put(4, "", "… and "+terminal.Count(countObjects(shown[i:]), "more object"), f.Styles.Faint)
			break
		}
		f.object(o, room-(len(f.lines)-begin))
	}
	return len(f.lines) - begin
}

// shown groups the blocked objects of a phase by message, and puts them first.
func (f *frame) shown(ph Phase) []Object {
	blocked := func(o Object) bool { return o.State == ObjectBlocked }
	first, rest := slices.Clone(ph.Objects), slices.DeleteFunc(slices.Clone(ph.Objects), blocked)
	first = slices.DeleteFunc(first, func(o Object) bool { return !blocked(o) })
	if len(first) == 0 {
		first = slices.DeleteFunc(slices.Clone(f.Blocking), func(b Object) bool { return b.Phase != ph.Name })
	}
	var once []Object
	for _, remark := range remarks(first, func(Object) bool { return true }) {
		once = append(once, Object{
			Name: remark.Names(), State: ObjectBlocked, Message: objects.Truncate(remark.Text), others: len(remark.Objects) - 1,
		})
	}
	return append(once, rest...)
}

func countObjects(shown []Object) int {
	n := len(shown)
	for i := range shown {
		n += shown[i].others
	}
	return n
}

func (f *frame) object(o Object, room int) {
	switch o.State {
	case ObjectReady:
		f.put(4, f.Styles.Good(markDone), o.Name, plain)
	case ObjectBlocked:
		f.put(4, f.turning(), o.Name, plain)
		if room > 3 {
			f.message(8, o.Message)
		} else if room > 1 {
			f.put(8, "", o.Message, f.Styles.Bad)
		}
	case ObjectWritten:
		f.put(4, f.Styles.Faint(markWaiting), o.Name+"  written", plain)
	default:
		f.put(4, f.Styles.Faint(markWaiting), o.Name, f.Styles.Faint)
	}
}

func (f *frame) note() {
	switch {
	case f.Gone:
	case f.Lost != "":
		f.put(0, "", "connection lost, trying again: "+f.Lost, f.Styles.Bad)
	case f.Paused != "":
		f.put(0, "", "paused: "+f.Paused, f.Styles.Busy)
	case f.Unnoticed:
		f.put(0, "", Unnoticed, f.Styles.Bad)
	case len(f.Finalizers) > 0 && f.Deleting:
		f.put(0, "", "held by the finalizer "+strings.Join(f.Finalizers, ", "), f.Styles.Bad)
	case f.Away != "":
		f.message(0, SummaryTarget.Words()+": "+f.Away)
	case f.Stalled != "" && f.Invalid == "" && f.PullError == "" && len(f.Blocking) == 0:
		f.message(0, f.Stalled)
	case len(f.Ignored) > 0:
		f.put(0, "", fmt.Sprintf("%s of the package ignored, see status: %s", terminal.Count(len(f.Ignored), "part"), f.Ignored[0]), f.Styles.Busy)
	}
}
