package progress

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
)

// ScreenOptions say how a Screen is laid out.
type ScreenOptions struct {
	// Width in columns that messages are wrapped at; 0 means never.
	Width  int
	Now    time.Time
	Styles terminal.Styles
}

// Screen describes a package on one screen: what it is, its phases, what blocks
// them and why, and its conditions.
func Screen(r Report, o ScreenOptions) string {
	s := screen{Report: r, ScreenOptions: o}
	s.head()
	s.phases()
	s.loose()
	s.ignored()
	s.conditions()
	return strings.Join(s.lines, "\n") + "\n"
}

type screen struct {
	Report
	ScreenOptions
	lines []string
}

func (s *screen) head() {
	target := Target{Scope: corev1alpha1.ScopeOf(s.Namespace), Namespace: s.Namespace, Name: s.Name}
	s.lines = append(s.lines, s.Styles.Strong(terminal.Line(target.String())))
	s.field("Status", s.tone()(s.Summary.Words())+s.also())
	if s.Summary != SummaryAvailable {
		s.why()
	}
	s.field("Package", terminal.Line(strings.TrimSpace(s.Package+" "+s.Version)))
	s.field("Component", terminal.Line(s.Component))
	s.field("Image", terminal.Line(s.Image))
	s.field("Digest", terminal.Line(s.Digest))
	if s.Revision > 0 {
		s.field("Revision", fmt.Sprint(s.Revision))
	}
	s.field("Age", age(s.Created, s.Now))
}

func (s *screen) tone() func(string) string {
	switch s.Summary {
	case SummaryAvailable:
		return s.Styles.Good
	case SummaryPending, SummaryProgressing, SummaryDeleting, SummaryPaused:
		return s.Styles.Busy
	}
	return s.Styles.Bad
}

// also says that a package works all the same.
func (s *screen) also() string {
	if s.Available && s.Summary != SummaryAvailable && s.Summary != SummaryDeleting {
		return " (what was installed before is available)"
	}
	return ""
}

// why shows the message, unless the phases below do.
func (s *screen) why() {
	if len(s.Blocking) > 0 && s.Summary != SummaryInvalid && s.Summary != SummaryImagePullError {
		return
	}
	const indent = 13
	lines := strings.Split(terminal.Text(s.Message), "\n")
	if len(lines) > 1 && (s.Summary == SummaryInvalid || s.Summary == SummaryImagePullError) {
		lines = lines[1:] // the first one is the summary in other words
	}
	for _, line := range lines {
		for _, part := range s.wrap(strings.TrimSpace(line), indent) {
			s.lines = append(s.lines, strings.Repeat(" ", indent)+part)
		}
	}
}

func (s *screen) field(name, value string) {
	if value != "" {
		s.lines = append(s.lines, "  "+s.Styles.Faint(terminal.Pad(name, 9))+"  "+value)
	}
}

func (s *screen) wrap(text string, indent int) []string {
	if s.Width == 0 {
		return []string{text}
	}
	return terminal.Wrap(text, max(s.Width-indent, 20))
}

func (s *screen) phases() {
	if len(s.Phases) == 0 {
		return
	}
	deleting := s.Summary == SummaryDeleting
	s.title("Phases")
	phases := make([]Phase, len(s.Phases))
	for i, ph := range s.Phases {
		phases[i] = Phase{Name: terminal.Line(ph.Name), State: ph.State, Ready: int(ph.Ready), Total: int(ph.Total)}
	}
	if deleting {
		putOff(phases)
	}
	var rows [][]string
	for _, p := range phases {
		rows = append(rows, []string{"  " + s.mark(p, deleting) + " " + p.Name, count(p, deleting), phaseWord(p, deleting)})
	}
	for i, line := range terminal.Table(rows) {
		s.lines = append(s.lines, line)
		s.blocking(s.Phases[i].Name, 6)
	}
}

func (s *screen) mark(ph Phase, deleting bool) string {
	switch {
	case finished(ph, deleting):
		return s.Styles.Good(markDone)
	case len(s.in(ph.Name)) > 0:
		return s.Styles.Bad(markFailed)
	case active(ph, deleting):
		return s.Styles.Busy(markBusy)
	}
	return s.Styles.Faint(markWaiting)
}

