package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/limits"
)

// New returns the command with its subcommands.
func New(on command.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "rollout",
		SuggestFor: []string{"history", "rollback", "undo"},
		Short:      "Show and compare the revisions of a package, and go back to one",
		Long: `Show and compare the revisions of a package or deployment, and go back to one.

RESOURCE is NAME, package/NAME or clusterpackage/NAME, and for history and diff also
objectdeployment/NAME or clusterobjectdeployment/NAME; kind and name can also be two arguments.`,
	}

	cmd.AddCommand(newHistory(on), newDiff(on), newStatus(on), newUndo(on), newActivate(on), newReject(on))
	return cmd
}

// ErrNoRevision is the error for a package or deployment before its first rollout.
var ErrNoRevision = errors.New("it has no revision yet")

// historyCommand is kubectl package rollout history.
type historyCommand struct {
	command.Command
	revision int64
	timeline bool
}

// newHistory returns the command rollout history.
func newHistory(on command.Command) *cobra.Command {
	c := &historyCommand{Command: on}
	cmd := c.About(&cobra.Command{
		Use:   "history RESOURCE",
		Short: "List the revisions of a package or deployment",
		Long: `List the revisions of a package or deployment, oldest first, with the cause of each and whether it
succeeded. -o wide adds the time; -o json and yaml print the ObjectSets. Values of Secrets are hidden.

--timeline shows when each phase of the newest revision, or of --revision, was opened, applied and ready for
the first time, how long that took, and the last obstacle, for the first 32 phases.

More: docs/administrate/upgrade-and-back.md`,
		Args: command.Takes("RESOURCE", "[NAME]"),
	}, cluster.ParseResource, c.run, command.Positive("revision", &c.revision), c.checkTimeline)
	c.Output.Add(cmd, output.Names, wideFormat)
	cmd.Flags().Int64Var(&c.revision, "revision", 0, "print the revision with this `number`, as YAML unless -o is set")
	cmd.Flags().BoolVar(&c.timeline, "timeline", false, "show when each phase of one revision was opened, applied and ready")

	return cmd
}

// wideFormat is the table with more columns.
const wideFormat = "wide"

// run prints the revisions, oldest first, as kubectl rollout history does.
func (c *historyCommand) run(ctx context.Context, n cluster.Name) error {
	_, r, err := c.Rollout(ctx, n)
	if err != nil {
		return err
	}
	wide := c.Output.Is(wideFormat)
	if c.timeline {
		return c.printTimeline(r)
	}

	if c.revision > 0 {
		return c.one(r)
	}
	if c.Output.Wanted() && !wide {
		list := output.List{}
		for _, set := range r.Sets {
			masked, err := maskedSet(set)
			if err != nil {
				return err
			}
			list.Items = append(list.Items, masked)
		}

		return c.Output.Print(c.Streams.Out, list)
	}

	rows := [][]string{{"REVISION", "SUCCESSFUL", "CHANGE-CAUSE", "VERSION", "IMAGE"}}
	if wide {
		rows[0] = append(rows[0], "CREATED")
	}

	for i, set := range r.Sets {
		succeeded := "False"
		if meta.IsStatusConditionTrue(*set.StatusConditions(), corev1alpha1.ConditionSucceeded) {
			succeeded = "True"
		}
		rows = append(rows, []string{
			fmt.Sprint(set.ObjectSetSpec().Revision), succeeded, terminal.Line(cluster.ChangeCause(r.Sets[:i], set)),
			terminal.Line(set.GetLabels()[corev1alpha1.PackageVersionLabel]), terminal.Line(set.GetAnnotations()[corev1alpha1.PackageSourceImageAnnotation]),
		})

		if wide {
			rows[i+1] = append(rows[i+1], set.GetCreationTimestamp().UTC().Format(time.RFC3339))
		}
	}

	command.PrintTable(c.Streams.Out, rows)
	return nil
}

// one prints one revision. The table has too little room for it, so YAML is the default.
func (c *historyCommand) one(r *cluster.Rollout) error {
	set, err := r.Revision(c.revision)
	if err != nil {
		return err
	}
	masked, err := maskedSet(set)
	if err != nil {
		return err
	}
	if !c.Output.Wanted() || c.Output.Is(wideFormat) {
		return terminal.WriteYAML(c.Streams.Out, masked)
	}

	return c.Output.Print(c.Streams.Out, masked)
}

// maskedSet hides managed fields and values of Secrets.
func maskedSet(set corev1alpha1.GenericObjectSet) (map[string]any, error) {
	set = set.DeepCopyObject().(corev1alpha1.GenericObjectSet)
	// Managed fields hide the content in a long output.
	set.SetManagedFields(nil)
	phases := set.ObjectSetSpec().Phases
	for i := range phases {
		for j := range phases[i].Objects {
			object := &phases[i].Objects[j].Object
			var value map[string]any
			if err := json.Unmarshal(object.Raw, &value); err != nil {
				return nil, fmt.Errorf("an object in revision %d cannot be read", set.ObjectSetSpec().Revision)
			}
			raw, err := json.Marshal(objectdiff.Mask(value))
			if err != nil {
				return nil, err
			}
			object.Raw = raw
		}
	}

	value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		return nil, fmt.Errorf("print revision %d: %w", set.ObjectSetSpec().Revision, err)
	}
	u := unstructured.Unstructured{Object: value}
	u.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind(corev1alpha1.ScopeOf(set.GetNamespace()).Kind("ObjectSet")))

	return value, nil
}

// statusCommand is kubectl package rollout status.
type statusCommand struct {
	command.Command
	watch bool
}

