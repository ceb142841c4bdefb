package progress

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/kube/summary"
	"lockstep.run/lockstep/internal/objects"
)

// Marks of phases.
const (
	markDone    = "✓"
	markFailed  = "✗"
	markWaiting = "·"
	markBusy    = "●"
)

// ScreenOptions of a Screen.
type ScreenOptions struct {
	Now    time.Time
	Styles terminal.Styles
}

// Screen shows a package, the reason why it is not available, its phases, and its conditions.
func Screen(r Report, o ScreenOptions) string {
	s := screen{Report: r, Writer: terminal.Writer{Styles: o.Styles}, now: o.Now}
	s.head()
	s.phases()
	s.ignored()
	s.images()
	s.conditions()

	return s.String()
}

// screen collects the lines of a status.
type screen struct {
	Report
	terminal.Writer
	now time.Time
}

// head adds the name, the state and the fields of the package.
func (s *screen) head() {
	s.Line(s.Styles.Strong(terminal.Line(TargetFor(s.Namespace, s.Name).String())))
	also := ""
	if s.Available && s.Summary != summary.Available && s.Summary != summary.Deleting {
		also = " (the previous revision is available)"
	}
	s.field("Status", StateText(s.Summary, s.Styles)+also)
	if s.Summary != summary.Available {
		s.why()
	}
	s.field("Package", terminal.Line(strings.TrimSpace(s.Package+" "+s.Version)))
	s.field("Component", terminal.Line(s.Component))
	if s.PackageRef != nil {
		s.field("Follows", terminal.Line(Followed(s.PackageRef)))
		s.field("From", terminal.Line(s.Repository))
	}

	if ref := s.TargetRef; ref != nil {
		target := fmt.Sprintf("cluster of the kubeconfig in Secret %s, key %s", ref.KubeconfigSecretRef.Name, ref.KubeconfigSecretRef.KeyOrDefault())
		if ref.Namespace != "" {
			target += ", namespace " + ref.Namespace
		}
		s.field("Target", terminal.Line(target))
	}

	s.field("Image", terminal.Line(s.Image))
	s.field("Digest", terminal.Line(s.Digest))
	if s.Revision > 0 {
		s.field("Revision", fmt.Sprint(s.Revision))
	}
	s.field("Age", age(s.Created, s.now))
}

// StateText returns the words for a state in their colour: good, busy or bad.
func StateText(state summary.Summary, styles terminal.Styles) string {
	switch state {
	case summary.Available:
		return styles.Good(state.Words())
	case summary.Pending, summary.Progressing, summary.Deleting, summary.Paused, summary.Waiting, summary.Awaiting:
		return styles.Busy(state.Words())
	}
	return styles.Bad(state.Words())
}

// why shows the message and the remedy.
func (s *screen) why() {
	own := slices.Contains([]summary.Summary{summary.Invalid, summary.NotVerified, summary.ImagePullError, summary.Unresolved, summary.Waiting, summary.Unsatisfied, summary.Target}, s.Summary)
	lines := strings.Split(terminal.Text(s.Message), "\n")
	if len(lines) > 1 && own {
		lines = lines[1:] // the first one is the summary in other words
	}

	for _, line := range append(lines, terminal.Line(s.Remedy)) {
		if line != "" {
			s.Line(strings.Repeat(" ", 13) + strings.TrimSpace(line))
		}
	}
}

// field adds a line with a name and a value, unless the value is empty.
func (s *screen) field(name, value string) { s.Field(9, name, value) }

// phases adds a line for each phase.
func (s *screen) phases() {
	if len(s.Phases) == 0 {
		return
	}
	s.title("Phases")
	var rows [][]string
	for _, p := range phasesOf(s.Phases, s.Summary == summary.Deleting) {
		rows = append(rows, []string{"  " + s.mark(p) + " " + p.Name, p.Count(), p.Word()})
	}

	s.Rows("", rows)
}

// mark returns the mark of a phase. A phase with blocking objects is marked as failed, even if it
// is still active.
func (s *screen) mark(ph Phase) string {
	switch {
	case ph.Finished():
		return s.Styles.Good(markDone)
	case slices.ContainsFunc(s.Blocking, func(b corev1alpha1.BlockingObject) bool { return terminal.Line(b.Phase) == ph.Name }):
		return s.Styles.Bad(markFailed)
	case ph.Active():
		return s.Styles.Busy(markBusy)
	}
	return s.Styles.Faint(markWaiting)
}

// ignored adds the parts of the package that have no effect.
func (s *screen) ignored() {
	if len(s.Ignored) == 0 {
		return
	}
	s.title("Ignored parts of the package")
	for _, line := range s.Ignored {
		s.Line("  " + line)
	}
}

// images adds the images that the objects name.
func (s *screen) images() {
	if len(s.Images) == 0 && s.OmittedImages == 0 {
		return
	}
	s.title("Images")
	var rows [][]string
	for _, image := range s.Images {
		rows = append(rows, []string{"  " + terminal.Line(image.Image), terminal.Line(cmp.Or(image.Digest, "no digest")), terminal.Line(image.Name)})
	}

	s.Rows("", rows)
	if s.OmittedImages > 0 {
		s.Line(s.Styles.Faint(fmt.Sprintf("  and %d more", s.OmittedImages)))
	}
}