// in returns what blocks a phase.
func (s *screen) in(phase string) []corev1alpha1.BlockingObject {
	var found []corev1alpha1.BlockingObject
	for _, b := range s.Blocking {
		if terminal.Line(b.Phase) == terminal.Line(phase) {
			found = append(found, b)
		}
	}
	return found
}

func (s *screen) blocking(phase string, indent int) {
	var notes []objects.Note
	for _, b := range s.in(phase) {
		name := b.Name
		if b.Namespace != "" {
			name = b.Namespace + "/" + name
		}
		kind := b.Kind
		if b.Group != "" {
			kind += "." + b.Group
		}
		notes = append(notes, objects.Note{Object: terminal.Line(kind + " " + name), Text: oneLine(terminal.Text(b.Message))})
	}
	for _, remark := range objects.Remarks(notes) {
		s.lines = append(s.lines, strings.Repeat(" ", indent)+remark.Names())
		for _, part := range s.wrap(objects.Cut(remark.Text), indent+2) {
			s.lines = append(s.lines, strings.Repeat(" ", indent+2)+s.Styles.Bad(part))
		}
	}
}

// loose lists what blocks and is in none of the phases.
func (s *screen) loose() {
	known := map[string]bool{}
	for _, ph := range s.Phases {
		known[ph.Name] = true
	}
	titled := false
	for _, b := range s.Blocking {
		if known[b.Phase] {
			continue
		}
		known[b.Phase] = true
		if !titled {
			s.title("Blocking")
			titled = true
		}
		s.blocking(b.Phase, 2)
	}
	if len(s.Blocking) >= corev1alpha1.MaxBlockingObjects {
		s.lines = append(s.lines, s.Styles.Faint(fmt.Sprintf("  Only the first %d objects that block are listed.", corev1alpha1.MaxBlockingObjects)))
	}
}

func (s *screen) ignored() {
	if len(s.Ignored) == 0 {
		return
	}
	s.title("Ignored parts of the package")
	for _, line := range s.Ignored {
		for _, part := range s.wrap(line, 2) {
			s.lines = append(s.lines, "  "+part)
		}
	}
}

func (s *screen) conditions() {
	if len(s.Conditions) == 0 {
		return
	}
	s.title("Conditions")
	rows, shown := [][]string{}, map[string]string{}
	for _, c := range s.Conditions {
		message := s.withoutShown(oneLine(terminal.Text(c.Message)))
		if first := shown[message]; first != "" {
			message = "as for " + first
		} else if message != "" {
			shown[message] = terminal.Line(c.Type)
		}
		rows = append(rows, []string{"  " + terminal.Line(c.Type), terminal.Line(string(c.Status)), terminal.Line(c.Reason), age(c.LastTransitionTime, s.Now), message})
	}
	for _, line := range terminal.Table(rows) {
		if s.Width > 0 {
			line = terminal.Truncate(line, s.Width)
		}
		s.lines = append(s.lines, line)
	}
}

// repeatable is up to how many bytes a text is repeated: a reference to it would be as
// long.
const repeatable = 20

// withoutShown returns a message without the parts that are shown further up.
func (s *screen) withoutShown(message string) string {
	above := strings.Split(terminal.Text(s.Message), "\n")
	for _, b := range s.Blocking {
		above = append(above, terminal.Text(b.Message))
	}
	for _, text := range append(above, s.Ignored...) {
		if text = strings.TrimSpace(oneLine(text)); len(text) > repeatable {
			message = strings.ReplaceAll(message, text, "…")
		}
	}
	for _, b := range s.Blocking {
		if b.Group != "" {
			message = strings.ReplaceAll(message, terminal.Line(b.Group)+" …", "…")
		}
	}
	if strings.Trim(message, "… ") == "" && message != "" {
		return "see above"
	}
	return message
}

func (s *screen) title(text string) { s.lines = append(s.lines, "", s.Styles.Strong(text)) }

// age writes the time since t as kubectl does.
func age(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(now.Sub(t.Time), 0))
}
