package rollout

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/planning"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objectsets"
)

// undoCommand is kubectl package rollout undo.
type undoCommand struct {
	command.Command
	revision int64
	dryRun   bool
}

// newUndo returns the command rollout undo.
func newUndo(on command.Command) *cobra.Command {
	c := &undoCommand{Command: on}
	cmd := c.About(&cobra.Command{
		Use:   "undo NAME",
		Short: "Go back to an earlier revision of a package",
		Long: `Go back to the last revision before the current one that succeeded and was not rejected, or to
--to-revision. If the spec was never rolled out or was rolled back, it goes back to the current revision.

The image by digest, configuration and component of that revision are written into the spec, and the engine
rolls that out as a new revision. Data that might be lost is named first.

A revision is refused if its configuration came from Secrets, if it was made before digests were recorded,
or if the package is chosen by packageRef.`,
		Args: command.Takes("NAME", "[NAME]"),
	}, command.PackageName, c.run, command.Positive("to-revision", &c.revision))
	cmd.Flags().Int64Var(&c.revision, "to-revision", 0, "go back to this `revision` (default: the last one that succeeded)")
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "show the plan without changing anything")
	c.AddYes(cmd)
	c.AddWait(cmd, command.WaitTimeout, "watch the rollout until it is complete")

	return cmd
}

// run goes back to a revision.
func (c *undoCommand) run(ctx context.Context, n cluster.Name) error {
	cl, r, err := c.Rollout(ctx, n)
	if err != nil {
		return err
	}
	set, err := c.choose(r)
	if err != nil {
		return err
	}
	want, err := wantedOf(r, set)
	if err != nil {
		return err
	}

	if len(r.Package.PackageSpec().ConfigFrom) > 0 {
		fmt.Fprintln(c.Streams.ErrOut, "note: values of spec.configFrom are the current ones of its sources")
	}
	if done, err := c.preview(ctx, cl, r, set, want.Image); err != nil || done {
		return err
	}
	done, err := desired.Change(ctx, cl, r.Target, r.Package, want)
	if err != nil {
		return err
	}

	fmt.Fprintln(c.Streams.Out, terminal.Line(fmt.Sprintf("%s %s (revision %d)", r.Target, done.What, set.ObjectSetSpec().Revision)))
	if !c.Wait {
		return nil
	}
	return done.Follow(ctx, &c.Command, cl, r.Target)
}

// choose returns the revision to return to.
func (c *undoCommand) choose(r *cluster.Rollout) (corev1alpha1.GenericObjectSet, error) {
	current := r.Current()
	if current == nil {
		return nil, fmt.Errorf("%s: %w", r, ErrNoRevision)
	}

	switch {
	case c.revision > 0:
		return r.Revision(c.revision)
	case neverRolledOut(r, current):
		return current, nil
	case meta.IsStatusConditionTrue(*r.Deployment.StatusConditions(), corev1alpha1.ConditionRolledBack):
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line(fmt.Sprintf("note: the rollout was rolled back automatically; setting the spec to revision %d, which is in charge", current.ObjectSetSpec().Revision)))
		return current, nil
	}

	return r.LastGood(current)
}

// neverRolledOut reports whether the spec was never rolled out. An undo then returns to the newest
// revision.
func neverRolledOut(r *cluster.Rollout, newest corev1alpha1.GenericObjectSet) bool {
	state := progress.Of(progress.Snapshot{Target: r.Target, Package: r.Package})
	spec, made := r.Package.PackageSpec(), newest.GetAnnotations()
	// An image that could not be pulled or rendered has no revision, so the newest revision has
	// other content than the spec.
	same := made[corev1alpha1.PackageSourceImageAnnotation] == spec.Image && made[corev1alpha1.PackageComponentAnnotation] == spec.Component &&
		desired.SameConfig(configOf(newest), spec.Config)
	return (state.Invalid != "" || state.PullError != "") && !same
}

// configOf returns nil for no configuration.
func configOf(set corev1alpha1.GenericObjectSet) *runtime.RawExtension {
	text := set.GetAnnotations()[corev1alpha1.PackageConfigAnnotation]
	if text == "" || text == "null" {
		return nil
	}
	return &runtime.RawExtension{Raw: []byte(text)}
}

