package planning

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/limits"
)

// findingType is a class of problems.
type findingType string

const (
	loadFails    findingType = "LoadFails"
	refused      findingType = "Refused"
	notReady     findingType = "NotReady"
	missingRight findingType = "MissingRight"
	notServed    findingType = "NotServed"
	fieldPruned  findingType = "FieldPruned"
	fieldRefused findingType = "FieldRefused"
	written      findingType = "Written"
	rendered     findingType = "Rendered"
	notRehearsed findingType = "NotRehearsed"
)

// severities are the types of findings, the worst first.
var severities = []findingType{loadFails, refused, notReady, missingRight, notServed, fieldPruned, fieldRefused, written, rendered, notRehearsed}

// finding is one line of a rehearsal. Its JSON fields are stable.
type finding struct {
	// Kind, Namespace and Name are those of the package; empty where the engine itself is concerned.
	Kind      string      `json:"kind,omitempty"`
	Namespace string      `json:"namespace,omitempty"`
	Name      string      `json:"name,omitempty"`
	Finding   findingType `json:"finding"`
	Phase     string      `json:"phase,omitempty"`
	Object    string      `json:"object,omitempty"`
	Message   string      `json:"message"`
}

// rehearsalReport is what a rehearsal found. Its JSON fields are stable.
type rehearsalReport struct {
	// Version is that of the engine that was rehearsed.
	Version string `json:"version"`
	// Rehearsed counts the packages that were looked at, AtRest those of them that were at rest.
	Rehearsed int `json:"rehearsed"`
	AtRest    int `json:"atRest"`
	// NotAtRest counts the others by their state.
	NotAtRest map[progress.Summary]int `json:"notAtRest,omitempty"`
	// NotSeen is what may not be read, each of which is a finding, too.
	NotSeen []string `json:"notSeen,omitempty"`
	// NotCovered is what no rehearsal looks at.
	NotCovered string `json:"notCovered"`
	// Permits are commands that let definitions be replaced, where no object has any of the pruned fields.
	Permits  []string  `json:"permits,omitempty"`
	Findings []finding `json:"findings"`

	// definitions counts those of --crds, without which packages are rehearsed.
	definitions int
}

// add counts a package with its findings. Those beyond a limit are counted in the last one.
func (r *rehearsalReport) add(pkg corev1alpha1.GenericPackage, found []finding, rested bool) {
	r.Rehearsed++
	if rested {
		r.AtRest++
	} else {
		if r.NotAtRest == nil {
			r.NotAtRest = map[progress.Summary]int{}
		}
		r.NotAtRest[progress.ReportOf(progress.Snapshot{Target: progress.TargetOf(pkg), Package: pkg}).Summary]++
	}
	slices.SortStableFunc(found, bySeverity)
	if more := len(found) - limits.RehearsalFindings; more > 0 {
		last := &found[limits.RehearsalFindings-1]
		last.Message += fmt.Sprintf(" (and %d more of this package)", more)
		found = found[:limits.RehearsalFindings]
	}
	r.Findings = append(r.Findings, found...)
}

func bySeverity(a, b finding) int {
	return cmp.Compare(slices.Index(severities, a.Finding), slices.Index(severities, b.Finding))
}

// notCovered are the writes of the rehearsed code that no dry run makes.
const notCovered = "statuses, and labels, annotations and finalizers of Packages and ObjectDeployments"

// finish adds the parts that were not seen, and orders the findings: the worst first, and equal ones by their package.
func (r *rehearsalReport) finish() {
	r.NotCovered = notCovered
	for _, what := range r.NotSeen {
		r.Findings = append(r.Findings, finding{Finding: notRehearsed, Message: "you may not read " + what})
	}
	slices.SortStableFunc(r.Findings, func(a, b finding) int {
		return cmp.Or(bySeverity(a, b), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Message, b.Message))
	})
}

func (r *rehearsalReport) text(styles terminal.Styles) string {
	var out strings.Builder
	if len(r.Findings) > 0 {
		rows := [][]string{{"NAMESPACE", "NAME", "FINDING", "OBJECT", "MESSAGE"}}
		for _, f := range r.Findings {
			namespace := cmp.Or(f.Namespace, command.ClusterWide)
			rows = append(rows, []string{
				namespace, terminal.Line(cmp.Or(f.Name, "-")), paintFinding(styles, f.Finding), terminal.Line(cmp.Or(f.Object, "-")),
				terminal.Line(strings.Join(strings.Fields(f.Message), " ")),
			})
		}
		for _, line := range terminal.Table(rows) {
			out.WriteString(line + "\n")
		}
		out.WriteString("\n")
	}
	if len(r.Permits) > 0 {
		out.WriteString("Fields that no object uses are lost with these definitions. To replace the present ones:\n")
		for _, command := range r.Permits {
			out.WriteString("  " + terminal.Line(command) + "\n")
		}
		out.WriteString("\n")
	}
	out.WriteString("Not rehearsed: " + r.NotCovered + "\n" + terminal.Line(r.summary()) + "\n")
	return out.String()
}

func paintFinding(styles terminal.Styles, f findingType) string {
	switch f {
	case written, rendered, notRehearsed:
		return styles.Busy(string(f))
	}
	return styles.Bad(string(f))
}

// summary is the last line.
func (r *rehearsalReport) summary() string {
	text := fmt.Sprintf("%s rehearsed with the engine %s, %d of them at rest", terminal.Count(r.Rehearsed, "package"), r.Version, r.AtRest)
	if r.definitions > 0 {
		text = terminal.Count(r.definitions, "definition") + " compared"
	}
	var others []string
	for _, state := range progress.Summaries() {
		if n := r.NotAtRest[state]; n > 0 {
			others = append(others, fmt.Sprintf("%d %s", n, state.Words()))
		}
	}
	if len(others) > 0 {
		text += " (" + strings.Join(others, ", ") + ")"
	}
	counts := map[findingType]int{}
	for _, f := range r.Findings {
		counts[f.Finding]++
	}
	var parts []string
	for _, s := range severities {
		if counts[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[s], s))
		}
	}
	if len(parts) == 0 {
		return text + ": nothing is found"
	}
	return text + ": " + strings.Join(parts, ", ")
}