// newStatus returns the command rollout status.
func newStatus(on command.Command) *cobra.Command {
	c := &statusCommand{Command: on}
	cmd := c.About(&cobra.Command{
		Use:   "status NAME",
		Short: "Wait for a rollout, as kubectl rollout status does",
		Long: `Watch the rollout of a package until it is complete. Exits with 1 if it fails, is paused, or takes longer than
--timeout; with --watch=false unless it is complete.`,
		Args: command.Takes("NAME", "[NAME]"),
	}, command.PackageName, c.run)
	cmd.Flags().BoolVarP(&c.watch, "watch", "w", true, "watch until the rollout is complete")
	c.AddTimeout(cmd, command.WaitTimeout, "how long to wait")
	return cmd
}

// run waits for the rollout of a package.
func (c *statusCommand) run(ctx context.Context, n cluster.Name) error {
	cl, target, pkg, err := c.Find(ctx, n)
	if err != nil {
		return err
	}

	state := progress.Before(progress.Snapshot{Target: target, Package: pkg})
	if !c.watch && !state.Ready {
		return fmt.Errorf("%s is not rolled out: %s", target, progress.Culprit(state))
	}
	if c.watch {
		w := command.Waiter{
			Streams: c.Streams, Cluster: cl, Target: target, Uid: pkg.GetUID(), Failing: "is not rolled out",
			Before: progress.State{Target: target}, Assess: (&progress.Install{}).Assess, Timeout: c.Timeout,
		}
		if state, _, err = w.Run(ctx); err != nil {
			return err
		}
	}

	return rolledOut(&c.Command, target.String(), state.Revision)
}

// rolledOut prints the success in the words of kubectl.
func rolledOut(c *command.Command, what string, revision int64) error {
	_, err := fmt.Fprintln(c.Streams.Out, terminal.Line(fmt.Sprintf("%s successfully rolled out: revision %d", what, revision)))
	return err
}

// checkTimeline returns an error of usage.
func (c *historyCommand) checkTimeline() error {
	if c.timeline && (c.Output.Is(wideFormat) || c.Output.Is(output.Names)) {
		return errors.New("--timeline is printed as text, json or yaml")
	}
	return nil
}

// timeline is the timeline of a revision. Its JSON fields are stable.
type timeline struct {
	Name     string      `json:"name"`
	Revision int64       `json:"revision"`
	Created  metav1.Time `json:"created"`
	// Phases in their order, and the number of omitted ones.
	Phases  []timelinePhase `json:"phases"`
	Omitted int             `json:"omitted,omitempty"`
}

// timelinePhase also has the duration of each part, in seconds.
type timelinePhase struct {
	corev1alpha1.PhaseTimes `json:",inline"`
	Applying                *float64 `json:"applyingSeconds,omitempty"`
	Waiting                 *float64 `json:"waitingSeconds,omitempty"`
}

// printTimeline prints the timeline of the newest revision, or of the chosen one.
func (c *historyCommand) printTimeline(r *cluster.Rollout) error {
	if len(r.Sets) == 0 {
		return ErrNoRevision
	}
	set := r.Sets[len(r.Sets)-1]
	if c.revision > 0 {
		var err error
		if set, err = r.Revision(c.revision); err != nil {
			return err
		}
	}

	t := &timeline{Name: set.GetName(), Revision: set.ObjectSetSpec().Revision, Created: set.GetCreationTimestamp(), Phases: []timelinePhase{}}
	// Earlier managers did not record one.
	if len(set.ObjectSetStatus().Timeline) == 0 {
		return fmt.Errorf("revision %d has no timeline: no phase of it was opened, or an earlier version of the manager rolled it out", t.Revision)
	}

	for _, times := range set.ObjectSetStatus().Timeline {
		t.Phases = append(t.Phases, timelinePhase{PhaseTimes: times, Applying: between(times.OpenedAt, times.AppliedAt), Waiting: between(times.AppliedAt, times.ReadyAt)})
	}

	t.Omitted = max(0, len(set.ObjectSetSpec().Phases)-limits.TimelinePhases)
	return c.Output.Write(c.Streams.Out, t, func(terminal.Styles) string { return t.text() })
}

// between returns seconds. It returns nil if another manager with a slower clock wrote the second
// moment.
func between(from, to *metav1.MicroTime) *float64 {
	if from == nil || to == nil {
		return nil
	}
	seconds := max(0, to.Sub(from.Time).Seconds())
	return &seconds
}

// text shows when each phase was opened, relative to the first one, and its duration.
func (t *timeline) text() string {
	// The first phase can lack the time of its opening, so the first known time counts.
	var first *metav1.MicroTime
	for _, phase := range t.Phases {
		if first == nil {
			first = phase.OpenedAt
		}
	}

	rows := [][]string{{"PHASE", "OPENED", "APPLIED IN", "READY AFTER", "WAITED FOR"}}
	for _, phase := range t.Phases {
		rows = append(rows, []string{
			terminal.Line(phase.Name), since(between(first, phase.OpenedAt), "+"), since(phase.Applying, ""), since(phase.Waiting, ""), terminal.Line(phase.WaitedFor),
		})
	}

	head, out := fmt.Sprintf("Revision %d", t.Revision), terminal.Writer{}
	if first != nil {
		head += ", which started at " + first.UTC().Format(time.RFC3339)
	}
	out.Line(head + ":")
	out.Rows("", rows)
	if t.Omitted > 0 {
		out.Line(fmt.Sprintf("Not shown: %d phases after the first %d, because their times are not kept.", t.Omitted, limits.TimelinePhases))
	}
	return out.String()
}

// since writes seconds; empty for events that have not happened.
func since(seconds *float64, sign string) string {
	if seconds == nil {
		return ""
	}
	d := time.Duration(*seconds * float64(time.Second))
	if d < 10*time.Second {
		return sign + d.Round(10*time.Millisecond).String()
	}
	return sign + d.Round(time.Second).String()
}