// wantedOf fails if a revision is not recorded completely.
func wantedOf(r *cluster.Rollout, set corev1alpha1.GenericObjectSet) (desired.Package, error) {
	number := set.ObjectSetSpec().Revision
	want := desired.Package{ChangesComponent: true}
	if r.Package.PackageSpec().PackageRef != nil {
		// A label has _ in place of the + of build metadata.
		version := strings.ReplaceAll(cmp.Or(set.GetLabels()[corev1alpha1.PackageVersionLabel], "VERSION"), "_", "+")
		return want, fmt.Errorf("%s follows the offers of repositories, so it would be upgraded again. To go back to revision %d, pin its version: kubectl package upgrade %s --version %s --allow-downgrade",
			r, number, r.Target.Flags(), version)
	}

	if reason := sensitive(r.Package, set); reason != "" {
		return want, fmt.Errorf("%s cannot go back to revision %d: %s. Put the old values into the Secret, or install the old image: kubectl package install IMAGE %s",
			r, number, reason, r.Target.Flags())
	}
	annotations := set.GetAnnotations()
	image, digest := annotations[corev1alpha1.PackageSourceImageAnnotation], annotations[corev1alpha1.PackageDigestAnnotation]
	ref, err := name.ParseReference(image)
	if err != nil {
		return want, fmt.Errorf("revision %d of %s does not record its image", number, r)
	}

	want.Image = image
	// A tag can lead to another image by now, so the recorded digest is used.
	if _, byDigest := ref.(name.Digest); !byDigest {
		if digest == "" {
			return want, fmt.Errorf("revision %d of %s does not record the digest of %s, which might be another image by now. If it is not: kubectl package install %s %s",
				number, r, image, image, r.Target.Flags())
		}
		want.Image = ref.Context().Digest(digest).Name()
	}

	want.Component = annotations[corev1alpha1.PackageComponentAnnotation]
	config := configOf(set)
	switch {
	case config == nil:
		want.DropsConfig = true
	case !json.Valid(config.Raw):
		return want, fmt.Errorf("revision %d of %s records a configuration that cannot be read", number, r)
	default:
		want.Config = config.Raw
	}

	return want, nil
}

// sensitive returns the reason why values of a revision are not kept.
func sensitive(pkg corev1alpha1.GenericPackage, set corev1alpha1.GenericObjectSet) string {
	if len(objectsets.SecretsOf(set)) > 0 {
		return "it has sensitive values, which are not kept"
	}
	for _, source := range pkg.PackageSpec().ConfigFrom {
		if s := source.SecretKeyRef; s != nil && ptr.Deref(s.Sensitive, true) {
			return fmt.Sprintf("its configuration comes from the Secret %s, whose earlier values are not kept", s.Name)
		}
	}
	return ""
}

// preview prints the plan of a dry run, or confirms losses. done is true if there is nothing to
// change. image is the one of the stored revision.
func (c *undoCommand) preview(ctx context.Context, cl *cluster.Cluster, r *cluster.Rollout, set corev1alpha1.GenericObjectSet, image string) (done bool, err error) {
	if !c.dryRun && cl.Config == nil {
		return false, nil
	}
	plan, err := planning.OfRevision(ctx, cl, r, set, image)
	switch {
	case c.dryRun && err != nil:
		return true, cl.Explain("cannot plan the undo of "+r.String(), err)
	case err != nil:
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line("note: the data that might be lost is not known: "+err.Error()))
		return false, nil
	}

	// The undo starts from the spec's image, which a rollback can have passed over.
	plan.From.Image = r.Package.PackageSpec().Image
	if c.dryRun {
		_, err = io.WriteString(c.Streams.Out, planning.Text(plan, terminal.StylesFor(c.Streams.Out)))
		return true, err
	}

	t := planning.PrinterFor(terminal.StylesFor(c.Streams.ErrOut))
	t.Section("Data that might be lost", t.Styles.Bad, planning.LossRows(plan.Losses))
	t.Refusals(plan.Refusals)
	if _, err := io.WriteString(c.Streams.ErrOut, t.String()); err != nil {
		return false, err
	}
	if len(plan.Losses) > 0 {
		return false, c.Confirm(fmt.Sprintf("Go back to revision %d anyway?", set.ObjectSetSpec().Revision))
	}

	return false, nil
}
