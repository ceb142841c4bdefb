package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// Commands returns the commands of this package.
func Commands(on command.Command) []*cobra.Command {
	convert := &cobra.Command{Use: "import", Short: "Convert objects of other package managers"}
	convert.AddCommand(newCarvel(on))
	return []*cobra.Command{convert, newAdopt(on), newRelease(on), newAdoptEngine(on), newReleaseEngine(on)}
}

// adoptCommand is kubectl package adopt.
type adoptCommand struct {
	handoverCommand
	into string
	name cluster.Name // from into
	// release of Helm whose objects are adopted.
	release string
}

// newAdopt returns the command adopt.
func newAdopt(on command.Command) *cobra.Command {
	c := &adoptCommand{handoverCommand: handoverCommand{Command: on}}
	cmd := command.Runs(&cobra.Command{
		Use:   "adopt [KIND/NAME...] --into PACKAGE",
		Short: "Make a package take over objects of kubectl or Helm (a whole Package Operator: adopt-engine)",
		Long: `Make an installed package take over existing objects, for example of kubectl apply or Helm. No object is
deleted or recreated. The package has to contain the objects, and they must not have a controller. The plan comes
first, with each field that changes. No object is adopted while other objects of the package are refused.

--from-helm takes the objects of a release from Helm's record in the namespace, which is deleted once the
package has them. If it is not deleted, run the command again. KIND is a kind, resource or short name;
NAMESPACE/KIND/NAME is an object of another namespace. The guide is docs/migrate-from-helm.md.`,
		Example: `  # Show the plan
  kubectl package adopt deployment/web service/web configmap/settings --into web -n shop --dry-run

  # Do it
  kubectl package adopt deployment/web service/web configmap/settings --into web -n shop --yes

  # All objects of a release of Helm
  kubectl package adopt --from-helm web --into web -n shop`,
		Args: cobra.ArbitraryArgs,
	}, c.names, c.run)

	c.add(cmd, "watch until the package has the objects and is available")
	cmd.Flags().StringVar(&c.into, "into", "", "make this `package` take them over")
	cmd.Flags().StringVar(&c.release, "from-helm", "", "take over all objects of this `release` of Helm in the namespace")
	_ = cmd.RegisterFlagCompletionFunc("into", c.CompleteNames)
	return cmd
}

// names returns the named objects, which can be none with a record.
func (c *adoptCommand) names(args []string) (names []cluster.ObjectName, err error) {
	if problems := validation.IsDNS1123Subdomain(c.release); c.release != "" && len(problems) > 0 {
		return nil, fmt.Errorf("--from-helm %q cannot be a name: %s", c.release, problems[0])
	}
	// Without a record, ParseObjects reports that no object is named.
	if len(args) > 0 || c.release == "" {
		if names, err = cluster.ParseObjects(args); err != nil {
			return nil, err
		}
	}
	if c.into == "" {
		return nil, errors.New("--into is missing: name the package")
	}

	c.name, err = cluster.ParseName(c.into)
	return names, err
}

// run makes the plan, asks, sets the annotations and waits. Helm's record is deleted last.
func (c *adoptCommand) run(ctx context.Context, names []cluster.ObjectName) error {
	h, err := c.read(ctx, names)
	if err != nil {
		return err
	}

	installed := &installation{}
	if c.release != "" {
		if installed, err = readRelease(ctx, h, c.release); err != nil {
			return err
		}
	}

	unreleases := false
	err = c.load(ctx, h, c.name, func(_ progress.Target, spec *corev1alpha1.PackageSpec) error {
		// A package that released the objects before must not drop them from its template any more.
		unreleases = dropPatches(spec, slices.Concat(h.objects, installed.keys()))
		return nil
	})
	if err != nil {
		return err
	}

	if err := installed.choose(ctx, h); err != nil {
		return err
	}
	if err := h.make(ctx, corev1alpha1.AdoptableByAnnotation, adopterOf(h.Target)); err != nil {
		return err
	}
	phases, err := h.phases()
	if err != nil {
		return err
	}

	steps := adoptSteps(h.objects, h.deployment, phases, h.plan)
	err = c.show(h, "Objects to adopt into "+h.Target.String(), steps)
	left := pending(steps)
	switch {
	case err != nil, c.dryRun:
		return err
	case len(left) == 0 && !unreleases && len(installed.records) == 0:
		fmt.Fprintln(c.Streams.Out, terminal.Line("nothing to do: "+h.Target.String()+" already has the objects"))
		return nil
	}

	question := fmt.Sprintf("Let %s adopt %s?", h.Target, terminal.Count(len(left), "object"))
	if len(installed.records) > 0 {
		question = fmt.Sprintf("Let %s adopt %s, and delete %s?", h.Target, terminal.Count(len(left), "object"), "Helm's record of the release "+installed.release)
	}
	if err := c.Confirm(question); err != nil {
		return err
	}

	if err := c.adopt(ctx, h, left, unreleases); err != nil {
		// A failed adoption leaves Helm's record, which must not be used to uninstall.
		return installed.remains(err)
	}
	if !c.Wait {
		return installed.remains(nil)
	}

	return installed.forget(ctx, c, h)
}

// adopterOf is the value of the annotation that lets a package adopt an object.
func adopterOf(t progress.Target) string {
	if t.Namespace == "" {
		return t.Name
	}
	return t.Namespace + "/" + t.Name
}

// adopt annotates the objects, drops patches of an earlier release, and requests a retry.
func (c *adoptCommand) adopt(ctx context.Context, h *handoverPlan, steps []step, unreleases bool) error {
	// The annotations come first, because the requested retry takes over the objects that have
	// them.
	for _, s := range steps {
		if err := h.annotate(ctx, s.object, corev1alpha1.AdoptableByAnnotation, adopterOf(h.Target)); err != nil {
			return err
		}
	}
	done := desired.Applied{Pkg: h.Before, Before: h.Before.DeepCopyObject().(corev1alpha1.GenericPackage)}
	if unreleases {
		if err := h.patchPatches(ctx); err != nil {
			return err
		}
	}

	var err error
	if done.Retry, err = desired.RequestRetry(ctx, h.cluster, h.Target, h.Before); err != nil {
		return err
	}
	is := func(controller *metav1.OwnerReference) bool {
		return controller != nil && controller.Kind == h.Target.Scope.Kind("ObjectDeployment") && controller.Name == h.Target.Name
	}
	return c.follow(ctx, h, done, steps, "adopts", "adopted", is, func() error { return nil })
}
