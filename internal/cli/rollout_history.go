package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type historyCommand struct {
	command
	revision int64
}

func newRolloutHistory(on command) *cobra.Command {
	c := &historyCommand{command: on}
	cmd := c.about(&cobra.Command{
		Use:   "history RESOURCE",
		Short: "List the revisions of a package or deployment",
		Long: `List the revisions of a package or deployment, the oldest first, with what made each of them
and whether it has succeeded. -o prints the ObjectSets themselves, --revision one of them;
values of Secrets in them are hidden.`,
		Args: takes("RESOURCE", "[NAME]"),
	}, cluster.ParseResource, c.run, positive("revision", &c.revision))
	c.output.Add(cmd, output.Names)
	cmd.Flags().Int64Var(&c.revision, "revision", 0, "print the revision of this `number`, as YAML where -o says nothing else")
	return cmd
}

func (c *historyCommand) run(ctx context.Context, n cluster.Name) error {
	_, r, err := c.rollout(ctx, n)
	if err != nil {
		return err
	}
	if c.revision > 0 {
		return c.one(ctx, r)
	}
	if c.output.Wanted() {
		list := output.List{}
		for _, set := range r.Sets {
			masked, err := maskedSet(set)
			if err != nil {
				return err
			}
			list.Items = append(list.Items, masked)
		}
		return c.output.Print(ctx, c.streams.Out, list)
	}
	rows := [][]string{{"REVISION", "SUCCESSFUL", "CHANGE-CAUSE", "VERSION", "IMAGE"}}
	for i, set := range r.Sets {
		succeeded := "False"
		if meta.IsStatusConditionTrue(*set.StatusConditions(), corev1alpha1.ConditionSucceeded) {
			succeeded = "True"
		}
		rows = append(rows, []string{
			fmt.Sprint(set.ObjectSetSpec().Revision), succeeded, terminal.Line(changeCause(r.Sets[:i], set)),
			terminal.Line(set.GetLabels()[corev1alpha1.PackageVersionLabel]), terminal.Line(set.GetAnnotations()[corev1alpha1.PackageSourceImageAnnotation]),
		})
	}
	for _, line := range terminal.Table(rows) {
		fmt.Fprintln(c.streams.Out, line)
	}
	return nil
}

// changeCause recognizes an undo by its template.
func changeCause(before []corev1alpha1.GenericObjectSet, set corev1alpha1.GenericObjectSet) string {
	hash := set.GetAnnotations()[corev1alpha1.HashAnnotation]
	for _, earlier := range slices.Backward(before) {
		if hash != "" && earlier.GetAnnotations()[corev1alpha1.HashAnnotation] == hash {
			return fmt.Sprintf("Undone to revision %d.", earlier.ObjectSetSpec().Revision)
		}
	}
	return set.GetAnnotations()[corev1alpha1.ChangeCauseAnnotation]
}

func (c *historyCommand) one(ctx context.Context, r *cluster.Rollout) error {
	set, err := r.Revision(c.revision)
	if err != nil {
		return err
	}
	masked, err := maskedSet(set)
	if err != nil {
		return err
	}
	if !c.output.Wanted() {
		return terminal.WriteYAML(c.streams.Out, masked)
	}
	return c.output.Print(ctx, c.streams.Out, masked)
}

// maskedSet hides managed fields and values of Secrets.
func maskedSet(set corev1alpha1.GenericObjectSet) (map[string]any, error) {
	set = set.DeepCopyObject().(corev1alpha1.GenericObjectSet)
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