// conditions adds a table of all conditions. Conditions often repeat each other's message, which is
// printed once.
func (s *screen) conditions() {
	if len(s.Conditions) == 0 {
		return
	}
	s.title("Conditions")
	rows, shown := [][]string{}, map[string]string{}
	for _, c := range s.Conditions {
		message := objects.Truncate(oneLine(terminal.Text(c.Message)))
		if first := shown[message]; first != "" {
			message = "as for " + first
		} else if message != "" {
			shown[message] = terminal.Line(c.Type)
		}
		rows = append(rows, []string{"  " + terminal.Line(c.Type), terminal.Line(string(c.Status)), terminal.Line(c.Reason), age(c.LastTransitionTime, s.now), message})
	}

	s.Rows("", rows)
}

// title adds the title of a section.
func (s *screen) title(text string) { s.Line("\n" + s.Styles.Strong(text)) }

// age writes the time since t as kubectl does.
func age(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(now.Sub(t.Time), 0))
}

// Report is the status of a package. Its JSON fields are stable.
type Report struct {
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name"`
	Summary   summary.Summary `json:"summary"`
	Message   string          `json:"message,omitempty"`

	// Remedy is a way to fix it, if the status is enough to know one.
	Remedy string `json:"remedy,omitempty"`
	// Current means that the status describes the latest spec.
	Current bool `json:"current"`
	// Available means that the package works, in this revision or the previous one.
	Available bool   `json:"available"`
	Image     string `json:"image"`

	// PackageRef is set, and Image is empty, if the package is chosen from repositories.
	PackageRef *corev1alpha1.PackageReference `json:"packageRef,omitempty"`
	// Repository that offered the last unpacked version, such as PackageRepository/stable.
	Repository string `json:"repository,omitempty"`
	Component  string `json:"component,omitempty"`

	// TargetRef is the cluster that holds the objects; absent for the package's own.
	TargetRef *corev1alpha1.TargetReference `json:"targetRef,omitempty"`
	// Package and Digest are the last unpacked ones. Version is the one in charge, if there is one.
	Package  string                        `json:"package,omitempty"`
	Version  string                        `json:"version,omitempty"`
	Digest   string                        `json:"digest,omitempty"`
	Revision int64                         `json:"revision,omitempty"`
	Phases   []corev1alpha1.PhaseStatus    `json:"phases,omitempty"`
	Blocking []corev1alpha1.BlockingObject `json:"blocking,omitempty"`

	// Images that the package's objects name, and the number of omitted ones.
	Images        []corev1alpha1.PackageImage `json:"images,omitempty"`
	OmittedImages int32                       `json:"omittedImages,omitempty"`

	// Ignored are the parts of the package that have no effect.
	Ignored    []string           `json:"ignored,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Created    metav1.Time        `json:"created"`
}

// ReportOf creates a Report from a Snapshot that has a Package.
func ReportOf(snap Snapshot) Report {
	s := Of(snap)
	pkg := snap.Package
	status, rollout := pkg.PackageStatus(), snap.rollout()
	r := Report{
		Kind: snap.Target.Kind(), Namespace: pkg.GetNamespace(), Name: pkg.GetName(),
		Current: s.Observed, Available: s.Available,
		Image: pkg.PackageSpec().Image, PackageRef: pkg.PackageSpec().PackageRef, Component: pkg.PackageSpec().Component,
		TargetRef: pkg.PackageSpec().TargetRef, Version: status.InstalledVersion(),
		Revision: rollout.revision, Phases: rollout.phases, Blocking: rollout.blocking, Ignored: s.Ignored,
		Conditions: ordered(status.Conditions), Created: pkg.GetCreationTimestamp(),
	}

	if status.Resolved != nil {
		r.Repository = status.Resolved.Repository
		r.Package, r.Digest = status.Resolved.PackageName, status.Resolved.Digest
		r.Images, r.OmittedImages = status.Resolved.Images, status.Resolved.OmittedImages
	}

	r.Summary, r.Message = s.Summary(), "The status reports no problem."
	if r.Summary != summary.Available {
		c := CauseOf(s)
		r.Message, r.Remedy = c.body(), c.Remedy
	}

	return r
}

// conditionOrder sorts conditions by importance.
var conditionOrder = []string{
	corev1alpha1.ConditionReady, corev1alpha1.ConditionAvailable, corev1alpha1.ConditionProgressing,
	corev1alpha1.ConditionUnpacked, corev1alpha1.ConditionTargetConnected, corev1alpha1.ConditionPermissionsGranted, corev1alpha1.ConditionDependenciesReady, corev1alpha1.ConditionInvalid, corev1alpha1.ConditionPaused,
	corev1alpha1.ConditionReconciling, corev1alpha1.ConditionStalled,
}

// ordered sorts conditions by importance. Unknown ones follow in alphabetical order.
func ordered(conds []metav1.Condition) []metav1.Condition {
	rank := func(c metav1.Condition) uint { return uint(slices.Index(conditionOrder, c.Type)) } // the largest if it is absent
	return slices.SortedStableFunc(slices.Values(conds), func(a, b metav1.Condition) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Type, b.Type))
	})
}

// Summary returns the state in one word.
func (s State) Summary() summary.Summary { return s.facts.Summary() }
